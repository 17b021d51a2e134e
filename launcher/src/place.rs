//! The directories that a log or a receipt lives in: looked at first, made later.

use crate::refusal::{Code, Refusal, creation_code};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use weir_common::Errno;
use weir_common::sys::files::{self, Identity, Kind, Space, Status};
use weir_common::sys::process;

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
    pub(crate) fn look(&self) -> Result<Site, Refusal> {
        let fail = |errno| {
            Refusal::new(Code::System, "cannot open directory").at(&self.base).because(errno)
        };
        let base = files::open_directory(&self.base).map_err(fail)?;
        check(&base, self.rule, &self.base)?;
        let mut site = Site { deepest: base, path: self.base.clone(), missing: self.below.clone() };
        while let Some(name) = site.missing.first() {
            let path = join(&site.path, name);
            match open_private(&site.deepest, name, &path)? {
                Some(next) => {
                    site.deepest = next;
                    site.path = path;
                    site.missing.remove(0);
                }
                None => break,
            }
        }
        Ok(site)
    }
}

/// What exists of a place.
#[derive(Debug)]
pub(crate) struct Site {
    deepest: OwnedFd,
    path: PathBuf,
    missing: Vec<OsString>,
}

impl Site {
    /// The free space where the place is or will be.
    pub(crate) fn space(&self) -> Result<Space, Refusal> {
        files::space(&self.deepest).map_err(|errno| {
            Refusal::new(Code::System, "cannot ask for the free space at")
                .at(&self.path)
                .because(errno)
        })
    }

    /// What has this name there now, if the place exists and something has.
    pub(crate) fn status_of(&self, name: &OsStr) -> Option<Status> {
        match self.missing.is_empty() {
            true => files::status_at(&self.deepest, name).ok(),
            false => None,
        }
    }

    /// Makes what is missing.
    pub(crate) fn make(self) -> Result<Directory, Refusal> {
        let mut directory = Directory {
            file: self.deepest,
            path: self.path,
            made: Vec::new(),
            fate: Cell::new(Fate::Undo),
        };
        for name in self.missing {
            let path = join(&directory.path, &name);
            let fail = |errno| {
                let code = creation_code(errno, Code::System);
                Refusal::new(code, "cannot make directory").at(&path).because(errno)
            };
            let ours = match files::make_directory_at(&directory.file, &name) {
                Ok(()) => true,
                // Another start was quicker; its directory serves as well.
                Err(Errno::EEXIST) => false,
                Err(errno) => return Err(fail(errno)),
            };
            let opened = open_private(&directory.file, &name, &path);
            let next = opened.and_then(|next| next.ok_or_else(|| fail(Errno::ENOENT)));
            let next = next.inspect_err(|_| {
                if ours {
                    let _ = files::remove_directory_at(&directory.file, &name);
                }
            })?;
            let parent = std::mem::replace(&mut directory.file, next);
            if ours {
                directory.made.push(Made { parent, name });
            }
            directory.path = path;
        }
        Ok(directory)
    }
}

/// A directory that a log or a receipt is in, open for all later calls.
#[derive(Debug)]
pub(crate) struct Directory {
    file: OwnedFd,
    path: PathBuf,
    made: Vec<Made>,
    fate: Cell<Fate>,
}

#[derive(Debug)]
struct Made {
    parent: OwnedFd,
    name: OsString,
}

/// What becomes of what this start has made, when it is refused after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is removed again.
    Undo,
    /// It stays: it was there before, or the job has started.
    Keep,
}

impl Directory {
    /// Which directory it is.
    pub(crate) fn identity(&self) -> Result<Identity, Errno> {
        files::status(&self.file).map(|status| status.identity)
    }

    /// Every descriptor that it needs.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.file].into_iter().chain(self.made.iter().map(|made| &made.parent)).map(AsFd::as_fd)
    }

    /// The path of a name in it, for messages.
    pub(crate) fn path_of(&self, name: &OsStr) -> PathBuf {
        join(&self.path, name)
    }

    /// From here on it stays, whatever happens.
    pub(crate) fn keep(&self) {
        self.fate.set(Fate::Keep);
    }

    /// Puts the names of the directories that were made on disk.
    pub(crate) fn sync_parents(&self) -> Result<(), Errno> {
        self.made.iter().try_for_each(|made| files::sync_all(&made.parent))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.fate.get() == Fate::Undo {
            for made in self.made.iter().rev() {
                // Somebody else may be using it by now; then it is not empty, and stays.
                let _ = files::remove_directory_at(&made.parent, &made.name);
            }
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
