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
use crate::sys::files::{self, Kind, Lock, Strange};
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
    /// Where the draft has a name: that name.
    name: Option<OsString>,
    /// The name that it has, or would have.
    draft_name: DraftName,
    bytes_max: usize,
    way: Way,
}

impl<'d> Draft<'d> {
    /// Makes a draft in an open directory, with room for `bytes_max` bytes.
    ///
    /// Where the draft has a name, it is locked (flock) as long as it lives. A small
    /// regular file of our own under that name that nobody has locked is taken for the
    /// leftover of a killed start and replaced; anything else is left alone, and refused.
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
        let draft = match unnamed(directory, draft_name, bytes_max) {
            Some(draft) => draft,
            None => named(directory, draft_name, bytes_max)?,
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
            Err(errno) => match self.second_try() {
                Some(draft) => return draft.publish(name, bytes, durability),
                None => return Err(PublishError::Name(errno)),
            },
        }
        if durability == Durability::Synced {
            files::sync_all(self.directory).map_err(PublishError::Directory)?;
        }
        Ok(Published::Ours)
    }

    /// A draft with a name, where one without can be named no more: in a copy of the
    /// process that made it, without `/proc`. Its room was not reserved.
    fn second_try(&self) -> Option<Draft<'d>> {
        match self.way {
            Way::Unnamed(_) => named(self.directory, &self.draft_name, self.bytes_max).ok(),
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
        if self.must_have_name(&name).is_ok() {
            // What cannot be removed is found and replaced by the next start.
            let _ = files::unlink_at(self.directory, &name);
        }
    }
}

impl AsFd for Draft<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        self.remove_name();
    }
}

/// A draft without a name, if this directory and this process can have and link one.
fn unnamed<'d>(
    directory: BorrowedFd<'d>,
    draft_name: &DraftName,
    bytes_max: usize,
) -> Option<Draft<'d>> {
    let file = links::create_unnamed(directory).ok()?;
    let ways = [Unnamed::Descriptor, Unnamed::Proc];
    let way = ways.into_iter().find(|way| links::can_tell_unnamed(&file, *way, directory))?;
    if !links::links_unnamed(directory) {
        // Seen to be believed, with another one: a file that has lost its first name
        // cannot get a second.
        let other = links::create_unnamed(directory).ok()?;
        links::link_unnamed(&other, way, directory, &draft_name.trial()).ok()?;
        files::unlink_at(directory, &draft_name.trial()).ok()?;
    }
    let (draft_name, way) = (draft_name.clone(), Way::Unnamed(way));
    Some(Draft { directory, file, name: None, draft_name, bytes_max, way })
}

/// A draft with a name, and with a way to the final one that was tried out.
fn named<'d>(
    directory: BorrowedFd<'d>,
    draft_name: &DraftName,
    bytes_max: usize,
) -> Result<Draft<'d>, ReserveError> {
    let (name, trial) = (draft_name.0.as_os_str(), &draft_name.trial());
    remove_leftover(directory, trial, bytes_max)?;
    remove_leftover(directory, name, bytes_max)?;
    let file = links::create_named(directory, name).map_err(ReserveError::System)?;
    // From here on dropping it removes the name.
    let (draft_name, own_name) = (draft_name.clone(), Some(name.to_owned()));
    let mut draft =
        Draft { directory, file, name: own_name, draft_name, bytes_max, way: Way::Link };
    // Locked before anybody else could take it for a leftover, or else theirs.
    match files::lock(&draft.file) {
        Ok(Lock::Taken) => {}
        Ok(Lock::Busy) => return Err(ReserveError::Busy),
        Err(errno) => return Err(ReserveError::System(errno)),
    }
    draft.must_have_name(name).map_err(|_| ReserveError::Busy)?;
    draft.try_ways(trial)?;
    Ok(draft)
}

/// Removes what a killed start has left under a draft's name, and nothing else.
fn remove_leftover(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    bytes_max: usize,
) -> Result<(), ReserveError> {
    let Some(status) =
        files::ours_at(directory, name, Kind::Regular).map_err(ReserveError::Blocked)?
    else {
        return Ok(());
    };
    if status.bytes > bytes_max as u64 {
        return Err(ReserveError::Blocked(Strange::Kind(Kind::Regular)));
    }
    let file = files::open_log_at(directory, name).map_err(ReserveError::System)?;
    match files::lock(&file) {
        Ok(Lock::Taken) => {}
        Ok(Lock::Busy) => return Err(ReserveError::Busy),
        Err(errno) => return Err(ReserveError::System(errno)),
    }
    // It may have become a record meanwhile, and another draft have its name.
    match files::status_at(directory, name) {
        Ok(named) if named.identity == status.identity => {
            files::unlink_at(directory, name).map_err(ReserveError::System)
        }
        _ => Err(ReserveError::Busy),
    }
}

impl Draft<'_> {
    /// Links, or else moves, the draft to a name for trying and back.
    fn try_ways(&mut self, trial: &OsStr) -> Result<(), ReserveError> {
        let Some(name) = self.name.clone() else { return Ok(()) };
        if links::link_named(self.directory, &name, trial).is_ok() {
            self.way = Way::Link;
            return files::unlink_at(self.directory, trial).map_err(ReserveError::System);
        }
        self.way = Way::Rename;
        let there = links::rename_without_replacing(self.directory, &name, trial);
        there.map_err(ReserveError::Unsupported)?;
        // Should it not come back, dropping it removes it from where it is.
        self.name = Some(trial.to_owned());
        let back = links::rename_without_replacing(self.directory, trial, &name);
        back.map_err(ReserveError::Unsupported)?;
        self.name = Some(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    const NAME: &str = "record";
    const DRAFT: &str = ".record.tmp";
    const TRIAL: &str = ".record.tmp~";

    fn with_name(directory: BorrowedFd<'_>) -> Result<Draft<'_>, ReserveError> {
        named(directory, &DraftName(DRAFT.into()), 16)
    }

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
                Way::Unnamed(_) => {
                    unnamed(directory, &DraftName(DRAFT.into()), 16).expect("O_TMPFILE")
                }
                Way::Link | Way::Rename => with_name(directory).expect("a draft"),
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
            let directory = directory.as_fd();
            std::fs::write(place.join(DRAFT), b"old").expect("write");
            std::fs::write(place.join(TRIAL), b"old").expect("write");
            let draft = with_name(directory).expect("replaced");
            assert_eq!(names(place), [DRAFT]);
            assert_eq!(with_name(directory).map(|_| ()), Err(ReserveError::Busy));
            assert_eq!(names(place), [DRAFT]);
            drop(draft);
            assert_eq!(names(place), [""; 0]);

            std::fs::write(place.join(DRAFT), b"seventeen bytes..").expect("write");
            let large = ReserveError::Blocked(Strange::Kind(Kind::Regular));
            assert_eq!(with_name(directory).map(|_| ()), Err(large));
            std::fs::remove_file(place.join(DRAFT)).expect("remove");
            std::fs::create_dir(place.join(DRAFT)).expect("mkdir");
            let folder = ReserveError::Blocked(Strange::Kind(Kind::Directory));
            assert_eq!(with_name(directory).map(|_| ()), Err(folder));
            assert_eq!(names(place), [DRAFT]);
        });
    }

    #[test]
    fn what_takes_a_drafts_place_never_becomes_the_record() {
        with_place(|place, directory| {
            for way in [Way::Link, Way::Rename] {
                let mut draft = with_name(directory.as_fd()).expect("a draft");
                draft.way = way;
                std::fs::remove_file(place.join(DRAFT)).expect("remove");
                std::fs::write(place.join(DRAFT), b"other").expect("write");
                let published = draft.publish(OsStr::new(NAME), b"record", Durability::Synced);
                assert_eq!(published, Err(PublishError::Name(Errno::ESTALE)), "{way:?}");
                assert_eq!(names(place), [DRAFT], "{way:?}");
                std::fs::remove_file(place.join(DRAFT)).expect("remove");
            }
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
