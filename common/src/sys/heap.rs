//! Memory for small things, also where the system has none to give any more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than all the lines, paths and records of a run's end together.
const SPARE_BYTES: usize = 128 << 10;

/// The system's allocator, and behind it a block of memory that the program was loaded
/// with: what must be said, written down or forked when the system has no more memory, for
/// this address space or at all, is still said, written and forked.
///
/// Nothing of the block is touched until it is needed, so it costs no memory until then.
/// What it has given is not taken back.
#[derive(Debug)]
pub struct Heap {
    spare: Spare,
    used_bytes: AtomicUsize,
}

#[derive(Debug)]
#[repr(align(16))]
struct Spare(UnsafeCell<[u8; SPARE_BYTES]>);

// SAFETY: each part of it is handed out once, and whoever has it owns it.
unsafe impl Sync for Spare {}

impl Heap {
    /// A heap whose spare block is untouched.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Heap {
        Heap { spare: Spare(UnsafeCell::new([0; SPARE_BYTES])), used_bytes: AtomicUsize::new(0) }
    }

    fn start(&self) -> *mut u8 {
        self.spare.0.get().cast()
    }

    fn is_spare(&self, memory: *mut u8) -> bool {
        let start = self.start() as usize;
        (start..start + SPARE_BYTES).contains(&(memory as usize))
    }

    /// The next part of the block that fits, or null.
    fn spare(&self, layout: Layout) -> *mut u8 {
        let start = self.start() as usize;
        let mut part = 0;
        let taken = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            part = (start + used).checked_next_multiple_of(layout.align())? - start;
            part.checked_add(layout.size()).filter(|end| *end <= SPARE_BYTES)
        });
        match taken {
            Ok(_) => self.start().wrapping_add(part),
            Err(_) => null_mut(),
        }
    }
}

// SAFETY: what it hands out is the system allocator's, or a part of the spare block that
// nobody else has or will have, aligned and large enough; each is given back to where it
// came from.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { self.spare(layout) } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !self.is_spare(memory) {
            // SAFETY: it is the system allocator's, and the caller's promises are the same.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !self.is_spare(memory) {
            // SAFETY: it is the system allocator's, and the caller's promises are the same.
            let moved = unsafe { System.realloc(memory, layout, new_size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // What is cut down must not fail, however little is left of the block.
        if new_size <= layout.size() {
            return memory;
        }
        // SAFETY: the caller promises a size that makes a layout with this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let moved = self.spare(new_layout);
        if !moved.is_null() {
            // SAFETY: both have at least so many bytes, and no part is handed out twice.
            unsafe { memory.copy_to_nonoverlapping(moved, layout.size().min(new_size)) };
            // SAFETY: it has been moved away from, and is the caller's to give back.
            unsafe { self.dealloc(memory, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any system gives.
    const TOO_MANY: usize = isize::MAX as usize - 4096;

    #[test]
    fn the_spare_block_is_handed_out_once_and_aligned() {
        static HEAP: Heap = Heap::new();
        let layout = |bytes, align| Layout::from_size_align(bytes, align).expect("a layout");
        let parts = [(3, 1), (8, 8), (1, 1), (100, 64)].map(|(bytes, align)| {
            let part = HEAP.spare(layout(bytes, align)) as usize;
            assert_eq!(part % align, 0, "{bytes} bytes");
            (part, part + bytes)
        });
        for pair in parts.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{parts:?}");
        }
        assert!(HEAP.spare(layout(SPARE_BYTES, 1)).is_null());
        assert!(!HEAP.spare(layout(1000, 8)).is_null());
    }

    #[test]
    fn what_the_system_cannot_make_larger_is_moved_to_the_spare_block() {
        static HEAP: Heap = Heap::new();
        let layout = Layout::from_size_align(4, 1).expect("a layout");
        // SAFETY: each pointer is used as the allocator's contract says.
        unsafe {
            let first = HEAP.spare(layout);
            first.copy_from_nonoverlapping(b"text".as_ptr(), 4);
            let larger = HEAP.realloc(first, layout, 1000);
            assert!(HEAP.is_spare(larger) && larger != first);
            assert_eq!(std::slice::from_raw_parts(larger, 4), b"text");
            let larger_layout = Layout::from_size_align(1000, 1).expect("a layout");
            assert!(HEAP.realloc(larger, larger_layout, TOO_MANY).is_null());
            // In its place: there may be no other.
            assert_eq!(HEAP.realloc(larger, larger_layout, 10), larger);
            HEAP.dealloc(larger, layout);
            let ordinary = HEAP.alloc(layout);
            assert!(!HEAP.is_spare(ordinary));
            HEAP.dealloc(ordinary, layout);
        }
    }
}
