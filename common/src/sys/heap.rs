//! Memory for small things, also where the system has none to give any more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than a plain run ever has at once, and less than is worth a thought.
const FIRST_BYTES: usize = 64 << 10;

/// More than all the lines, paths and records of a run's end together.
const SPARE_BYTES: usize = 128 << 10;

/// The system's allocator between two blocks of memory that the program was loaded with.
///
/// The first block is used first: a launcher's memory is a few small things, and to ask the
/// system for a heap, and give parts of it back, would be a tenth of its start. The spare
/// block is used last: what must be said, written down or forked when the system has no more
/// memory, for this address space or at all, is still said, written and forked.
///
/// Nothing of a block is touched until it is needed, so it costs no memory until then. Only
/// what was given last is taken back.
#[derive(Debug)]
pub struct Heap {
    first: Block<FIRST_BYTES>,
    spare: Block<SPARE_BYTES>,
}

impl Heap {
    /// A heap whose blocks are untouched.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Heap {
        Heap { first: Block::new(), spare: Block::new() }
    }
}

/// Memory that is handed out from its start to its end. In this order: a page that has both
/// the count and what is counted first is one page less.
#[derive(Debug)]
#[repr(C, align(16))]
struct Block<const BYTES: usize> {
    used_bytes: AtomicUsize,
    bytes: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: each part of it is handed out to one at a time, and whoever has it owns it.
unsafe impl<const BYTES: usize> Sync for Block<BYTES> {}

impl<const BYTES: usize> Block<BYTES> {
    const fn new() -> Block<BYTES> {
        Block { bytes: UnsafeCell::new([0; BYTES]), used_bytes: AtomicUsize::new(0) }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    fn has(&self, memory: *mut u8) -> bool {
        let start = self.start() as usize;
        (start..start + BYTES).contains(&(memory as usize))
    }

    /// The next part of the block that fits, or null.
    fn take(&self, layout: Layout) -> *mut u8 {
        let start = self.start() as usize;
        let mut part = 0;
        let taken = self.used_bytes.fetch_update(Ordering::Acquire, Ordering::Relaxed, |used| {
            part = (start + used).checked_next_multiple_of(layout.align())? - start;
            part.checked_add(layout.size()).filter(|end| *end <= BYTES)
        });
        match taken {
            Ok(_) => self.start().wrapping_add(part),
            Err(_) => null_mut(),
        }
    }

    /// Makes a part that was given last as large as this; `false` where another was given
    /// after it, or the block ends before.
    fn resize_last(&self, memory: *mut u8, old_bytes: usize, new_bytes: usize) -> bool {
        let part = memory as usize - self.start() as usize;
        let Some(end) = part.checked_add(new_bytes).filter(|end| *end <= BYTES) else {
            return false;
        };
        // Whoever gets the part next sees it after all that its owner has done to it.
        let (done, failed) = (Ordering::Release, Ordering::Relaxed);
        self.used_bytes.compare_exchange(part + old_bytes, end, done, failed).is_ok()
    }
}

// SAFETY: what it hands out is the system allocator's, or a part of a block that nobody else
// has until it is given back, aligned and large enough; each is given back to where it came
// from.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = self.first.take(layout);
        if !memory.is_null() {
            return memory;
        }
        // SAFETY: the caller's promises are the same.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { self.spare.take(layout) } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if self.first.has(memory) {
            self.first.resize_last(memory, layout.size(), 0);
        } else if self.spare.has(memory) {
            self.spare.resize_last(memory, layout.size(), 0);
        } else {
            // SAFETY: it is the system allocator's, and the caller's promises are the same.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let resized = match (self.first.has(memory), self.spare.has(memory)) {
            (true, _) => self.first.resize_last(memory, layout.size(), new_size),
            (_, true) => self.spare.resize_last(memory, layout.size(), new_size),
            (false, false) => {
                // SAFETY: it is the system allocator's, and the caller's promises are the
                // same.
                let moved = unsafe { System.realloc(memory, layout, new_size) };
                if !moved.is_null() {
                    return moved;
                }
                false
            }
        };
        // What is cut down must not fail, however little memory is left.
        if resized || new_size <= layout.size() {
            return memory;
        }
        // SAFETY: the caller promises a size that makes a layout with this alignment, and
        // one that is not zero.
        let moved =
            unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
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

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).expect("a layout")
    }

    #[test]
    fn a_block_is_handed_out_once_and_aligned() {
        static BLOCK: Block<SPARE_BYTES> = Block::new();
        let parts = [(3, 1), (8, 8), (1, 1), (100, 64)].map(|(bytes, align)| {
            let part = BLOCK.take(layout(bytes, align)) as usize;
            assert_eq!(part % align, 0, "{bytes} bytes");
            (part, part + bytes)
        });
        for pair in parts.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{parts:?}");
        }
        assert!(BLOCK.take(layout(SPARE_BYTES, 1)).is_null());
        assert!(!BLOCK.take(layout(1000, 8)).is_null());
    }

    #[test]
    fn only_what_was_given_last_is_taken_back() {
        static BLOCK: Block<100> = Block::new();
        let (one, other) = (BLOCK.take(layout(40, 1)), BLOCK.take(layout(40, 1)));
        assert!(!BLOCK.resize_last(one, 40, 0));
        assert!(!BLOCK.resize_last(other, 40, 61));
        assert!(BLOCK.resize_last(other, 40, 60));
        assert!(BLOCK.take(layout(1, 1)).is_null());
        assert!(BLOCK.resize_last(other, 60, 0));
        assert_eq!(BLOCK.take(layout(60, 1)), other);
    }

    #[test]
    fn small_things_come_from_the_first_block_as_long_as_it_lasts() {
        static HEAP: Heap = Heap::new();
        // SAFETY: each pointer is used as the allocator's contract says.
        unsafe {
            let small = HEAP.alloc(layout(8, 8));
            assert!(HEAP.first.has(small));
            let large = HEAP.alloc(layout(FIRST_BYTES, 1));
            assert!(!HEAP.first.has(large) && !HEAP.spare.has(large));
            HEAP.dealloc(large, layout(FIRST_BYTES, 1));
            small.copy_from_nonoverlapping(b"contents".as_ptr(), 8);
            assert_eq!(HEAP.realloc(small, layout(8, 8), 1000), small);
            let moved = HEAP.realloc(small, layout(1000, 8), FIRST_BYTES + 1);
            assert!(!HEAP.first.has(moved));
            assert_eq!(std::slice::from_raw_parts(moved, 8), b"contents");
            HEAP.dealloc(moved, layout(FIRST_BYTES + 1, 8));
            assert_eq!(HEAP.alloc(layout(8, 8)), small);
        }
    }

    #[test]
    fn what_the_system_cannot_make_larger_is_moved_to_the_spare_block() {
        static HEAP: Heap = Heap::new();
        // SAFETY: each pointer is used as the allocator's contract says.
        unsafe {
            assert!(!HEAP.first.take(layout(FIRST_BYTES, 1)).is_null());
            let first = HEAP.spare.take(layout(4, 1));
            first.copy_from_nonoverlapping(b"text".as_ptr(), 4);
            let behind = HEAP.spare.take(layout(1, 1));
            assert!(HEAP.realloc(first, layout(4, 1), TOO_MANY).is_null());
            let larger = HEAP.realloc(first, layout(4, 1), 1000);
            assert!(larger != first && larger != behind);
            assert_eq!(std::slice::from_raw_parts(larger, 4), b"text");
            // In its place: there may be no other.
            assert_eq!(HEAP.realloc(larger, layout(1000, 1), 10), larger);
            HEAP.dealloc(larger, layout(10, 1));
        }
    }
}
