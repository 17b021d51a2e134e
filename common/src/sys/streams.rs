//! Reading, writing and waiting: pipe(7), poll(2), eventfd(2).

use super::errno::Errno;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Errno>;

/// The most that one write to a pipe takes whole or not at all: `PIPE_BUF`, in bytes.
pub const PIPE_ATOMIC_BYTES: usize = 4096;

/// Reads what is there, at most a buffer full; 0 is the end. Tries again when interrupted.
pub fn read(source: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(&source, &mut *buffer))?)
}

/// Writes some of the bytes and says how many the kernel took. Tries again when interrupted.
pub fn write(sink: impl AsFd, bytes: &[u8]) -> Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::write(&sink, bytes))?)
}

/// Waits until one of the descriptors can be read, has ended or has failed, and says
/// which: the first in the given order; at the latest until the deadline: then `None`.
pub fn first_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    deadline: Option<Instant>,
) -> Result<Option<usize>> {
    let mut asked = descriptors.each_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
    first_ready(&mut asked, deadline)
}

/// Whether a read would not wait: there is something, or the end, or an error.
pub fn is_readable(source: impl AsFd) -> Result<bool> {
    let source = source.as_fd();
    let mut asked = [PollFd::new(&source, PollFlags::IN)];
    Ok(first_ready(&mut asked, Some(Instant::now()))?.is_some())
}

/// Whether anybody still holds the other end of a pipe that is being read, whatever is
/// still in it.
pub fn has_writer(source: impl AsFd) -> bool {
    let source = source.as_fd();
    let mut asked = [PollFd::new(&source, PollFlags::empty())];
    // What cannot be asked is taken for held: that is the cautious answer.
    !matches!(first_ready(&mut asked, Some(Instant::now())), Ok(Some(0)))
}

/// Rests for so long; less if the last writer of a pipe goes, or an interrupt comes: then
/// it says so. What is written meanwhile ends no rest.
pub fn rest(
    source: BorrowedFd<'_>,
    interrupt: Option<BorrowedFd<'_>>,
    how_long: Duration,
) -> Result<bool> {
    // Nothing is asked about the source, so only its end is reported.
    let source = PollFd::new(&source, PollFlags::empty());
    let deadline = Some(Instant::now() + how_long);
    Ok(match &interrupt {
        Some(interrupt) => {
            let mut asked = [PollFd::new(interrupt, PollFlags::IN), source];
            first_ready(&mut asked, deadline)? == Some(0)
        }
        None => {
            first_ready(&mut [source], deadline)?;
            false
        }
    })
}

/// Waits until `sink` takes bytes, or has failed; `false` when `interrupt` could be read
/// or the deadline came first.
pub fn writable_before(
    sink: BorrowedFd<'_>,
    interrupt: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<bool> {
    let mut asked = Vec::with_capacity(2);
    if let Some(interrupt) = &interrupt {
        asked.push(PollFd::new(interrupt, PollFlags::IN));
    }
    asked.push(PollFd::new(&sink, PollFlags::OUT));
    let sink_at = asked.len() - 1;
    Ok(first_ready(&mut asked, deadline)? == Some(sink_at))
}

/// Writes all of the bytes, but never waits: `EAGAIN` as soon as that would be needed.
///
/// What the reader has got by then is a beginning of the bytes.
pub fn write_without_waiting(sink: impl AsFd, bytes: &[u8]) -> Result<()> {
    let sink = sink.as_fd();
    // A pipe that is ready for writing has room for this much; a terminal for one byte.
    let piece_bytes = if rustix::termios::isatty(sink) { 1 } else { PIPE_ATOMIC_BYTES };
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut asked = [PollFd::new(&sink, PollFlags::OUT)];
        if first_ready(&mut asked, Some(Instant::now()))?.is_none() {
            return Err(Errno::EAGAIN);
        }
        let piece = &rest[..rest.len().min(piece_bytes)];
        let taken = write(sink, piece)?;
        rest = &rest[taken..];
    }
    Ok(())
}

fn first_ready(asked: &mut [PollFd<'_>], deadline: Option<Instant>) -> Result<Option<usize>> {
    loop {
        // Anew after an interruption: the deadline stays where it is. A limit that does
        // not fit is beyond any process's life, and as good as none.
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(asked, limit.as_ref()) {
            // Any event counts: a FIFO without writers reports HUP and no IN.
            Ok(_) => return Ok(asked.iter().position(|one| !one.revents().is_empty())),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A flag that one thread raises and others can wait for along with descriptors.
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// A lowered flag.
    pub fn new() -> Result<Wake> {
        Ok(Wake(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Raises the flag; it stays up.
    pub fn raise(&self) {
        // Adding one to a counter cannot fail in a healthy kernel; whoever waits for it
        // would wait for ever, so it is tried more than once all the same.
        let mut tries = 0..100;
        while rustix::io::write(&self.0, &1u64.to_ne_bytes()).is_err() && tries.next().is_some() {}
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_rest_lasts_its_time_whatever_is_written() {
        let (source, mut sink) = pipe().expect("a pipe");
        let wake = Wake::new().expect("eventfd");
        sink.write_all(b"there already").expect("written");
        let begin = Instant::now();
        let how_long = Duration::from_millis(2);
        assert_eq!(rest(source.as_fd(), Some(wake.as_fd()), how_long), Ok(false));
        assert_eq!(rest(source.as_fd(), None, how_long), Ok(false));
        assert!(begin.elapsed() >= 2 * how_long);
    }

    #[test]
    fn a_rest_ends_with_the_last_writer_and_with_an_interrupt() {
        let (source, sink) = pipe().expect("a pipe");
        let wake = Wake::new().expect("eventfd");
        wake.raise();
        assert_eq!(rest(source.as_fd(), Some(wake.as_fd()), LONG), Ok(true));
        drop(sink);
        assert_eq!(rest(source.as_fd(), None, LONG), Ok(false));
    }
}
