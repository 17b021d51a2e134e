//! What this process was started with, noted before the Rust runtime changes it.
//!
//! The runtime ignores SIGPIPE and opens `/dev/null` on closed standard descriptors
//! before `main`. A constructor runs before the runtime and notes the original
//! state; the job is then started with exactly that.

use super::files;
use super::signals::{self, SignalSet};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

static MASK: AtomicU64 = AtomicU64::new(0);
static FLAGS: AtomicU8 = AtomicU8::new(0);

const PIPE_IGNORED: u8 = 1 << 3;

/// The state that this process was started with.
#[derive(Clone, Copy, Debug)]
pub struct Inherited {
    /// The signals that were blocked.
    pub mask: SignalSet,
    /// Whether SIGPIPE was ignored.
    pub pipe_ignored: bool,
    /// Whether descriptors 0, 1 and 2 were open.
    pub standard_open: [bool; 3],
}

/// The state that this process was started with.
pub fn inherited() -> Inherited {
    let flags = FLAGS.load(Ordering::Relaxed);
    Inherited {
        mask: SignalSet::from_bits(MASK.load(Ordering::Relaxed)),
        pipe_ignored: flags & PIPE_IGNORED != 0,
        standard_open: [0, 1, 2].map(|number| flags & (1 << number) != 0),
    }
}

extern "C" fn note() {
    MASK.store(signals::current_mask().bits(), Ordering::Relaxed);
    let mut flags = 0;
    for number in 0..3 {
        if files::is_open(number) {
            flags |= 1 << number;
        }
    }
    if signals::is_ignored(libc::SIGPIPE) {
        flags |= PIPE_IGNORED;
    }
    FLAGS.store(flags, Ordering::Relaxed);
}

// SAFETY: the loader calls every pointer in .init_array once, on the only thread,
// after the C library is ready and before `main`. `note` needs nothing of the Rust
// runtime: it makes system calls and stores into atomics. glibc passes arguments
// that a function without parameters may leave alone; musl passes none.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_BEFORE_RUNTIME: extern "C" fn() = note;
