//! The job's output on its way into the log.

use super::fifo::Fifo;
use super::log::Log;
use crate::refusal::{Code, Refusal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_drainer::Drain;

/// A log that is ours, and the FIFO that leads to it. Dropped, it removes the FIFO.
pub(super) struct Stream<'d> {
    // Dropped in this order: once the log's lock is free, a FIFO with this name is the next
    // start's.
    _fifo: Fifo<'d>,
    pub(super) log: Log<'d>,
    reader: OwnedFd,
}

impl<'d> Stream<'d> {
    /// Makes the FIFO, and hands out the end that the job writes to.
    pub(super) fn open(log: Log<'d>) -> Result<(Stream<'d>, OwnedFd), Refusal> {
        let (fifo, ends) = Fifo::create(log.captured())?;
        Ok((Stream { _fifo: fifo, log, reader: ends.reader }, ends.writer))
    }

    /// Where the output is read.
    pub(super) fn source(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// A drain of what the log has room for; with `copy`, also to there.
    pub(super) fn drain<'s>(
        &'s self,
        copy: Option<BorrowedFd<'s>>,
    ) -> Result<Drain<'s, BorrowedFd<'s>, BorrowedFd<'s>>, Refusal> {
        let room_bytes = self.log.captured().plan.room_bytes(self.log.start_bytes());
        let drain = Drain::new(self.source(), self.log.as_fd(), room_bytes);
        let drain =
            drain.map_err(|errno| Refusal::new(Code::System, "cannot drain").because(errno))?;
        Ok(match copy {
            Some(copy) => drain.tee(copy),
            None => drain,
        })
    }

    /// Every descriptor that it needs.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.log.descriptors().chain([self.source()])
    }
}
