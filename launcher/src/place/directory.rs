//! Making what is missing of a place, and removing it again when the start is refused.

use super::{Site, join, open_private};
use crate::refusal::{Code, Refusal, creation_code};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir_common::sys::files::{self, Identity, Lock};
use weir_common::{Durability, Errno};

/// How often a directory is tried to be made that others remove, and the pause in between:
/// ten seconds, in which whoever removes it has been given the processor.
const TRIES: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(5);

impl Site<'_> {
    /// Makes what is missing, on disk if that is asked for, and keeps it from being removed
    /// by others who are refused.
    pub(crate) fn make(self, durability: Durability) -> Result<Directory, Refusal> {
        for _ in 0..TRIES {
            if let Some(directory) = self.try_to_make(durability)? {
                return Ok(directory);
            }
            thread::sleep(PAUSE);
        }
        let refusal = Refusal::new(Code::System, "cannot use directory").at(self.place.path());
        Err(refusal.because("somebody else has its lock, or removes it again and again"))
    }

    /// `None` while another start removes what is missing, or has done so.
    fn try_to_make(&self, durability: Durability) -> Result<Option<Directory>, Refusal> {
        let base =
            files::duplicate(&self.base).map_err(|errno| cannot_make(errno, &self.place.base))?;
        let mut directory = Directory {
            file: base,
            path: self.place.base.clone(),
            new: Vec::new(),
            hold: Hold::Unlocked,
            fate: Cell::new(Fate::Undo),
        };
        for (at, name) in (1..).zip(&self.place.below) {
            let path = join(&directory.path, name);
            let mut next = open_private(&directory.file, name, &path)?;
            if next.is_none() {
                match files::make_directory_at(&directory.file, name) {
                    Ok(()) => next = open_made(&directory.file, name, &path, durability)?,
                    // Another start was quicker; its directory serves as well.
                    Err(Errno::EEXIST) => next = open_private(&directory.file, name, &path)?,
                    Err(Errno::ENOENT) if directory.path != self.place.base => return Ok(None),
                    Err(errno) => return Err(cannot_make(errno, &path)),
                }
            }
            let Some(next) = next else { return Ok(None) };
            let parent = std::mem::replace(&mut directory.file, next);
            directory.path = path;
            let is_last = at == self.place.below.len();
            let held = is_last.then(|| hold(&directory.file, &parent, name));
            // Whoever has made it: it was not there before.
            if at > self.found.len() {
                directory.new.push(New { parent, name: name.clone() });
            }
            match held {
                Some(Some(hold)) => directory.hold = hold,
                Some(None) => return Ok(None),
                None => {}
            }
        }
        Ok(Some(directory))
    }
}

fn cannot_make(errno: Errno, path: &Path) -> Refusal {
    let code = creation_code(errno, Code::System);
    Refusal::new(code, "cannot make directory").at(path).because(errno)
}

/// Opens a directory that was made just now, once it is on disk: others may use it at
/// once. It is removed again where that fails.
fn open_made(
    parent: &OwnedFd,
    name: &OsStr,
    path: &Path,
    durability: Durability,
) -> Result<Option<OwnedFd>, Refusal> {
    let synced = match durability {
        Durability::Synced => files::sync_all(parent).map_err(|errno| cannot_make(errno, path)),
        Durability::Unsynced => Ok(()),
    };
    synced.and_then(|()| open_private(parent, name, path)).inspect_err(|_| {
        let _ = files::remove_directory_at(parent, name);
    })
}

/// Takes the shared lock of a directory, with which nobody removes it, and looks whether
/// it still has its name; `None` when somebody is about to remove it, or has done so.
fn hold(directory: &OwnedFd, parent: &OwnedFd, name: &OsStr) -> Option<Hold> {
    let hold = match files::lock_shared(directory) {
        Ok(Lock::Taken) => Hold::Locked,
        Ok(Lock::Busy) => return None,
        Err(_) => Hold::Unlocked,
    };
    let named = files::status_at(parent, name).ok()?;
    let status = files::status(directory).ok()?;
    (named.identity == status.identity).then_some(hold)
}

/// A directory that a log or a receipt is in, open for all later calls.
#[derive(Debug)]
pub(crate) struct Directory {
    file: OwnedFd,
    path: PathBuf,
    new: Vec<New>,
    hold: Hold,
    fate: Cell<Fate>,
}

/// A directory that was missing when this start looked first.
#[derive(Debug)]
struct New {
    parent: OwnedFd,
    name: OsString,
}

/// What keeps others from removing a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Its shared lock.
    Locked,
    /// Nothing: directories have no locks there.
    Unlocked,
}

/// What becomes of what is new, when this start is refused after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is removed again.
    Undo,
    /// It stays: it was there before, or somebody has used it.
    Keep,
}

impl Directory {
    /// Which directory it is.
    pub(crate) fn identity(&self) -> Result<Identity, Errno> {
        files::status(&self.file).map(|status| status.identity)
    }

    /// Every descriptor that it needs.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.file].into_iter().chain(self.new.iter().map(|new| &new.parent)).map(AsFd::as_fd)
    }

    /// The path of a name in it, for messages.
    pub(crate) fn path_of(&self, name: &OsStr) -> PathBuf {
        join(&self.path, name)
    }

    /// From here on it stays, whatever happens.
    pub(crate) fn keep(&self) {
        self.fate.set(Fate::Keep);
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.fate.get() == Fate::Keep {
            return;
        }
        let mut directory = &self.file;
        for new in self.new.iter().rev() {
            // Somebody else may be using it by now, though it may look empty (what is made
            // there has no name at first): then the lock is shared, and it stays.
            match (files::lock(directory), self.hold) {
                (Ok(Lock::Busy), _) | (Err(_), Hold::Locked) => return,
                (Ok(Lock::Taken), _) | (Err(_), Hold::Unlocked) => {
                    let _ = files::remove_directory_at(&new.parent, &new.name);
                }
            }
            directory = &new.parent;
        }
    }
}
