//! When to read next, so that neither side of a pipe wakes the other for every line.
//!
//! A writer and a reader that take turns at one pipe spend most of their time waking each
//! other. Where output comes in small pieces without a break, a short rest lets the pipe
//! fill a little: the writer goes on undisturbed, and one read gets many pieces. A rest is
//! so short that the pipe does not fill up meanwhile, and comes only in the midst of a
//! busy stretch: what is written after a break is read at once.

use std::time::{Duration, Instant};

/// Reads that are no further apart belong to one stretch.
const STRETCH: Duration = Duration::from_micros(300);

/// So many reads in one stretch make it a busy one.
const BUSY_READS: u32 = 4;

/// Shorter rests cost more than they bring.
const REST_MIN: Duration = Duration::from_micros(40);

/// The longest rest, and with it the longest time for which a byte stays in the pipe.
const REST_MAX: Duration = Duration::from_micros(200);

/// The part of the pipe that may fill during a rest. The other parts are for a writer that
/// is faster than it seemed while it was held up.
const REST_PART: usize = 8;

/// So many reads are not followed by a rest after one that let the pipe fill up.
const RESTLESS_READS: u32 = 32;

/// So many heavy reads more than light ones make heavy output.
const HEAVY_READS: u32 = 8;

/// So many reads in a row may go without a look at whether something else is due.
const UNWATCHED_READS: u32 = 16;

/// What to do before the next read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until there is something to read, or something else to do.
    Wait,
    /// Rest for so long, whatever is written meanwhile.
    Rest(Duration),
    /// Nothing: it is likely that there is more.
    Read,
}

/// The pace of one stream.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last_at: Option<Instant>,
    /// Reads in this stretch.
    stretch_reads: u32,
    restless_reads: u32,
    heavy_reads: u32,
    unwatched_reads: u32,
    /// The last read got a good part of what the pipe holds.
    got_much: bool,
    rest: Option<Duration>,
}

impl Pace {
    /// A read has got so many bytes, at this time, of a pipe that holds so many.
    pub(crate) fn got(&mut self, bytes: usize, now: Instant, capacity_bytes: usize) {
        let rested = self.rest.take().is_some();
        let since = self.last_at.replace(now).map(|last| now.saturating_duration_since(last));
        let since = since.unwrap_or(Duration::MAX);
        self.stretch_reads = match since <= STRETCH {
            true => (self.stretch_reads + 1).min(BUSY_READS),
            false => 0,
        };
        self.got_much = bytes >= capacity_bytes / 2;
        self.restless_reads = match self.got_much && rested {
            true => RESTLESS_READS,
            false => self.restless_reads.saturating_sub(1),
        };
        let rest = self.is_busy().then(|| filling_time(bytes, since, capacity_bytes / REST_PART));
        // A light read is one that the pipe is large enough for.
        self.heavy_reads = match self.got_much || rest.is_some_and(|rest| rest < REST_MAX) {
            true => (self.heavy_reads + 1).min(HEAVY_READS),
            false => self.heavy_reads.saturating_sub(1),
        };
        if !self.got_much && self.restless_reads == 0 {
            self.rest = rest.filter(|rest| *rest >= REST_MIN).map(|rest| rest.min(REST_MAX));
        }
    }

    /// There was nothing to read.
    pub(crate) fn got_nothing(&mut self) {
        // Not even after a rest: the stretch is over.
        if self.rest.take().is_some() {
            self.stretch_reads = 0;
        }
        self.unwatched_reads = UNWATCHED_READS;
    }

    /// What to do before the next read.
    pub(crate) fn step(&mut self) -> Step {
        let step = match self.rest {
            Some(rest) => Step::Rest(rest),
            // A large read takes so much time that a look costs nothing.
            None if !self.is_busy() || self.got_much => Step::Wait,
            None if self.unwatched_reads >= UNWATCHED_READS => Step::Wait,
            None => Step::Read,
        };
        self.unwatched_reads = if step == Step::Read { self.unwatched_reads + 1 } else { 0 };
        step
    }

    /// Whether there is so much output that the pipe is too small for it.
    pub(crate) fn is_heavy(&self) -> bool {
        self.heavy_reads == HEAVY_READS
    }

    fn is_busy(&self) -> bool {
        self.stretch_reads >= BUSY_READS
    }
}

/// How long a writer that wrote `bytes` in this time, within a stretch, takes to write
/// `part_bytes`.
fn filling_time(bytes: usize, since: Duration, part_bytes: usize) -> Duration {
    let nanoseconds = since.min(STRETCH).subsec_nanos() as usize;
    Duration::from_nanos((nanoseconds * part_bytes / bytes.max(1)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: usize = 64 << 10;

    /// A pace, and a clock that goes only when it is told to.
    struct Timed {
        pace: Pace,
        now: Instant,
    }

    impl Timed {
        fn new() -> Timed {
            Timed { pace: Pace::default(), now: Instant::now() }
        }

        /// A read of so many bytes so long after the last, and the step after it.
        fn read(&mut self, bytes: usize, microseconds: u64) -> Step {
            self.now += Duration::from_micros(microseconds);
            self.pace.got(bytes, self.now, CAPACITY);
            self.pace.step()
        }

        fn reads(&mut self, count: usize, bytes: usize, microseconds: u64) -> Vec<Step> {
            (0..count).map(|_| self.read(bytes, microseconds)).collect()
        }
    }

    fn rest(microseconds: u64) -> Step {
        Step::Rest(Duration::from_micros(microseconds))
    }

    #[test]
    fn sparse_output_is_always_waited_for() {
        let mut timed = Timed::new();
        assert_eq!(timed.reads(100, 80, 301), [Step::Wait; 100]);
        assert!(!timed.pace.is_heavy());
    }

    #[test]
    fn a_burst_is_read_at_once_and_a_stretch_of_small_reads_gets_rests() {
        let mut timed = Timed::new();
        // The first has nothing before it, and three more are still a burst.
        assert_eq!(timed.reads(4, 80, 10), [Step::Wait; 4]);
        // 8 bytes a microsecond would fill an eighth of the pipe in 1,024 of them.
        assert_eq!(timed.reads(5, 80, 10), [rest(200); 5]);
        // 160 bytes a microsecond do so in 51.2.
        let step = Step::Rest(Duration::from_nanos(51_200));
        assert_eq!(timed.read(32_000, 200), step);
        // After a break it is a burst again.
        assert_eq!(timed.read(80, 301), Step::Wait);
    }

    #[test]
    fn where_nothing_came_during_a_rest_the_stretch_is_over() {
        let mut timed = Timed::new();
        timed.reads(5, 80, 10);
        timed.pace.got_nothing();
        assert_eq!(timed.pace.step(), Step::Wait);
        assert_eq!(timed.read(80, 10), Step::Wait);
        timed.reads(2, 80, 10);
        assert_eq!(timed.read(80, 10), rest(200));
    }

    #[test]
    fn a_fast_writer_gets_no_rests_and_is_watched_all_the_same() {
        let mut timed = Timed::new();
        timed.reads(4, 4096, 1);
        // An eighth of the pipe in two microseconds: no time for a rest.
        for _ in 0..3 {
            assert_eq!(timed.reads(16, 4096, 1), [Step::Read; 16]);
            assert_eq!(timed.read(4096, 1), Step::Wait);
        }
    }

    #[test]
    fn an_empty_pipe_is_waited_for_at_once() {
        let mut timed = Timed::new();
        timed.reads(4, 4096, 1);
        assert_eq!(timed.read(4096, 1), Step::Read);
        timed.pace.got_nothing();
        assert_eq!(timed.pace.step(), Step::Wait);
    }

    #[test]
    fn a_rest_that_lets_the_pipe_fill_up_is_followed_by_none_for_a_while() {
        let mut timed = Timed::new();
        timed.reads(5, 80, 10);
        assert_eq!(timed.read(CAPACITY / 2, 200), Step::Wait);
        let steps = timed.reads(32, 80, 10);
        assert!(steps[..31].iter().all(|step| !matches!(step, Step::Rest(_))), "{steps:?}");
        assert_eq!(steps[31], rest(200));
    }

    #[test]
    fn no_rest_is_longer_than_promised_or_shorter_than_worth_it() {
        for bytes in [1, 80, 1000, 4096, CAPACITY / 2 - 1, CAPACITY / 2, 10 * CAPACITY] {
            for microseconds in 0..=300 {
                let mut timed = Timed::new();
                for step in timed.reads(20, bytes, microseconds) {
                    if let Step::Rest(rest) = step {
                        assert!((REST_MIN..=REST_MAX).contains(&rest), "{rest:?}");
                        assert!(bytes < CAPACITY / 2);
                    }
                }
            }
        }
    }

    #[test]
    fn much_output_is_heavy_and_little_is_not() {
        let heavy = |bytes, microseconds| {
            let mut timed = Timed::new();
            // Half as much would be enough for the time in which a stretch becomes busy.
            timed.reads(16, bytes, microseconds);
            timed.pace.is_heavy()
        };
        // Reads of half of what the pipe holds, however slow.
        assert!(heavy(CAPACITY / 2, 1_000_000) && !heavy(CAPACITY / 2 - 1, 1_000_000));
        // An eighth of it within the longest rest.
        assert!(heavy(CAPACITY / 8, 199) && !heavy(CAPACITY / 8, 200));
        // A lone large read is none.
        let mut timed = Timed::new();
        timed.reads(7, CAPACITY, 10);
        timed.read(80, 10);
        assert!(!timed.pace.is_heavy());
    }
}
