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
//! Each refuses with `EEXIST` when the name is taken. Where none works the record
//! cannot be promised, and reserving says so.

use crate::sys::errno::Errno;
use crate::sys::files::{self, Kind};
use crate::sys::links::{self, Unnamed};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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

/// The name of a draft, for file systems without unnamed files.
#[derive(Clone, Debug)]
pub struct DraftName(pub OsString);

/// Why a draft could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveError {
    /// The system refused it, or its room.
    System(Errno),
    /// Something that is not an old draft of ours has the draft's name.
    Blocked(Kind),
    /// This file system can neither link nor rename without replacing.
    Unsupported(Errno),
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReserveError::System(errno) => write!(f, "{errno}"),
            ReserveError::Blocked(kind) => {
                write!(f, "{kind} that is not ours has its draft's name")
            }
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
    /// Where the draft has a name: that name.
    name: Option<OsString>,
    way: Way,
}

impl<'d> Draft<'d> {
    /// Makes a draft in an open directory, with room for `bytes_max` bytes.
    ///
    /// A regular file of our own under the draft's name is taken for the leftover of
    /// a killed start and replaced, so the caller must be the only one to publish
    /// this record (a launcher holds the log's lock).
    ///
    /// ```
    /// use std::ffi::OsStr;
    /// use weir_common::{Draft, DraftName, Durability, Published};
    ///
    /// let place = tempfile::tempdir()?;
    /// let directory = weir_common::sys::files::open_directory(place.path())?;
    /// let draft_name = DraftName(".record.tmp".into());
    ///
    /// let first = Draft::reserve(&directory, &draft_name, 16)?;
    /// let second = Draft::reserve(&directory, &draft_name, 16)?;
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
    ) -> Result<Draft<'d>, ReserveError> {
        let directory = directory.as_fd();
        let draft = match unnamed(directory) {
            Some(draft) => draft,
            None => named(directory, &draft_name.0)?,
        };
        links::reserve(&draft.file, bytes_max).map_err(ReserveError::System)?;
        Ok(draft)
    }

    /// Makes `bytes` the record and gives it its name, in this order: the content, on
    /// disk; the name; the directory, on disk.
    pub fn publish(
        mut self,
        name: &OsStr,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<Published, PublishError> {
        links::fill(&self.file, bytes).map_err(PublishError::Write)?;
        if durability == Durability::Synced {
            files::sync_all(&self.file).map_err(PublishError::Write)?;
        }
        match self.give(name) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return Ok(Published::AlreadyThere),
            Err(errno) => return Err(PublishError::Name(errno)),
        }
        if durability == Durability::Synced {
            files::sync_all(self.directory).map_err(PublishError::Directory)?;
        }
        Ok(Published::Ours)
    }

    fn give(&mut self, name: &OsStr) -> Result<(), Errno> {
        match (self.way, &self.name) {
            (Way::Unnamed(way), _) => links::link_unnamed(&self.file, way, self.directory, name),
            (Way::Link, Some(draft)) => {
                links::link_named(self.directory, draft, name)?;
                self.remove_name();
                Ok(())
            }
            (Way::Rename, Some(draft)) => {
                links::rename_without_replacing(self.directory, draft, name)?;
                self.name = None;
                Ok(())
            }
            (Way::Link | Way::Rename, None) => Err(Errno::ENOENT),
        }
    }

    fn remove_name(&mut self) {
        if let Some(name) = self.name.take() {
            // What cannot be removed is found and replaced by the next start.
            let _ = files::unlink_at(self.directory, &name);
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        self.remove_name();
    }
}

/// A draft without a name, if this directory and this process can have and link one.
fn unnamed(directory: BorrowedFd<'_>) -> Option<Draft<'_>> {
    let file = links::create_unnamed(directory).ok()?;
    let ways = [Unnamed::Descriptor, Unnamed::Proc];
    let way = ways.into_iter().find(|way| links::can_link_unnamed(&file, *way, directory))?;
    Some(Draft { directory, file, name: None, way: Way::Unnamed(way) })
}

/// A draft with a name, and with a way to the final one that was tried out.
fn named<'d>(directory: BorrowedFd<'d>, name: &OsStr) -> Result<Draft<'d>, ReserveError> {
    let file = match links::create_named(directory, name) {
        Err(Errno::EEXIST) => {
            remove_leftover(directory, name)?;
            links::create_named(directory, name)
        }
        other => other,
    };
    let file = file.map_err(ReserveError::System)?;
    // From here on dropping it removes the name.
    let mut draft = Draft { directory, file, name: Some(name.to_owned()), way: Way::Link };
    draft.way = try_ways(directory, name)?;
    Ok(draft)
}

fn remove_leftover(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), ReserveError> {
    let status = files::status_at(directory, name).map_err(ReserveError::System)?;
    if status.kind != Kind::Regular || status.owner != crate::sys::process::effective_user() {
        return Err(ReserveError::Blocked(status.kind));
    }
    files::unlink_at(directory, name).map_err(ReserveError::System)
}

/// Links, or else moves, the draft to a name for trying and back.
fn try_ways(directory: BorrowedFd<'_>, draft: &OsStr) -> Result<Way, ReserveError> {
    let mut trial = draft.to_owned();
    trial.push("~");
    let linked = links::link_named(directory, draft, &trial);
    if linked == Err(Errno::EEXIST) {
        remove_leftover(directory, &trial)?;
    }
    let linked = match linked {
        Err(Errno::EEXIST) => links::link_named(directory, draft, &trial),
        other => other,
    };
    if linked.is_ok() {
        files::unlink_at(directory, &trial).map_err(ReserveError::System)?;
        return Ok(Way::Link);
    }
    links::rename_without_replacing(directory, draft, &trial)
        .and_then(|()| links::rename_without_replacing(directory, &trial, draft))
        .map(|()| Way::Rename)
        .map_err(ReserveError::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    const NAME: &str = "record";
    const DRAFT: &str = ".record.tmp";

    fn with_place(check: impl FnOnce(&Path, &OwnedFd)) {
        let place = tempfile::tempdir().expect("a directory");
        let directory = files::open_directory(place.path()).expect("open");
        check(place.path(), &directory);
    }

    fn names(place: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(place).expect("list");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A draft for every way, on a file system that has them all.
    fn drafts(directory: &OwnedFd) -> impl Iterator<Item = Draft<'_>> {
        let directory = directory.as_fd();
        let ways = [Way::Unnamed(Unnamed::Proc), Way::Link, Way::Rename];
        ways.into_iter().map(move |way| {
            let mut draft = match way {
                Way::Unnamed(_) => unnamed(directory).expect("O_TMPFILE"),
                Way::Link | Way::Rename => named(directory, OsStr::new(DRAFT)).expect("a draft"),
            };
            draft.way = way;
            draft
        })
    }

    #[test]
    fn every_way_names_the_whole_record_once() {
        with_place(|place, directory| {
            for draft in drafts(directory) {
                let way = draft.way;
                let published = draft.publish(OsStr::new(NAME), b"content", Durability::Synced);
                assert_eq!(published, Ok(Published::Ours), "{way:?}");
                assert_eq!(names(place), [NAME], "{way:?}");
                let record = place.join(NAME);
                assert_eq!(std::fs::read(&record).expect("read"), b"content");
                let metadata = std::fs::metadata(&record).expect("stat");
                assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o600, 1), "{way:?}");
                std::fs::remove_file(&record).expect("remove");
            }
        });
    }

    #[test]
    fn no_way_replaces_what_is_there() {
        with_place(|place, directory| {
            std::fs::write(place.join(NAME), b"first").expect("write");
            for draft in drafts(directory) {
                let way = draft.way;
                let published = draft.publish(OsStr::new(NAME), b"second", Durability::Unsynced);
                assert_eq!(published, Ok(Published::AlreadyThere), "{way:?}");
                assert_eq!(names(place), [NAME], "{way:?}");
                assert_eq!(std::fs::read(place.join(NAME)).expect("read"), b"first");
            }
        });
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_nothing() {
        with_place(|place, directory| {
            for draft in drafts(directory) {
                drop(draft);
                assert_eq!(names(place), [""; 0]);
            }
        });
    }

    #[test]
    fn an_old_draft_of_ours_is_replaced_and_anything_else_refused() {
        with_place(|place, directory| {
            std::fs::write(place.join(DRAFT), b"old").expect("write");
            std::fs::write(place.join(".record.tmp~"), b"old").expect("write");
            let draft = named(directory.as_fd(), OsStr::new(DRAFT)).expect("replaced");
            assert_eq!(names(place), [DRAFT]);
            drop(draft);

            std::fs::create_dir(place.join(DRAFT)).expect("mkdir");
            let refused = named(directory.as_fd(), OsStr::new(DRAFT)).map(|_| ());
            assert_eq!(refused, Err(ReserveError::Blocked(Kind::Directory)));
            assert_eq!(names(place), [DRAFT]);
        });
    }

    #[test]
    fn the_room_is_allocated_before_anything_is_written() {
        with_place(|_, directory| {
            let draft =
                Draft::reserve(directory, &DraftName(DRAFT.into()), 5000).expect("reserved");
            let file = std::fs::File::from(draft.file.try_clone().expect("dup"));
            let metadata = file.metadata().expect("stat");
            assert!(metadata.blocks() * 512 >= 5000, "{} blocks", metadata.blocks());
        });
    }
}
