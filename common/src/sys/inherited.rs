//! What this process was started with, noted before it is changed.
//!
//! The first thing that the program does is to ignore SIGPIPE and to open `/dev/null` on
//! closed standard descriptors, so that no file of its own is taken for one of them. The job
//! is then started with exactly what there was before.

use super::files;
use super::signals::{self, SignalSet};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
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

/// Notes the state, and makes it fit for a program that opens files. Ends the process where
/// a standard descriptor is closed and there is nothing to put in its place.
///
/// To be called once, before anything is opened.
pub(super) fn take_over() {
    MASK.store(signals::current_mask().bits(), Ordering::Relaxed);
    let mut flags = 0;
    for number in 0..3 {
        if files::is_open(number) || !fill(number) {
            flags |= 1 << number;
        }
    }
    if signals::ignore_pipe() {
        flags |= PIPE_IGNORED;
    }
    FLAGS.store(flags, Ordering::Relaxed);
}

/// Puts `/dev/null` in the place of a standard descriptor: the lowest free one, if it is not
/// open. Says whether that was so.
fn fill(number: RawFd) -> bool {
    let Ok(null) = files::open_null_for_both() else { std::process::abort() };
    let is_filled = null.as_raw_fd() == number;
    if is_filled {
        // It stays for as long as the process does.
        let _ = null.into_raw_fd();
    }
    is_filled
}
