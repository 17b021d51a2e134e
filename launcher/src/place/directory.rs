//! Making what is missing of a place, and removing it again when the start is refused.

use super::{Site, join, open_private};
use crate::refusal::{Code, Refusal, creation_code};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir_common::sys::files::{self, Identity, Lock, Status};
use weir_common::sys::process;
use weir_common::{Durability, Errno};

/// How often a directory is tried to be made that others remove, and the pause in between:
/// two seconds, in which whoever removes it has been given the processor.
const TRIES: u32 = 400;
const PAUSE: Duration = Duration::from_millis(5);

impl Site<'_> {
    /// Makes what is missing, on disk if that is asked for, and keeps it from being removed
    /// by others who are refused.
    pub(crate) fn make(self, durability: Durability) -> Result<Directory, Refusal> {
        if self.place.below.is_empty() {
            return Ok(Directory::that_exists(self.base, self.path));
        }
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
        let mut directory = Directory::that_exists(base, self.place.base.clone());
        for (at, name) in (1..).zip(&self.place.below) {
            let path = join(&directory.path, name);
            let open = |parent| open_private(parent, name, &path);
            let (mut next, mut made) = (open(&directory.file)?, false);
            if next.is_none() {
                match files::make_directory_at(&directory.file, name) {
                    Ok(()) => made = true,
                    // Another start was quicker; its directory serves as well.
                    Err(Errno::EEXIST) => {}
                    Err(Errno::ENOENT) if directory.path != self.place.base => return Ok(None),
                    Err(errno) => return Err(cannot_make(errno, &path)),
                }
                // Twice: what cannot be opened could not be removed again.
                next = open(&directory.file).or_else(|_| open(&directory.file))?;
            }
            let Some(next) = next else { return Ok(None) };
            let parent = std::mem::replace(&mut directory.file, next);
            directory.path = path;
            let is_last = at == self.place.below.len();
            let held = is_last.then(|| hold(&directory.file, &parent, name));
            if let Some(Some(hold)) = held {
                directory.hold = hold;
            }
            // Whoever has made it: it was not there when this start looked first.
            if made || at > self.found.len() {
                directory.note_new(parent, name)?;
                // Whoever has made it may not have come that far, or syncs nothing.
                if durability == Durability::Synced {
                    directory.sync_name()?;
                }
            }
            if let Some(None) = held {
                return Ok(None);
            }
        }
        Ok(Some(directory))
    }
}

fn cannot_make(errno: Errno, path: &Path) -> Refusal {
    let code = creation_code(errno, Code::System);
    Refusal::new(code, "cannot make directory").at(path).because(errno)
}

/// Takes the shared lock of a directory, with which nobody removes it, and looks whether
/// it still has its name; `None` when somebody is about to remove it, or has done so.
fn hold(directory: &OwnedFd, parent: &OwnedFd, name: &OsStr) -> Option<Hold> {
    let hold = match files::lock_shared(directory) {
        Ok(Lock::Taken) => Hold::Locked,
        Ok(Lock::Busy) => return None,
        Err(_) => Hold::Unlocked,
    };
    is_named(directory, parent, name).then_some(hold)
}

/// Whether a directory has this name still.
fn is_named(directory: &OwnedFd, parent: &OwnedFd, name: &OsStr) -> bool {
    let named = files::status_at(parent, name).map(|named| named.identity);
    named.is_ok() && named == files::status(directory).map(|status| status.identity)
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
    /// The directory itself, by another descriptor of what this start has opened.
    file: OwnedFd,
}

/// Removes a new directory, if it is still this very one, as weir makes it, empty, and
/// nobody else's.
fn remove(file: &OwnedFd, parent: &OwnedFd, name: &OsStr, hold: Hold) {
    // Twice: what cannot be looked at for a moment must not stay for that.
    for _ in 0..2 {
        if may_remove(file, parent, name, hold) && files::remove_directory_at(parent, name).is_ok()
        {
            return;
        }
    }
}

fn may_remove(file: &OwnedFd, parent: &OwnedFd, name: &OsStr, hold: Hold) -> bool {
    // Somebody else may be using it by now, though it may look empty (what is made
    // there has no name at first): then the lock is shared, and it stays.
    match (files::lock(file), hold) {
        (Ok(Lock::Busy), _) | (Err(_), Hold::Locked) => return false,
        (Ok(Lock::Taken), _) | (Err(_), Hold::Unlocked) => {}
    }
    // Its group's bit (2000) comes from the directory that it was made in.
    let as_made = |status: Status| {
        status.mode & !0o2000 == 0o700 && status.owner == process::effective_user()
    };
    is_named(file, parent, name) && files::status(file).is_ok_and(as_made)
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
    fn that_exists(file: OwnedFd, path: PathBuf) -> Directory {
        let (hold, fate) = (Hold::Unlocked, Cell::new(Fate::Undo));
        Directory { file, path, new: Vec::new(), hold, fate }
    }

    /// Which directory it is.
    pub(crate) fn identity(&self) -> Result<Identity, Errno> {
        files::status(&self.file).map(|status| status.identity)
    }

    /// Every descriptor that it needs.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let new = self.new.iter().flat_map(|new| [&new.parent, &new.file]);
        [&self.file].into_iter().chain(new).map(AsFd::as_fd)
    }

    /// Notes that it was missing at first.
    fn note_new(&mut self, parent: OwnedFd, name: &OsStr) -> Result<(), Refusal> {
        let file = files::duplicate(&self.file).map_err(|errno| {
            // Not noted, it would stay.
            remove(&self.file, &parent, name, self.hold);
            cannot_make(errno, &self.path)
        })?;
        self.new.push(New { parent, name: name.to_owned(), file });
        Ok(())
    }

    /// Puts its name on disk, before anything in it can be: others may use it at once.
    fn sync_name(&self) -> Result<(), Refusal> {
        match self.new.last() {
            Some(new) => {
                files::sync_all(&new.parent).map_err(|errno| cannot_make(errno, &self.path))
            }
            None => Ok(()),
        }
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
        let undo = |new: &New| remove(&new.file, &new.parent, &new.name, self.hold);
        self.new.iter().rev().for_each(undo);
    }
}
