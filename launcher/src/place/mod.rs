//! The directories that a log or a receipt lives in: looked at first, made later.

mod directory;

pub(crate) use directory::{Directory, Fate};

use crate::refusal::{Code, Refusal};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use weir_common::Errno;
use weir_common::sys::file_system::{self, Space};
use weir_common::sys::files::{self, Kind, Status};
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

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Ok(status) = files::status(self.deepest()) {
            write!(f, ": owner {}, mode {:04o}", status.owner, status.mode)?;
        }
        match self.found.len() < self.place.below.len() {
            true => write!(f, "; a run makes {}", self.place.path().display()),
            false => Ok(()),
        }
    }
}

impl Site<'_> {
    fn deepest(&self) -> &OwnedFd {
        self.found.last().unwrap_or(&self.base)
    }

    /// How many more files can be made there; `None`: as many as there is space for.
    pub(crate) fn free_inodes(&self) -> Result<Option<u64>, Errno> {
        file_system::free_inodes(self.deepest())
    }

    /// The free space where the place is or will be.
    pub(crate) fn space(&self) -> Result<Space, Refusal> {
        file_system::space(self.deepest()).map_err(|errno| {
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
