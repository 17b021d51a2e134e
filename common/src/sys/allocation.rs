//! Room on disk behind the end of a file: allocated ahead, and given back.

use super::errno::Errno;
use super::limits::{self, FILE_BYTES};
use rustix::fs::{self, FallocateFlags};
use std::os::fd::AsFd;

/// Allocates the next `bytes` behind a file that has `length` already, which stays so
/// long: fallocate(2) with `FALLOC_FL_KEEP_SIZE`. `EOPNOTSUPP` where the file system can
/// allocate nothing ahead.
pub fn allocate(file: impl AsFd, length: u64, bytes: u64) -> Result<(), Errno> {
    if bytes == 0 {
        return Ok(());
    }
    loop {
        match fs::fallocate(&file, FallocateFlags::KEEP_SIZE, length, bytes) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Gives back what is allocated behind the end of a file of this length, and never
/// lengthens the file: `EFBIG` (and a SIGXFSZ) when somebody has made it shorter meanwhile,
/// so that the system's zeros never stand in for what was cut.
///
/// ftruncate(2) to the length that a file has frees what is behind it on every file system
/// that allocates ahead; punching a hole there does nothing on ext4. It looks at the limit
/// of file sizes only when it lengthens, and under the same lock. Nothing else in this
/// process may write to a file meanwhile.
pub fn give_back(file: impl AsFd, length: u64) -> Result<(), Errno> {
    let before = limits::get(FILE_BYTES)?;
    limits::set(FILE_BYTES, before.with_soft(0))?;
    let cut = fs::ftruncate(file, length);
    // Twice: with the limit of nothing, weir could not even say what has gone wrong.
    let restore = || limits::set(FILE_BYTES, before);
    restore().or_else(|_| restore())?;
    Ok(cut?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::signals::{self, SignalSet};
    use std::io::Write;

    #[test]
    fn a_file_that_has_become_shorter_stays_so() {
        signals::block(SignalSet::ALL);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"short").expect("written");
        let limit = || limits::get(FILE_BYTES).map(limits::Values::soft);
        let before = limit();
        assert_eq!(give_back(&file, 6), Err(Errno::EFBIG));
        assert_eq!(file.metadata().expect("its status").len(), 5);
        assert_eq!(give_back(&file, 5), Ok(()));
        assert_eq!(file.metadata().expect("its status").len(), 5);
        assert_eq!(limit(), before);
    }
}
