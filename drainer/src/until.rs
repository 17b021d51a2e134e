//! How long a drain runs.

use std::os::fd::BorrowedFd;
use std::time::Instant;

/// How long a drain runs if the stream does not end first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until<'a> {
    pub(crate) interrupt: Option<BorrowedFd<'a>>,
    pub(crate) deadline: Option<Instant>,
}

impl<'a> Until<'a> {
    /// To the end of the stream, without any bound.
    pub fn the_end() -> Until<'a> {
        Until::default()
    }

    /// Until this descriptor can be read.
    pub fn interrupted_by(interrupt: BorrowedFd<'a>) -> Until<'a> {
        Until { interrupt: Some(interrupt), deadline: None }
    }

    /// At the latest until this instant, if there is one: absolute and monotonic, so a
    /// writer that goes on writing does not extend it.
    pub fn or_at(self, deadline: Option<Instant>) -> Until<'a> {
        Until { deadline, ..self }
    }

    /// Whether that instant has come.
    pub(crate) fn is_over(self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
