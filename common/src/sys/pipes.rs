//! What a pipe can do beyond being read: splice(2), and its capacity, fcntl(2).

use super::errno::Errno;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use std::os::fd::{AsFd, OwnedFd};

/// The most that a pipe holds, unless root has raised it: `/proc/sys/fs/pipe-max-size`.
pub const CAPACITY_BYTES_MAX: usize = 1 << 20;

/// How many bytes a pipe holds before its writer has to wait.
pub fn capacity(pipe: impl AsFd) -> Result<usize, Errno> {
    Ok(fcntl_getpipe_size(pipe)?)
}

/// Makes a pipe hold so many bytes, a power of two, if what is in it fits.
pub fn set_capacity(pipe: impl AsFd, bytes: usize) -> Result<(), Errno> {
    Ok(fcntl_setpipe_size(pipe, bytes).map(drop)?)
}

/// Whether the user may have [`CAPACITY_BYTES_MAX`] more in pipes.
///
/// What an ordinary user's pipes can hold together is limited
/// (`/proc/sys/fs/pipe-user-pages-soft`), and beyond it every new pipe of his shrinks to
/// two pages. How much of it is used the kernel does not say; a pipe of our own tries.
pub fn have_room() -> bool {
    pipe_with(PipeFlags::CLOEXEC)
        .is_ok_and(|(reader, _writer)| set_capacity(&reader, CAPACITY_BYTES_MAX).is_ok())
}

/// The device that takes everything: `/dev/null`, or `ENODEV` where something else has
/// its name.
#[derive(Debug)]
pub struct Null(OwnedFd);

impl Null {
    /// Opens it for writing.
    pub fn open() -> Result<Null, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let null = fs::open("/dev/null", flags, Mode::empty())?;
        let status = fs::fstat(&null)?;
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice;
        if !is_device || status.st_rdev != fs::makedev(1, 3) {
            return Err(Errno::ENODEV);
        }
        Ok(Null(null))
    }

    /// Moves what a pipe holds here, at most so many bytes, and says how many; 0 is the
    /// end. Copies nothing and never waits: `EAGAIN` when there is nothing.
    pub fn take(&self, pipe: impl AsFd, bytes_max: usize) -> Result<usize, Errno> {
        let splice = || {
            let flags = SpliceFlags::NONBLOCK;
            rustix::pipe::splice(&pipe, None, &self.0, None, bytes_max, flags)
        };
        Ok(rustix::io::retry_on_intr(splice)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};

    #[test]
    fn null_takes_what_is_there_and_sees_the_end() {
        let null = Null::open().expect("/dev/null");
        let (reader, mut writer) = pipe().expect("a pipe");
        assert_eq!(null.take(&reader, 100), Err(Errno::EAGAIN));
        writer.write_all(b"twelve bytes").expect("written");
        assert_eq!(null.take(&reader, 7), Ok(7));
        assert_eq!(null.take(&reader, 100), Ok(5));
        drop(writer);
        assert_eq!(null.take(&reader, 100), Ok(0));
    }

    #[test]
    fn a_pipe_holds_what_it_is_asked_to_hold_but_not_less_than_is_in_it() {
        let (reader, mut writer) = pipe().expect("a pipe");
        assert_eq!(set_capacity(&reader, 256 << 10), Ok(()));
        assert_eq!(capacity(&writer), Ok(256 << 10));
        writer.write_all(&[0; 200 << 10]).expect("written without a reader");
        assert_eq!(set_capacity(&reader, 64 << 10), Err(Errno::EBUSY));
        assert_eq!(capacity(&reader), Ok(256 << 10));
    }
}
