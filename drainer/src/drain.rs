//! The loop between a stream and its log.

use crate::capacity::{Capacity, HEAVY_BYTES};
use crate::meter::{Meter, Tally};
use crate::pace::{Pace, Step};
use crate::tee::{Progress, Tee};
use crate::until::Until;
use crate::void::Void;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use weir_common::Errno;
use weir_common::sys::memory::Pages;
use weir_common::sys::pipes::CAPACITY_BYTES_MAX;
use weir_common::sys::{streams, thread};

/// How much is read at once: all that the pipe holds. No more of it is used than is read
/// into.
const BUFFER_BYTES: usize = HEAVY_BYTES;

/// From so many bytes on it is cheaper to throw a pipe's pages away than to read them.
const THROWN_BYTES_MIN: usize = 1024;

/// After so long without output, what the pipe has been given for heavy output is given back.
const QUIET: Duration = Duration::from_millis(100);

/// How often in a row a read may fail before the source is given up.
const READ_FAILURES_MAX: u32 = 1000;

/// Why a drain has come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The stream has ended: every writer has closed it, and everything was read.
    Ended,
    /// The interrupt could be read, or the deadline has come. [`Drain::run`] goes on
    /// where it was.
    Interrupted,
}

/// One stream on its way into one log.
///
/// Promises: the log gets a prefix of the stream, at most `room_bytes` long, each byte
/// as soon as it is read; the source is read to its end whatever the log does; what is
/// counted as kept, the kernel has taken.
#[derive(Debug)]
pub struct Drain<'a, Source, Log> {
    source: Source,
    log: Log,
    meter: Meter,
    tee: Tee<'a>,
    buffer: Pages,
    pace: Pace,
    capacity: Capacity,
    void: Void,
    /// What the last read has got.
    last_bytes: usize,
    /// Whether this thread's waits end on time.
    on_time: bool,
}

impl<'a, Source: AsFd, Log: AsFd> Drain<'a, Source, Log> {
    /// A drain from `source`, a pipe or FIFO, to `log`, a regular file opened for
    /// appending, which may take `room_bytes` more.
    ///
    /// The source should not block: in one that does, an interrupt can wait for the next
    /// byte. A writer of it must be open, or have been open, before the first
    /// [`run`](Drain::run): a FIFO that has never had one reads as ended.
    ///
    /// An error means that there is no memory for its buffer. After this it needs no more.
    pub fn new(source: Source, log: Log, room_bytes: u64) -> Result<Drain<'a, Source, Log>, Errno> {
        Ok(Drain {
            source,
            log,
            meter: Meter::new(room_bytes),
            tee: Tee::to(None),
            buffer: Pages::new(BUFFER_BYTES)?,
            pace: Pace::default(),
            capacity: Capacity::Unknown,
            void: Void::Unopened,
            last_bytes: 0,
            on_time: false,
        })
    }

    /// Also copies the kept bytes, and only those, to `copy`, at its reader's pace. An
    /// error there ends the copying and nothing else ([`tee_failure`](Drain::tee_failure)).
    pub fn tee(self, copy: BorrowedFd<'a>) -> Drain<'a, Source, Log> {
        Drain { tee: Tee::to(Some(copy)), ..self }
    }

    /// Ends the tee, so that nothing is held any more that its reader waits for.
    pub fn end_tee(&mut self) {
        self.tee.end();
    }

    /// Drains until the stream has ended, or until something else comes first.
    ///
    /// An error means that the source cannot be read, however often it is tried; the
    /// log's errors are in the [`tally`](Drain::tally). A log whose write hangs in the
    /// kernel hangs this call, so it wants a thread of its own.
    pub fn run(&mut self, until: Until<'_>) -> Result<Pause, Errno> {
        // Perhaps it was another thread, or another process, that ran it before.
        self.on_time = false;
        let mut failures_in_a_row = 0;
        loop {
            if self.tee.catch_up(&self.buffer, until) == Progress::Interrupted
                || self.approach(until) == Progress::Interrupted
            {
                return Ok(Pause::Interrupted);
            }
            match self.take() {
                Ok(0) => return Ok(Pause::Ended),
                Ok(bytes) => self.keep_pace(bytes),
                // Readiness is a hint.
                Err(Errno::EAGAIN) => {
                    self.pace.got_nothing();
                    continue;
                }
                // A read that fails has taken nothing out of the pipe. The writer must
                // not suffer for a kernel that is short of memory for a moment.
                Err(errno) => {
                    failures_in_a_row += 1;
                    if failures_in_a_row == READ_FAILURES_MAX {
                        return Err(errno);
                    }
                    continue;
                }
            }
            failures_in_a_row = 0;
        }
    }

    /// Takes what the source holds at this moment, without waiting for more: the last
    /// thing to do before a drain is given up after an interrupt. A writer that goes on
    /// writing does not prolong it, and a tee gets what its reader takes at once.
    pub fn sweep(&mut self) -> Pause {
        let mut left_bytes = CAPACITY_BYTES_MAX;
        self.hurry_tee();
        while left_bytes > 0 && streams::is_readable(&self.source) == Ok(true) {
            match self.take() {
                Ok(0) => return Pause::Ended,
                Ok(bytes) => {
                    self.hurry_tee();
                    left_bytes = left_bytes.saturating_sub(bytes);
                }
                Err(_) => break,
            }
        }
        Pause::Interrupted
    }

    /// What became of the bytes so far.
    pub fn tally(&self) -> Tally {
        self.meter.tally()
    }

    /// Why the tee ended early, if it did.
    pub fn tee_failure(&self) -> Option<Errno> {
        self.tee.failure()
    }

    /// Lets the time before the next read pass; says when something else came first.
    fn approach(&mut self, until: Until<'_>) -> Progress {
        // A source that is always ready must not hide that the time is over.
        if until.is_over() {
            return Progress::Interrupted;
        }
        match self.pace.step() {
            Step::Read => Progress::CaughtUp,
            Step::Rest(rest) => self.rest(rest, until),
            Step::Wait => self.wait(until),
        }
    }

    fn rest(&mut self, how_long: Duration, until: Until<'_>) -> Progress {
        if !self.on_time {
            thread::wake_on_time();
            self.on_time = true;
        }
        match streams::rest(self.source.as_fd(), until.interrupt, how_long) {
            Ok(true) => Progress::Interrupted,
            _ => Progress::CaughtUp,
        }
    }

    /// Waits for the source.
    fn wait(&mut self, until: Until<'_>) -> Progress {
        if self.capacity.is_grown() {
            let quiet = Instant::now() + QUIET;
            let quiet = until.deadline.map_or(quiet, |deadline| deadline.min(quiet));
            if let Some(progress) = self.wait_until(until.or_at(Some(quiet))) {
                return progress;
            }
            self.capacity.give_back(&self.source);
            self.pace = Pace::default();
        }
        self.wait_until(until).unwrap_or(Progress::Interrupted)
    }

    /// Waits for the source until the deadline: then it is `None`. A wait that fails is as
    /// good as none: the read finds out.
    fn wait_until(&self, until: Until<'_>) -> Option<Progress> {
        let source = self.source.as_fd();
        let (first, source_at) = match until.interrupt {
            Some(interrupt) => (streams::first_readable([interrupt, source], until.deadline), 1),
            None => (streams::first_readable([source], until.deadline), 0),
        };
        match first {
            Ok(None) => None,
            Ok(Some(ready)) if ready != source_at => Some(Progress::Interrupted),
            _ => Some(Progress::CaughtUp),
        }
    }

    /// What a read has got decides when the next one comes.
    fn keep_pace(&mut self, bytes: usize) {
        self.capacity.look(&self.source);
        self.pace.got(bytes, Instant::now(), self.capacity.bytes());
        if self.pace.is_heavy() {
            self.capacity.grow(&self.source);
        }
    }

    /// Gives the tee what its reader takes at once. If that is not all, it ends: what
    /// came after would follow a hole.
    fn hurry_tee(&mut self) {
        let now = Until::the_end().or_at(Some(Instant::now()));
        if self.tee.catch_up(&self.buffer, now) == Progress::Interrupted {
            self.tee.end();
        }
    }

    /// Takes what the source holds, puts it where it belongs, and says how much it was; 0 is
    /// the end.
    fn take(&mut self) -> Result<usize, Errno> {
        let bytes = match self.throw_away() {
            Some(thrown) => thrown?,
            None => {
                let read_bytes = streams::read(&self.source, &mut self.buffer)?;
                self.keep(read_bytes);
                read_bytes
            }
        };
        self.last_bytes = bytes;
        Ok(bytes)
    }

    /// Takes what the source holds and the log may not have. `None` where it has to be read.
    fn throw_away(&mut self) -> Option<Result<usize, Errno>> {
        if !self.meter.is_over() || self.last_bytes < THROWN_BYTES_MIN {
            return None;
        }
        let thrown = self.void.take(&self.source)?;
        Some(thrown.inspect(|bytes| self.meter.drop_bytes(*bytes)))
    }

    /// Puts what was read where it belongs.
    fn keep(&mut self, read_bytes: usize) {
        let mut kept = 0;
        loop {
            let allowance = self.meter.allowance(read_bytes - kept);
            if allowance == 0 {
                break;
            }
            match streams::write(&self.log, &self.buffer[kept..kept + allowance]) {
                // A regular file takes at least one byte or says why not.
                Ok(0) => self.meter.fail(Errno::EIO),
                Ok(taken) => {
                    // Counted when the kernel has taken it, and not before.
                    self.meter.keep(taken);
                    kept += taken;
                }
                Err(errno) => self.meter.fail(errno),
            }
        }
        self.meter.drop_bytes(read_bytes - kept);
        self.tee.want(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::io::{PipeReader, Read, Write, pipe};
    use std::path::Path;
    use std::time::Duration;
    use weir_common::sys::streams::Wake;

    struct Place {
        directory: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            Place { directory: tempfile::tempdir().expect("a directory") }
        }

        fn path(&self) -> std::path::PathBuf {
            self.directory.path().join("log")
        }

        fn log(&self) -> File {
            append_to(&self.path())
        }

        fn content(&self) -> Vec<u8> {
            std::fs::read(self.path()).expect("the log")
        }
    }

    fn append_to(path: &Path) -> File {
        OpenOptions::new().append(true).create(true).open(path).expect("a log")
    }

    fn full() -> File {
        OpenOptions::new().write(true).open("/dev/full").expect("/dev/full")
    }

    /// Bytes of every value, with no period that a buffer size could hide.
    fn bytes(length: usize) -> Vec<u8> {
        (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// A stream of these bytes, written in pieces by a thread.
    fn stream(content: Vec<u8>, piece_bytes: usize) -> PipeReader {
        let (source, mut sink) = pipe().expect("a pipe");
        std::thread::spawn(move || {
            for piece in content.chunks(piece_bytes) {
                sink.write_all(piece).expect("the drainer reads to the end");
            }
        });
        source
    }

    #[test]
    fn the_log_is_the_exact_prefix_whatever_the_pieces_are() {
        let content = bytes(300_000);
        for room in [0, 1, 65_535, 65_536, 65_537, 131_072, 299_999, 300_000, 300_001] {
            for piece_bytes in [1_000, 65_536, 300_000] {
                let place = Place::new();
                let log = place.log();
                let mut drain = Drain::new(stream(content.clone(), piece_bytes), &log, room as u64)
                    .expect("memory");
                assert_eq!(drain.run(Until::the_end()), Ok(Pause::Ended));
                let kept = room.min(content.len());
                assert!(place.content() == content[..kept], "room {room}, pieces of {piece_bytes}");
                let dropped = content.len() - kept;
                let expected =
                    Tally { kept_bytes: kept as u64, dropped_bytes: dropped as u64, failure: None };
                assert_eq!(drain.tally(), expected);
                assert_eq!(drain.tally().quota_reached(), dropped > 0);
            }
        }
    }

    #[test]
    fn a_log_that_fails_is_never_written_again_and_the_stream_is_read_to_its_end() {
        let mut drain =
            Drain::new(stream(bytes(300_000), 300_000), full(), 400_000).expect("memory");
        assert_eq!(drain.run(Until::the_end()), Ok(Pause::Ended));
        let tally = drain.tally();
        let lost = Tally { kept_bytes: 0, dropped_bytes: 300_000, failure: Some(Errno::ENOSPC) };
        assert_eq!(tally, lost);
        assert!(!tally.quota_reached());
    }

    #[test]
    fn a_source_that_cannot_be_read_is_given_up() {
        let (place, directory) = (Place::new(), tempfile::tempdir().expect("a directory"));
        let log = place.log();
        let source = File::open(directory.path()).expect("a directory opens");
        let mut drain = Drain::new(source, &log, 100).expect("memory");
        assert_eq!(drain.run(Until::the_end()), Err(Errno::EISDIR));
        assert_eq!(drain.tally(), Tally::default());
    }

    #[test]
    fn an_interrupt_pauses_and_nothing_is_lost_by_it() {
        let place = Place::new();
        let (log, wake) = (place.log(), Wake::new().expect("eventfd"));
        let (source, mut sink) = pipe().expect("a pipe");
        let mut drain = Drain::new(source, &log, 100).expect("memory");
        sink.write_all(b"before ").expect("write");
        wake.raise();
        assert_eq!(drain.run(Until::interrupted_by(wake.as_fd())), Ok(Pause::Interrupted));
        assert_eq!(drain.run(Until::interrupted_by(wake.as_fd())), Ok(Pause::Interrupted));
        sink.write_all(b"after").expect("write");
        drop(sink);
        assert_eq!(drain.run(Until::the_end()), Ok(Pause::Ended));
        assert_eq!(place.content(), b"before after");
    }

    #[test]
    fn a_deadline_holds_however_much_is_written() {
        let place = Place::new();
        let log = place.log();
        let (source, mut sink) = pipe().expect("a pipe");
        let mut drain = Drain::new(source, &log, 5).expect("memory");
        let writer = std::thread::spawn(move || while sink.write_all(b"more and more").is_ok() {});
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(drain.run(Until::the_end().or_at(Some(soon))), Ok(Pause::Interrupted));
        assert!(Instant::now() >= soon);
        assert!(drain.tally().dropped_bytes > 0);
        drop(drain);
        writer.join().expect("it ends with its reader");
    }

    #[test]
    fn a_source_that_never_pauses_hides_neither_deadline_nor_interrupt() {
        let (place, wake) = (Place::new(), Wake::new().expect("eventfd"));
        let log = place.log();
        let endless = File::open("/dev/zero").expect("/dev/zero");
        let mut drain = Drain::new(endless, &log, 5).expect("memory");
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(drain.run(Until::the_end().or_at(Some(soon))), Ok(Pause::Interrupted));
        assert!(Instant::now() >= soon);
        wake.raise();
        assert_eq!(drain.run(Until::interrupted_by(wake.as_fd())), Ok(Pause::Interrupted));
        assert_eq!(place.content(), [0; 5]);
    }

    #[test]
    fn an_interrupt_comes_through_however_small_and_many_the_writes_are() {
        for (room, piece) in [(0, 80), (u64::MAX, 80), (0, 4096), (u64::MAX, 4096)] {
            let place = Place::new();
            let (log, wake) = (place.log(), Wake::new().expect("eventfd"));
            let (source, mut sink) = pipe().expect("a pipe");
            let mut drain = Drain::new(source, &log, room).expect("memory");
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let piece = vec![b'x'; piece];
                    (0..2_000).for_each(|_| sink.write_all(&piece).expect("it is drained"));
                    wake.raise();
                    while sink.write_all(&piece).is_ok() {}
                });
                let paused = drain.run(Until::interrupted_by(wake.as_fd()));
                assert_eq!(paused, Ok(Pause::Interrupted), "pieces of {} bytes", piece);
                drop(drain);
                writer.join().expect("it ends with its reader");
            });
        }
    }

    #[test]
    fn a_sweep_takes_what_is_there_and_waits_for_nothing() {
        let place = Place::new();
        let log = place.log();
        let (source, mut sink) = pipe().expect("a pipe");
        let (mut reader, copy) = pipe().expect("a pipe");
        let mut drain = Drain::new(source, &log, 5).expect("memory").tee(copy.as_fd());
        assert_eq!(drain.sweep(), Pause::Interrupted);
        sink.write_all(b"written").expect("write");
        assert_eq!(drain.sweep(), Pause::Interrupted);
        assert_eq!(place.content(), b"writt");
        let mut copied = [0; 5];
        reader.read_exact(&mut copied).expect("the copy");
        assert_eq!(&copied, b"writt");
        assert_eq!(drain.tally().dropped_bytes, 2);
        drop(sink);
        assert_eq!(drain.sweep(), Pause::Ended);
    }

    #[test]
    fn a_tee_gets_the_kept_bytes_and_only_those() {
        let place = Place::new();
        let content = bytes(200_000);
        let (mut reader, copy) = pipe().expect("a pipe");
        let copied = std::thread::spawn(move || {
            let mut copied = Vec::new();
            reader.read_to_end(&mut copied).expect("read");
            copied
        });
        let log = place.log();
        let mut drain = Drain::new(stream(content.clone(), 70_000), &log, 150_000)
            .expect("memory")
            .tee(copy.as_fd());
        assert_eq!(drain.run(Until::the_end()), Ok(Pause::Ended));
        assert_eq!(drain.tee_failure(), None);
        drop(copy);
        assert!(copied.join().expect("reader") == content[..150_000]);
        assert!(place.content() == content[..150_000]);
    }

    #[test]
    fn a_tee_that_fails_ends_alone() {
        let place = Place::new();
        let (log, copy) = (place.log(), full());
        let mut drain = Drain::new(stream(bytes(200_000), 1_000), &log, 150_000)
            .expect("memory")
            .tee(copy.as_fd());
        assert_eq!(drain.run(Until::the_end()), Ok(Pause::Ended));
        assert_eq!(drain.tee_failure(), Some(Errno::ENOSPC));
        assert!(place.content() == bytes(200_000)[..150_000]);
        assert!(drain.tally().quota_reached());
    }

    #[test]
    fn a_tee_whose_reader_has_stopped_holds_no_interrupt_and_loses_nothing() {
        let place = Place::new();
        let (log, wake) = (place.log(), Wake::new().expect("eventfd"));
        let (mut reader, copy) = pipe().expect("a pipe");
        let content = bytes(200_000);
        let mut drain = Drain::new(stream(content.clone(), 200_000), &log, 200_000)
            .expect("memory")
            .tee(copy.as_fd());
        let paused = std::thread::scope(|scope| {
            let running = scope.spawn(|| drain.run(Until::interrupted_by(wake.as_fd())));
            // The copy's pipe holds one buffer; at the second the drain has to wait.
            while place.content().len() < 131_072 {
                std::thread::yield_now();
            }
            wake.raise();
            running.join().expect("no panic")
        });
        assert_eq!(paused, Ok(Pause::Interrupted));
        let copied = std::thread::scope(|scope| {
            let copying = scope.spawn(move || {
                let mut copied = vec![0; 200_000];
                reader.read_exact(&mut copied).map(|()| copied)
            });
            assert_eq!(drain.run(Until::the_end()), Ok(Pause::Ended));
            copying.join().expect("no panic").expect("all of it")
        });
        assert!(copied == content);
        assert!(place.content() == content);
    }
}
