//! How a record gets its name: whole, once, and without replacing anything.
//!
//! A [`Draft`] is made before the job starts: its room on disk is allocated, and the
//! way in which it will get its name is known to work. [`Draft::publish`] then fills
//! it, puts it on disk, and names it. Facts and receipts both go this way.
//!
//! The ways, best first:
//! 1. an unnamed file (`O_TMPFILE`) that linkat(2) names: it never has two links;
//! 2. a draft under a name of its own, linked to the final name and then unlinked;
//! 3. such a draft, renamed with `RENAME_NOREPLACE`.
//!
//! The second shows two links for a moment, and is left out for readers who would
//! not have that ([`Links::NeverTwo`]). Each refuses with `EEXIST` when the name is taken. Where none works the record
//! cannot be promised, and reserving says so.

mod ways;

use crate::sys::errno::Errno;
use crate::sys::file_system::FileSystem;
use crate::sys::files::{self, Strange};
use crate::sys::links::{self, Unnamed};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use ways::{named, remove_leftover, unnamed};

/// Whether a publication reaches the disk before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The record is on disk before its name, and the name before the call returns.
    Synced,
    /// The system writes it when it likes.
    Unsynced,
}

/// The outcome of a publication that nothing hindered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The record has its name.
    Ours,
    /// The name was taken; what stands there was not touched.
    AlreadyThere,
}

/// What a reader who looks at any moment may see of a record's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Two for a moment, where the file system has no better way.
    TwoForAMoment,
    /// One, always: such a file system cannot publish it.
    NeverTwo,
}

/// The name of a draft, for file systems without unnamed files.
#[derive(Clone, Debug)]
pub struct DraftName(pub OsString);

impl DraftName {
    /// The name beside it for trying out what the file system can do.
    fn trial(&self) -> OsString {
        let mut name = self.0.clone();
        name.push("~");
        name
    }
}

/// Why a draft could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The system refused it, or its room.
    System(Errno),
    /// Something that is not an old draft of ours has the draft's name.
    Blocked(Strange),
    /// The draft of a start that still runs has the draft's name.
    Busy,
    /// This file system can neither link nor rename without replacing.
    Unsupported(Errno),
}

impl ReserveError {
    /// The system's reason, or the one that comes nearest to it.
    pub fn errno(&self) -> Errno {
        match self {
            ReserveError::System(errno)
            | ReserveError::Unsupported(errno)
            | ReserveError::Blocked(Strange::System(errno)) => *errno,
            ReserveError::Blocked(_) => Errno::EEXIST,
            ReserveError::Busy => Errno::EBUSY,
        }
    }
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReserveError::System(errno) => write!(f, "{errno}"),
            ReserveError::Blocked(strange) => {
                write!(f, "something has its draft's name, and {strange}")
            }
            ReserveError::Busy => f.write_str("another start is about to publish it"),
            ReserveError::Unsupported(errno) => {
                write!(f, "this file system cannot name a file without replacing another ({errno})")
            }
        }
    }
}

impl std::error::Error for ReserveError {}

/// Why a record was not published, or not for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// The record could not be written or put on disk; its name is still free.
    Write(Errno),
    /// The record could not be named.
    Name(Errno),
    /// The record has its name, but whether a power cut keeps it is not known.
    Directory(Errno),
}

impl PublishError {
    /// The system's reason.
    pub fn errno(self) -> Errno {
        match self {
            PublishError::Write(errno)
            | PublishError::Name(errno)
            | PublishError::Directory(errno) => errno,
        }
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            PublishError::Write(_) => "it could not be written",
            PublishError::Name(_) => "it could not be given its name",
            PublishError::Directory(_) => "it is there, but its directory could not be put on disk",
        };
        write!(f, "{what}: {}", self.errno())
    }
}

impl std::error::Error for PublishError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Unnamed(Unnamed),
    Link,
    Rename,
}

/// A record before it has its name. Dropped unpublished, it leaves nothing behind.
#[derive(Debug)]
pub struct Draft<'d> {
    directory: BorrowedFd<'d>,
    file: OwnedFd,
    /// Room that is given back before the record is filled, where filling takes more than
    /// what is filled.
    spare: Option<OwnedFd>,
    /// Where the draft has a name: that name.
    name: Option<OsString>,
    /// The name that it has, or would have.
    draft_name: DraftName,
    bytes_max: usize,
    links: Links,
    way: Way,
}

impl<'d> Draft<'d> {
    /// Makes a draft in an open directory, with room for `bytes_max` bytes.
    ///
    /// Where the draft has a name, it is locked (flock) as long as it lives. A small
    /// regular file of our own under that name that nobody has locked is taken for the
    /// leftover of a killed start and removed; anything else is left alone, and refused
    /// where the draft needs the name.
    ///
    /// ```
    /// use std::ffi::OsStr;
    /// use weir_common::{Draft, DraftName, Durability, Links, Published};
    ///
    /// let place = tempfile::tempdir()?;
    /// let directory = weir_common::sys::files::open_directory(place.path())?;
    /// let draft_name = DraftName(".record.tmp".into());
    ///
    /// let first = Draft::reserve(&directory, &draft_name, 16, Links::NeverTwo)?;
    /// let second = Draft::reserve(&directory, &draft_name, 16, Links::NeverTwo)?;
    /// let name = OsStr::new("record");
    /// assert_eq!(first.publish(name, b"first", Durability::Synced)?, Published::Ours);
    /// assert_eq!(second.publish(name, b"second", Durability::Synced)?, Published::AlreadyThere);
    /// assert_eq!(std::fs::read(place.path().join(name))?, b"first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(
        directory: &'d impl AsFd,
        draft_name: &DraftName,
        bytes_max: usize,
        links: Links,
    ) -> Result<Draft<'d>, ReserveError> {
        let directory = directory.as_fd();
        let system = FileSystem::of(directory);
        let mut draft = match unnamed((directory, system), draft_name, bytes_max, links) {
            Some(draft) => {
                // What cannot be removed is in nobody's way here.
                let _ = remove_leftover(directory, &draft_name.0, bytes_max);
                draft
            }
            None => named(directory, draft_name, bytes_max, links)?,
        };
        links::reserve(&draft.file, bytes_max).map_err(ReserveError::System)?;
        draft.spare = links::spare(directory, system).map_err(ReserveError::System)?;
        Ok(draft)
    }

    /// In which way it will get its name, in words.
    pub fn way(&self) -> &'static str {
        match self.way {
            Way::Unnamed(_) => "a file without a name, which a link names",
            Way::Link => "a draft, which is linked and shows two names for a moment",
            Way::Rename => "a draft, which is renamed without replacing",
        }
    }

    /// Makes `bytes` the record and gives it its name, in this order: the content, on
    /// disk; the name; where the draft had none, the link that counts it, on disk; the
    /// directory, on disk.
    pub fn publish(
        mut self,
        name: &OsStr,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<Published, PublishError> {
        drop(self.spare.take());
        links::fill(&self.file, bytes).map_err(PublishError::Write)?;
        if durability == Durability::Synced {
            files::sync_all(&self.file).map_err(PublishError::Write)?;
        }
        match self.give(name) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return Ok(Published::AlreadyThere),
            Err(errno) => match self.second_try() {
                Some(draft) => return draft.publish(name, bytes, durability),
                None => return Err(PublishError::Name(errno)),
            },
        }
        if durability == Durability::Synced {
            if matches!(self.way, Way::Unnamed(_)) {
                // On disk it has no link yet. Without a journal (ext2) the directory alone
                // would name a file that counts as deleted after a power cut. And before the
                // directory: a name on disk must never be one of such a file.
                files::sync_all(&self.file).map_err(PublishError::Directory)?;
            }
            files::sync_all(self.directory).map_err(PublishError::Directory)?;
        }
        Ok(Published::Ours)
    }

    /// A draft with a name, where one without can be named no more: in a copy of the
    /// process that made it, without `/proc`. Its room was not reserved.
    fn second_try(&self) -> Option<Draft<'d>> {
        match self.way {
            Way::Unnamed(_) => {
                named(self.directory, &self.draft_name, self.bytes_max, self.links).ok()
            }
            Way::Link | Way::Rename => None,
        }
    }

    fn give(&mut self, name: &OsStr) -> Result<(), Errno> {
        match (self.way, &self.name) {
            (Way::Unnamed(way), _) => self.give_unnamed(way, name),
            (Way::Link, Some(draft)) => {
                self.must_have_name(draft)?;
                links::link_named(self.directory, draft, name)?;
                self.remove_name();
                Ok(())
            }
            (Way::Rename, Some(draft)) => {
                self.must_have_name(draft)?;
                links::rename_without_replacing(self.directory, draft, name)?;
                self.name = None;
                Ok(())
            }
            (Way::Link | Way::Rename, None) => Err(Errno::ENOENT),
        }
    }

    /// Names an unnamed file in the way that was found out, or in another: the kernel
    /// lets a process without privileges tell a file by its descriptor only if it has
    /// opened it itself, and not in a copy of that process.
    fn give_unnamed(&self, way: Unnamed, name: &OsStr) -> Result<(), Errno> {
        let other = match way {
            Unnamed::Descriptor => Unnamed::Proc,
            Unnamed::Proc => Unnamed::Descriptor,
        };
        match links::link_unnamed(&self.file, way, self.directory, name) {
            Ok(()) => Ok(()),
            Err(Errno::EEXIST) => Err(Errno::EEXIST),
            Err(errno) => match links::link_unnamed(&self.file, other, self.directory, name) {
                Err(Errno::ENOENT) => Err(errno),
                answer => answer,
            },
        }
    }

    /// Whatever was put in the draft's place must not become the record.
    fn must_have_name(&self, name: &OsStr) -> Result<(), Errno> {
        let named = files::status_at(self.directory, name)?;
        match named.identity == files::status(&self.file)?.identity {
            true => Ok(()),
            false => Err(Errno::ESTALE),
        }
    }

    fn remove_name(&mut self) {
        let Some(name) = self.name.take() else { return };
        if self.must_have_name(&name).or_else(|_| self.must_have_name(&name)).is_ok() {
            // What cannot be removed is found and replaced by the next start.
            let _ = files::unlink_at(self.directory, &name);
        }
    }
}

impl Draft<'_> {
    /// Every descriptor of its own.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.file].into_iter().chain(&self.spare).map(AsFd::as_fd)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        self.remove_name();
    }
}

#[cfg(test)]
mod tests;
