//! Memory straight from the kernel: mmap(2).

use super::errno::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::slice;

/// A block of zeroed memory of its own, of which nothing is used until it is touched.
///
/// An allocator may clear a block itself, and touch all of it; and Rust's ends the process
/// when it has none to give.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is plain memory, and this owns it alone.
unsafe impl Send for Pages {}
// SAFETY: as above; whoever shares it can only read.
unsafe impl Sync for Pages {}

impl Pages {
    /// So many bytes, more than none.
    pub fn new(bytes: usize) -> Result<Pages, Errno> {
        // SAFETY: without a wanted address and without MAP_FIXED, nothing that is mapped
        // already is touched.
        let start = unsafe {
            mmap_anonymous(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(Errno::ENOMEM)?;
        Ok(Pages { start, bytes })
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is that long, is zeroed, and lives as long as this.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has it.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: it is this one's own mapping, whole, and no borrow of it is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zeroed_and_can_be_written() {
        let mut pages = Pages::new(10_000).expect("memory");
        assert!(*pages == [0; 10_000]);
        pages[9_999] = 1;
        assert_eq!((pages[9_998], pages[9_999]), (0, 1));
    }

    #[test]
    fn what_there_is_not_is_an_error() {
        assert_eq!(Pages::new(usize::MAX >> 1).map(drop), Err(Errno::ENOMEM));
    }
}
