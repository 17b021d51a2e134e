//! Where the bytes go that nobody keeps.

use std::os::fd::AsFd;
use weir_common::Errno;
use weir_common::sys::pipes::{CAPACITY_BYTES_MAX, Null};

/// The way out of a pipe that copies nothing.
#[derive(Debug)]
pub(crate) enum Void {
    Unopened,
    Open(Null),
    /// There is no such device here, or no such call.
    Missing,
}

impl Void {
    /// Throws away what the pipe holds, and says how much it was; 0 is the end. Never waits.
    /// `None` says that it can only be read.
    pub(crate) fn take(&mut self, pipe: impl AsFd) -> Option<Result<usize, Errno>> {
        if let Void::Unopened = self {
            *self = Null::open().map_or(Void::Missing, Void::Open);
        }
        let Void::Open(null) = self else { return None };
        match null.take(pipe, CAPACITY_BYTES_MAX) {
            Err(errno) if errno != Errno::EAGAIN => {
                *self = Void::Missing;
                None
            }
            outcome => Some(outcome),
        }
    }
}
