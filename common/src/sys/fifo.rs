//! The FIFO between the job and the drainer: fifo(7).

use super::errno::Errno;
use super::files::{self, Identity, Kind};
use rustix::fs::{self, FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

/// Creates a FIFO with mode 0600 (less the umask): mknodat(2).
pub fn create_at(directory: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(fs::mknodat(directory, name, FileType::Fifo, mode, 0)?)
}

/// Both ends of a FIFO.
#[derive(Debug)]
pub struct Ends {
    /// Non-blocking, for the drainer.
    pub reader: OwnedFd,
    /// Blocking and write-only: the job's standard output and error.
    pub writer: OwnedFd,
}

/// Opens both ends of this very FIFO, the reader first. Never blocks.
///
/// The writer must be open before the first read: a FIFO without one reads as ended.
/// `ESTALE` says that the name leads to something else.
pub fn open_at(directory: impl AsFd, name: &OsStr, identity: Identity) -> Result<Ends, Errno> {
    let common = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |mode| files::open_at(directory.as_fd(), name, common | mode, Mode::empty());
    let reader = open(OFlags::RDONLY)?;
    // Non-blocking, so that a FIFO that was swapped in answers ENXIO instead of hanging.
    let writer = open(OFlags::WRONLY)?;
    for end in [&reader, &writer] {
        // What was swapped in may have got the inode of the FIFO that was swapped out.
        let end = files::status(end)?.if_ours(Kind::Fifo).map_err(|_| Errno::ESTALE)?;
        if end.identity != identity {
            return Err(Errno::ESTALE);
        }
    }
    // The job's end blocks, as a program expects of its standard output.
    fs::fcntl_setfl(&writer, OFlags::empty())?;
    Ok(Ends { reader, writer })
}

/// Lets other users open the FIFO for writing, by way of a descriptor that they have:
/// mode 0622.
pub fn let_others_reopen(end: impl AsFd) -> Result<(), Errno> {
    Ok(fs::fchmod(end, Mode::from_raw_mode(0o622))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_fifo_under_the_name_is_not_opened() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = files::open_directory(place.path()).expect("open");
        let identity = |name: &str| {
            create_at(&directory, name.as_ref()).expect("a FIFO");
            files::status_at(&directory, name.as_ref()).expect("stat").identity
        };
        let (one, other) = (identity("one"), identity("other"));
        assert!(open_at(&directory, "one".as_ref(), one).is_ok());
        let opened = open_at(&directory, "one".as_ref(), other).map(drop);
        assert_eq!(opened, Err(Errno::ESTALE));
    }

    #[test]
    fn what_has_got_the_inode_of_a_fifo_that_is_gone_is_not_opened() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = files::open_directory(place.path()).expect("open");
        std::fs::write(place.path().join("file"), "not from the job").expect("written");
        let identity = files::status_at(&directory, "file".as_ref()).expect("stat").identity;
        let opened = open_at(&directory, "file".as_ref(), identity).map(drop);
        assert_eq!(opened, Err(Errno::ESTALE));
    }
}
