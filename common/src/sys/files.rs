//! Files and directories, always relative to an open directory.

use super::errno::Errno;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

type Result<T> = std::result::Result<T, Errno>;

/// What a name or a descriptor leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link, looked at itself.
    Symlink,
    /// A FIFO or a pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Regular => "a regular file",
            Kind::Directory => "a directory",
            Kind::Symlink => "a symbolic link",
            Kind::Fifo => "a FIFO",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
        })
    }
}

/// Which file it is, whatever its names are: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

/// The part of stat(2) that weir decides by.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// What kind of file it is.
    pub kind: Kind,
    /// Which file it is.
    pub identity: Identity,
    /// How many names it has.
    pub links: u64,
    /// The owner's user id.
    pub owner: u32,
    /// Permission bits with set-id and sticky bits (07777).
    pub mode: u32,
    /// Length in bytes.
    pub bytes: u64,
}

impl Status {
    fn of(stat: fs::Stat) -> Status {
        let raw_mode = stat.st_mode;
        let kind = match FileType::from_raw_mode(raw_mode) {
            FileType::RegularFile => Kind::Regular,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            _ => Kind::Device,
        };
        // The field types differ between architectures.
        #[allow(clippy::unnecessary_cast)]
        Status {
            kind,
            identity: Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64 },
            links: stat.st_nlink as u64,
            owner: stat.st_uid,
            mode: raw_mode & 0o7777,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
        }
    }

    /// Whether users beside owner and group may create, rename and remove names here.
    pub fn others_may_write(&self) -> bool {
        self.mode & 0o002 != 0
    }

    /// Whether only a name's owner may rename or remove it (`/tmp`).
    pub fn is_sticky(&self) -> bool {
        self.mode & 0o1000 != 0
    }
}

/// Looks at an open file: fstat(2).
pub fn status(file: impl AsFd) -> Result<Status> {
    Ok(Status::of(fs::fstat(file)?))
}

/// Looks at a name without following a symbolic link: fstatat(2).
pub fn status_at(directory: impl AsFd, name: &OsStr) -> Result<Status> {
    look_at(directory.as_fd(), name)
}

fn look_at(directory: BorrowedFd<'_>, name: &OsStr) -> Result<Status> {
    Ok(Status::of(fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

/// Looks at standard input, output or error; `None` when it is closed.
pub fn status_of_standard(number: Standard) -> Option<Status> {
    status(number.borrow()).ok()
}

/// Why a name is not a file of ours of the kind that it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strange {
    /// It is something else.
    Kind(Kind),
    /// It belongs to somebody else.
    Owner,
    /// It could not be looked at.
    System(Errno),
}

impl fmt::Display for Strange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strange::Kind(kind) => write!(f, "it is {kind}"),
            Strange::Owner => f.write_str("it belongs to somebody else"),
            Strange::System(errno) => write!(f, "{errno}"),
        }
    }
}

impl Status {
    /// Accepts only a file of this kind that belongs to the effective user.
    pub fn if_ours(self, kind: Kind) -> std::result::Result<Status, Strange> {
        if self.kind != kind {
            return Err(Strange::Kind(self.kind));
        }
        if self.owner != super::process::effective_user() {
            return Err(Strange::Owner);
        }
        Ok(self)
    }
}

/// Looks at a name that should be a file of ours, if it is there at all.
pub fn ours_at(
    directory: impl AsFd,
    name: &OsStr,
    kind: Kind,
) -> std::result::Result<Option<Status>, Strange> {
    match status_at(directory, name) {
        Ok(status) => status.if_ours(kind).map(Some),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(Strange::System(errno)),
    }
}

/// One of the three standard descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

impl Standard {
    /// Borrows the descriptor; a call on it answers `EBADF` when it is closed.
    pub fn borrow(self) -> BorrowedFd<'static> {
        match self {
            Standard::Input => rustix::stdio::stdin(),
            Standard::Output => rustix::stdio::stdout(),
            Standard::Error => rustix::stdio::stderr(),
        }
    }
}

/// Opens a path. For each kind of call with a path there is one function like this, which
/// is not generic: each instance of the library's own would have its own copy of the path
/// on the stack, and its own way to deal with a long one.
pub(super) fn open_at(
    base: BorrowedFd<'_>,
    path: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    Ok(fs::openat(base, path, flags, mode)?)
}

fn remove_at(directory: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<()> {
    Ok(fs::unlinkat(directory, name, flags)?)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory for use as the base of later calls, following links on the way.
pub fn open_directory(path: &Path) -> Result<OwnedFd> {
    open_at(here(), path.as_os_str(), DIRECTORY, Mode::empty())
}

/// Opens a directory that is no symbolic link (`ENOTDIR` or `ELOOP` when it is one).
pub fn open_directory_at(base: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    open_at(base.as_fd(), name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// Makes a directory with mode 0700: mkdirat(2).
pub fn make_directory_at(base: impl AsFd, name: &OsStr) -> Result<()> {
    Ok(fs::mkdirat(base, name, Mode::RWXU)?)
}

/// Removes an empty directory.
pub fn remove_directory_at(base: impl AsFd, name: &OsStr) -> Result<()> {
    remove_at(base.as_fd(), name, AtFlags::REMOVEDIR)
}

/// Opens a directory as a job's working directory; it need not be readable.
pub fn open_working_directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open_at(here(), path.as_os_str(), flags, Mode::empty())
}

/// Opens `/dev/null` for reading.
pub fn open_null() -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    open_at(here(), OsStr::new("/dev/null"), flags, Mode::empty())
}

/// Opens `/dev/null` for reading and writing, to stand in for a standard descriptor: the one
/// that is not close-on-exec.
pub(super) fn open_null_for_both() -> Result<OwnedFd> {
    Ok(fs::open("/dev/null", OFlags::RDWR, Mode::empty())?)
}

const LOG: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Creates a log with mode 0600; `EEXIST` when the name is taken by anything at all.
pub fn create_log_at(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    let mode = Mode::RUSR | Mode::WUSR;
    create_with(directory.as_fd(), name, LOG | OFlags::CREATE | OFlags::EXCL, mode)
}

/// Creates a file with exactly this mode, or leaves none.
pub(crate) fn create_with(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let file = open_at(directory, name, flags, mode)?;
    // The umask may have taken something away.
    if let Err(errno) = fs::fchmod(&file, mode) {
        let _ = unlink_at(directory, name);
        return Err(errno.into());
    }
    Ok(file)
}

/// Opens an existing log for appending. Never blocks, and never follows a link.
pub fn open_log_at(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    // Non-blocking means nothing to a regular file; it keeps a FIFO that was planted
    // a moment ago, or somebody's lease, from hanging the open.
    open_at(directory.as_fd(), name, LOG | OFlags::NONBLOCK, Mode::empty())
}

/// The name of an open descriptor in `/proc`, by which what it leads to can be opened once
/// more or linked.
pub(super) fn name_in_proc(descriptor: impl AsFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd())
}

/// Opens the file behind a descriptor once more, for writing at its end, by its name under
/// `/proc/self/fd`: a description of our own, for a lock that ends with us.
pub fn reopen_log(file: impl AsFd) -> Result<OwnedFd> {
    // The link of /proc is to be followed; what it leads to is open already.
    let flags = (LOG | OFlags::NONBLOCK).difference(OFlags::NOFOLLOW);
    open_at(here(), name_in_proc(file).as_ref(), flags, Mode::empty())
}

/// The directory that relative paths start from.
pub fn here() -> BorrowedFd<'static> {
    fs::CWD
}

/// Opens a file for reading. Never blocks, and never follows a link in the last component.
pub fn open_record_at(directory: impl AsFd, path: &Path) -> Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    open_at(directory.as_fd(), path.as_os_str(), flags, Mode::empty())
}

/// Holds on to the file under a name, whatever it is, without opening it for anything:
/// as long as this lives, no other file gets its identity.
pub fn pin_at(directory: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open_at(directory.as_fd(), name, flags, Mode::empty())
}

/// Removes a name.
pub fn unlink_at(directory: impl AsFd, name: &OsStr) -> Result<()> {
    remove_at(directory.as_fd(), name, AtFlags::empty())
}

/// The outcome of asking for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// It is ours.
    Taken,
    /// Somebody else holds it.
    Busy,
}

/// Takes the exclusive flock(2) of an open file, without waiting for it.
pub fn lock(file: impl AsFd) -> Result<Lock> {
    try_lock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Takes the shared flock(2) of an open file or directory, without waiting for it: others
/// may share it, and nobody has it exclusively.
pub fn lock_shared(file: impl AsFd) -> Result<Lock> {
    try_lock(file, FlockOperation::NonBlockingLockShared)
}

fn try_lock(file: impl AsFd, operation: FlockOperation) -> Result<Lock> {
    match fs::flock(file, operation) {
        Ok(()) => Ok(Lock::Taken),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Lock::Busy),
        Err(other) => Err(other.into()),
    }
}

/// Puts data and length on disk: fdatasync(2).
pub fn sync_data(file: impl AsFd) -> Result<()> {
    Ok(fs::fdatasync(file)?)
}

/// Puts a file with its metadata, or a directory with its names, on disk: fsync(2).
pub fn sync_all(file: impl AsFd) -> Result<()> {
    Ok(fs::fsync(file)?)
}

/// How an inherited descriptor was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// It can be written to.
    pub writable: bool,
    /// Every write goes to the end of the file.
    pub append: bool,
}

/// Asks how a descriptor was opened: `F_GETFL`.
pub fn opened(file: impl AsFd) -> Result<Opened> {
    let flags = fs::fcntl_getfl(file)?;
    let access = flags & OFlags::ACCMODE;
    Ok(Opened {
        writable: (access == OFlags::WRONLY || access == OFlags::RDWR)
            && !flags.contains(OFlags::PATH),
        append: flags.contains(OFlags::APPEND),
    })
}

/// Whether a number is an open descriptor.
pub fn is_open(number: RawFd) -> bool {
    // SAFETY: F_GETFD only looks; a closed descriptor answers -1.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// Another descriptor of the same description, close-on-exec.
pub fn duplicate(file: impl AsFd) -> Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(file, 3)?)
}

/// Takes over a descriptor that the caller handed down by its number, and keeps it
/// from the job. The standard three stay open as well, since they have other uses.
///
/// Ask for each number once, and make sure that all of them are open ([`is_open`]) before
/// anything else is opened, the first of these included: a number that this process has
/// given to a file of its own would be taken for the caller's.
pub fn take_inherited(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: the borrow ends with this call, and a number that is not open only
    // makes it answer EBADF.
    let given = unsafe { BorrowedFd::borrow_raw(number) };
    let own = duplicate(given)?;
    if number > 2 {
        // SAFETY: the number is open (it was duplicated just now) and the caller's;
        // nothing in this process owns it, so closing it here closes it once.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
    Ok(own)
}
