//! A second reader of the kept bytes, who cannot harm the log.

use crate::until::Until;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use weir_common::Errno;
use weir_common::sys::streams::{self, PIPE_ATOMIC_BYTES};

/// How far a tee has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is pending.
    CaughtUp,
    /// An interrupt came first; what is pending stays so.
    Interrupted,
}

/// Copies kept bytes to another descriptor until that fails.
#[derive(Debug)]
pub(crate) struct Tee<'a> {
    /// `None` where there is none, or once it has ended.
    copy: Option<BorrowedFd<'a>>,
    /// The part of the drain's buffer that is still to be copied.
    pending: Range<usize>,
    failure: Option<Errno>,
}

impl<'a> Tee<'a> {
    pub(crate) fn to(copy: Option<BorrowedFd<'a>>) -> Tee<'a> {
        Tee { copy, pending: 0..0, failure: None }
    }

    pub(crate) fn failure(&self) -> Option<Errno> {
        self.failure
    }

    /// Ends it; what is pending is not copied.
    pub(crate) fn end(&mut self) {
        self.copy = None;
    }

    /// The first `bytes` of the buffer are to be copied.
    pub(crate) fn want(&mut self, bytes: usize) {
        self.pending = 0..bytes;
    }

    /// Copies what is pending, at its reader's pace.
    pub(crate) fn catch_up(&mut self, buffer: &[u8], until: Until<'_>) -> Progress {
        while let (Some(copy), false) = (self.copy, self.pending.is_empty()) {
            match copy_some(copy, &buffer[self.pending.clone()], until) {
                Ok(Some(taken)) => self.pending.start += taken,
                Ok(None) => return Progress::Interrupted,
                Err(errno) => {
                    self.copy = None;
                    self.failure = Some(errno);
                }
            }
        }
        Progress::CaughtUp
    }
}

/// Waits before it writes, and writes only what a ready pipe takes at once: a reader
/// that has stopped reading never holds the drainer inside a write, where no interrupt
/// would reach it. (For a terminal that takes a description that never blocks.) `None`
/// is the interrupt.
fn copy_some(copy: BorrowedFd<'_>, bytes: &[u8], until: Until<'_>) -> Result<Option<usize>, Errno> {
    if !streams::writable_before(copy, until.interrupt, until.deadline)? {
        return Ok(None);
    }
    match streams::write(copy, &bytes[..bytes.len().min(PIPE_ATOMIC_BYTES)]) {
        Err(Errno::EAGAIN) => Ok(Some(0)),
        other => other.map(Some),
    }
}
