//! How a finished file gets its name without replacing anything: link(2), rename(2).

use super::errno::Errno;
use super::file_system::FileSystem;
use super::files::{self, name_in_proc};
use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags, RenameFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

type Result<T> = std::result::Result<T, Errno>;

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Creates a file without a name, mode 0600: `O_TMPFILE`.
pub fn create_unnamed(directory: impl AsFd) -> Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = files::open_at(directory.as_fd(), OsStr::new("."), flags, OWNER_ONLY)?;
    fs::fchmod(&file, OWNER_ONLY)?;
    Ok(file)
}

/// Creates a file under a name that must be free, mode 0600.
pub fn create_named(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    files::create_with(directory.as_fd(), name, flags, OWNER_ONLY)
}

/// Allocates the first `bytes` of a file, so that writing them later needs no room.
pub fn reserve(file: impl AsFd, bytes: usize) -> Result<()> {
    let unsupported = |errno| {
        matches!(
            errno,
            rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::PERM
        )
    };
    match fs::fallocate(&file, FallocateFlags::empty(), 0, bytes as u64) {
        Err(errno) if unsupported(errno) => write_at_start(file, &vec![0; bytes]),
        other => Ok(other?),
    }
}

/// Room that a write into allocated room may need besides, as a file without a name, which
/// gives it back when it is closed; `None` where none is needed.
///
/// Btrfs charges a quota group for the nodes of its own trees that the write may change, and
/// refuses it when the group is full. What is closed is credited at once.
pub fn spare(directory: impl AsFd, system: FileSystem) -> Result<Option<OwnedFd>> {
    // A few nodes of the usual 16 KiB: half of it has been seen to be enough for two records.
    const BYTES: usize = 128 << 10;
    if !system.is_btrfs() {
        return Ok(None);
    }
    // A system that keeps them from weir has quota groups hardly ever.
    let Ok(file) = create_unnamed(directory) else { return Ok(None) };
    reserve(&file, BYTES)?;
    Ok(Some(file))
}

/// Makes `bytes` the whole content of a file.
pub fn fill(file: impl AsFd, bytes: &[u8]) -> Result<()> {
    write_at_start(&file, bytes)?;
    Ok(fs::ftruncate(file, bytes.len() as u64)?)
}

fn write_at_start(file: impl AsFd, bytes: &[u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(&file, &bytes[done..], done as u64) {
            Ok(0) => return Err(Errno::ENOSPC),
            Ok(more) => done += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// How an unnamed file can be told to linkat(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// By its descriptor (`AT_EMPTY_PATH`): root, or Linux 6.10 and later.
    Descriptor,
    /// By its name under `/proc/self/fd`.
    Proc,
}

/// Gives an unnamed file a name. `EEXIST` when the name is taken, by anything at all.
pub fn link_unnamed(
    file: impl AsFd,
    way: Unnamed,
    directory: impl AsFd,
    name: &OsStr,
) -> Result<()> {
    let new = (directory.as_fd(), name);
    match way {
        Unnamed::Descriptor => link((file.as_fd(), OsStr::new("")), new, AtFlags::EMPTY_PATH),
        Unnamed::Proc => {
            let path = name_in_proc(file);
            link((files::here(), path.as_ref()), new, AtFlags::SYMLINK_FOLLOW)
        }
    }
}

/// A name in a directory.
type Entry<'a> = (BorrowedFd<'a>, &'a OsStr);

fn link(old: Entry<'_>, new: Entry<'_>, flags: AtFlags) -> Result<()> {
    Ok(fs::linkat(old.0, old.1, new.0, new.1, flags)?)
}

/// Whether this process may tell an unnamed file in this way, found out without leaving a
/// name: the name `.` is always taken, and linkat(2) says so only when it has accepted
/// the file. What the file system says to a real name, this does not tell
/// ([`FileSystem::links_unnamed`]).
pub fn can_tell_unnamed(file: impl AsFd, way: Unnamed, directory: impl AsFd) -> bool {
    link_unnamed(file, way, directory, OsStr::new(".")) == Err(Errno::EEXIST)
}

/// Gives a file a second name. `EEXIST` when that name is taken.
pub fn link_named(directory: impl AsFd, old: &OsStr, new: &OsStr) -> Result<()> {
    let directory = directory.as_fd();
    link((directory, old), (directory, new), AtFlags::empty())
}

/// Moves a name to another that must be free: `RENAME_NOREPLACE`.
pub fn rename_without_replacing(directory: impl AsFd, old: &OsStr, new: &OsStr) -> Result<()> {
    let directory = directory.as_fd();
    Ok(fs::renameat_with(directory, old, directory, new, RenameFlags::NOREPLACE)?)
}
