//! What a file system says of itself: statfs(2).

use super::errno::Errno;
use rustix::fs;
use std::os::fd::AsFd;

/// What a file system says of its free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Bytes available to an ordinary user.
    Bytes(u64),
    /// It has no fixed size (ramfs, an unlimited tmpfs).
    Unlimited,
}

/// Asks the file system below an open directory: fstatvfs(3), `f_bavail × f_frsize`.
pub fn space(directory: impl AsFd) -> Result<Space, Errno> {
    let told = fs::fstatvfs(directory)?;
    if told.f_blocks == 0 {
        return Ok(Space::Unlimited);
    }
    Ok(Space::Bytes(told.f_bavail.saturating_mul(told.f_frsize)))
}

/// How many more files an ordinary user can make: `f_favail`. `None` where their number is
/// not bounded (btrfs, ramfs).
pub fn free_inodes(directory: impl AsFd) -> Result<Option<u64>, Errno> {
    let told = fs::fstatvfs(directory)?;
    Ok((told.f_files > 0).then_some(told.f_favail))
}

// From statfs(2).
const BTRFS: u64 = 0x9123_683e;
const EXT: u64 = 0xef53;
const F2FS: u64 = 0xf2f5_2010;
const OVERLAY: u64 = 0x794c_7630;
const RAMFS: u64 = 0x8584_58f6;
const TMPFS: u64 = 0x0102_1994;
const XFS: u64 = 0x5846_5342;

/// Which file system it is, asked once: fstatfs(2).
#[derive(Clone, Copy, Debug)]
pub struct FileSystem(Option<u64>);

impl FileSystem {
    /// That of an open directory. One that cannot be asked is none that is known.
    pub fn of(directory: impl AsFd) -> FileSystem {
        // The field's type differs between architectures; the numbers have 32 bits.
        #[allow(clippy::unnecessary_cast)]
        let kind = fs::fstatfs(directory).map(|told| told.f_type as u64 & 0xffff_ffff);
        FileSystem(kind.ok())
    }

    fn is_one_of(self, known: &[u64]) -> bool {
        self.0.is_some_and(|kind| known.contains(&kind))
    }

    /// Whether it is one of those that are known to link what they make unnamed. Others
    /// (FUSE, network file systems) may have the one without the other.
    pub fn links_unnamed(self) -> bool {
        self.is_one_of(&[BTRFS, EXT, F2FS, OVERLAY, RAMFS, TMPFS, XFS])
    }

    /// Whether it is in memory only, as far as it can be seen: below an overlay it cannot.
    pub fn is_in_memory(self) -> bool {
        self.is_one_of(&[RAMFS, TMPFS])
    }

    /// Whether it is btrfs.
    pub fn is_btrfs(self) -> bool {
        self.is_one_of(&[BTRFS])
    }
}
