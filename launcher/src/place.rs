//! The directories that a log or a receipt lives in: looked at first, made later.

use crate::refusal::{Code, Refusal, creation_code};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir_common::sys::files::{self, Identity, Kind, Lock, Space, Status};
use weir_common::sys::process;
use weir_common::{Durability, Errno};

/// What a directory must be like for its records to be safe in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The parent of a root: it only has to be there.
    Unchecked,
    /// A log's directory: others may write to it only where it is sticky.
    Shared,
    /// A root or a shard: ours or root's, and not writable by others.
    Private,
}

/// A directory, as a base that exists and private names below it that may not yet.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) base: PathBuf,
    pub(crate) rule: Rule,
    pub(crate) below: Vec<OsString>,
}

impl Place {
    /// The whole path, as the user would write it.
    pub(crate) fn path(&self) -> PathBuf {
        self.below.iter().fold(self.base.clone(), |path, name| join(&path, name))
    }

    /// Opens as much of it as exists, and checks that. Changes nothing.
    pub(crate) fn look(&self) -> Result<Site<'_>, Refusal> {
        let fail = |errno| {
            Refusal::new(Code::System, "cannot open directory").at(&self.base).because(errno)
        };
        let base = files::open_directory(&self.base).map_err(fail)?;
        check(&base, self.rule, &self.base)?;
        let mut site = Site { place: self, base, found: Vec::new(), path: self.base.clone() };
        for name in &self.below {
            let path = join(&site.path, name);
            match open_private(site.deepest(), name, &path)? {
                Some(next) => {
                    site.found.push(next);
                    site.path = path;
                }
                None => break,
            }
        }
        Ok(site)
    }
}

/// What exists of a place.
#[derive(Debug)]
pub(crate) struct Site<'p> {
    place: &'p Place,
    base: OwnedFd,
    /// The directories below the base that exist.
    found: Vec<OwnedFd>,
    path: PathBuf,
}

/// How often a directory is tried to be made that others remove, and the pause in between:
/// ten seconds, in which whoever removes it has been given the processor.
const TRIES: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(5);

impl Site<'_> {
    fn deepest(&self) -> &OwnedFd {
        self.found.last().unwrap_or(&self.base)
    }

    /// The free space where the place is or will be.
    pub(crate) fn space(&self) -> Result<Space, Refusal> {
        files::space(self.deepest()).map_err(|errno| {
            Refusal::new(Code::System, "cannot ask for the free space at")
                .at(&self.path)
                .because(errno)
        })
    }

    /// What has this name there now, if the place exists and something has.
    pub(crate) fn status_of(&self, name: &OsStr) -> Option<Status> {
        match self.found.len() == self.place.below.len() {
            true => files::status_at(self.deepest(), name).ok(),
            false => None,
        }
    }

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

/// A path as the user would write it: without a `./` that nobody has typed.
pub(crate) fn join(directory: &Path, name: &OsStr) -> PathBuf {
    match directory.as_os_str() == "." {
        true => PathBuf::from(name),
        false => directory.join(name),
    }
}

/// Opens a root or a shard, `None` when it does not exist.
fn open_private(base: &OwnedFd, name: &OsStr, path: &Path) -> Result<Option<OwnedFd>, Refusal> {
    let refuse = |code| Refusal::new(code, "cannot open directory").at(path);
    match files::open_directory_at(base, name) {
        Ok(directory) => check(&directory, Rule::Private, path).map(|()| Some(directory)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno @ (Errno::ENOTDIR | Errno::ELOOP)) => {
            let refusal = refuse(Code::DirectoryUnsafe);
            Err(match files::status_at(base, name) {
                Ok(status) if status.kind != Kind::Directory => {
                    refusal.because(format_args!("it is {}", status.kind))
                }
                _ => refusal.because(errno),
            })
        }
        Err(errno) => Err(refuse(Code::System).because(errno)),
    }
}

fn check(directory: &OwnedFd, rule: Rule, path: &Path) -> Result<(), Refusal> {
    let refuse = |code| Refusal::new(code, "cannot use directory").at(path);
    let status = files::status(directory).map_err(|errno| refuse(Code::System).because(errno))?;
    let unsafe_because = match rule {
        Rule::Unchecked => None,
        Rule::Shared if status.others_may_write() && !status.is_sticky() => {
            Some("others may write to it, and it is not sticky")
        }
        Rule::Private if status.others_may_write() => Some("others may write to it"),
        Rule::Private if ![0, process::effective_user()].contains(&status.owner) => {
            Some("it belongs to somebody else")
        }
        Rule::Shared | Rule::Private => None,
    };
    match unsafe_because {
        None => Ok(()),
        Some(reason) => {
            let hint = "weir's records are only as safe as the directory that they are in";
            Err(refuse(Code::DirectoryUnsafe).because(reason).hint(hint))
        }
    }
}
