//! The arithmetic of a quota, and nothing else.

use weir_common::Errno;

/// What became of a stream's bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes that the log has taken.
    pub kept_bytes: u64,
    /// Bytes that were read, counted and thrown away.
    pub dropped_bytes: u64,
    /// Why keeping ended before its time: the first write that failed.
    pub failure: Option<Errno>,
}

impl Tally {
    /// Whether at least one byte was dropped because of the quota.
    ///
    /// After a failed write nothing is dropped because of the quota: the room that was
    /// left was never used up.
    pub fn quota_reached(&self) -> bool {
        self.failure.is_none() && self.dropped_bytes > 0
    }
}

/// Decides which bytes the log may have, and counts.
#[derive(Debug)]
pub(crate) struct Meter {
    room_bytes: u64,
    tally: Tally,
}

impl Meter {
    /// A meter for a log that may take `room_bytes` more.
    pub(crate) fn new(room_bytes: u64) -> Meter {
        Meter { room_bytes, tally: Tally::default() }
    }

    /// How many of the next `read_bytes` the log may have: the first so many.
    pub(crate) fn allowance(&self, read_bytes: usize) -> usize {
        match self.tally.failure {
            Some(_) => 0,
            None => {
                usize::try_from(self.room_bytes).map_or(read_bytes, |room| room.min(read_bytes))
            }
        }
    }

    /// Whether the log may have no byte more.
    pub(crate) fn is_over(&self) -> bool {
        self.allowance(1) == 0
    }

    /// The kernel has taken this many bytes of an allowance.
    pub(crate) fn keep(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.allowance(bytes), "more than the room");
        self.room_bytes -= bytes as u64;
        self.tally.kept_bytes += bytes as u64;
    }

    /// This many bytes were thrown away.
    pub(crate) fn drop_bytes(&mut self, bytes: usize) {
        self.tally.dropped_bytes += bytes as u64;
    }

    /// A write has failed: nothing is kept from now on. The first reason stays.
    pub(crate) fn fail(&mut self, errno: Errno) {
        self.tally.failure.get_or_insert(errno);
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the drainer does with one read, against a log that takes `taken` bytes of
    /// it and, if that is less than allowed, then fails.
    fn feed(meter: &mut Meter, read_bytes: usize, taken_max: usize) {
        let allowance = meter.allowance(read_bytes);
        let taken = allowance.min(taken_max);
        meter.keep(taken);
        if taken < allowance {
            meter.fail(Errno::ENOSPC);
        }
        meter.drop_bytes(read_bytes - taken);
    }

    /// The same, a byte at a time, without any arithmetic worth the name.
    fn naive(room: u64, reads: &[(usize, usize)]) -> Tally {
        let mut log_bytes = 0;
        let mut tally = Tally::default();
        for (read_bytes, taken_max) in reads {
            let mut taken = 0;
            for _ in 0..*read_bytes {
                if tally.failure.is_none() && log_bytes < room {
                    if taken == *taken_max {
                        tally.failure = Some(Errno::ENOSPC);
                    } else {
                        taken += 1;
                        log_bytes += 1;
                        tally.kept_bytes += 1;
                        continue;
                    }
                }
                tally.dropped_bytes += 1;
            }
        }
        tally
    }

    #[test]
    fn every_short_stream_is_counted_as_a_byte_at_a_time_would() {
        // Every room up to 7 bytes, every stream of up to 4 reads of 0 to 4 bytes, and
        // every point at which the log may stop taking them.
        let outcomes: Vec<(usize, usize)> =
            (0..=4).flat_map(|read| (0..=read).map(move |taken| (read, taken))).collect();
        let mut checked = 0u64;
        for room in 0..=7 {
            let mut streams: Vec<Vec<(usize, usize)>> = vec![vec![]];
            for _ in 0..4 {
                for reads in &streams {
                    let mut meter = Meter::new(room);
                    for (read_bytes, taken_max) in reads {
                        feed(&mut meter, *read_bytes, *taken_max);
                    }
                    assert_eq!(meter.tally(), naive(room, reads), "room {room}, reads {reads:?}");
                    checked += 1;
                }
                streams = streams
                    .iter()
                    .flat_map(|reads| {
                        outcomes.iter().map(move |next| [reads.as_slice(), &[*next]].concat())
                    })
                    .collect();
            }
        }
        assert_eq!(checked, 8 * (1 + 15 + 15 * 15 + 15 * 15 * 15));
    }

    #[test]
    fn the_edges_of_the_quota() {
        let quota = 65_536;
        for (stream, kept, dropped) in [
            (0, 0, 0),
            (quota - 1, quota - 1, 0),
            (quota, quota, 0),
            (quota + 1, quota, 1),
            (2 * quota, quota, quota),
        ] {
            let mut meter = Meter::new(quota as u64);
            feed(&mut meter, stream, stream);
            let tally = meter.tally();
            assert_eq!((tally.kept_bytes, tally.dropped_bytes), (kept as u64, dropped as u64));
            assert_eq!(tally.quota_reached(), dropped > 0, "{stream} bytes");
        }
    }

    #[test]
    fn the_first_failure_stays_and_is_no_quota() {
        let mut meter = Meter::new(10);
        feed(&mut meter, 4, 2);
        meter.fail(Errno::EIO);
        feed(&mut meter, 100, 100);
        let expected = Tally { kept_bytes: 2, dropped_bytes: 102, failure: Some(Errno::ENOSPC) };
        assert_eq!(meter.tally(), expected);
        assert!(!meter.tally().quota_reached());
    }

    #[test]
    fn room_and_counts_go_to_the_largest_number() {
        let mut meter = Meter::new(u64::MAX);
        assert_eq!(meter.allowance(usize::MAX), usize::MAX);
        meter.keep(usize::MAX);
        assert_eq!(meter.allowance(1), 0);
        assert_eq!(meter.tally().kept_bytes, u64::MAX);
    }
}
