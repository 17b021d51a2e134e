//! What weir has set itself, row by row: the one place where targets stand.
//!
//! A ratio is always weir's figure divided by its peer's. Rates are good when they are high,
//! so their ratios have a lower bound; times, memory and sizes have an upper one.

use std::fmt;

/// When a row is as it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// weir's figure over the peer's is at least this.
    RatioAtLeast(f64),
    /// weir's figure over the peer's is at most this.
    RatioAtMost(f64),
    /// weir's figure itself is at most this, in the row's unit.
    AtMost(f64),
    /// It is good to know, and no more.
    None,
}

use Target::{AtMost, RatioAtLeast, RatioAtMost};

/// Every row's name and its target.
pub(crate) const TARGETS: [(&str, Target); 79] = [
    ("size", AtMost(327_680.0)),
    ("size.tini-static", Target::None),
    ("size.catatonit", Target::None),
    ("memory.idle", AtMost(256.0)),
    ("memory.idle.tini", Target::None),
    ("memory.idle.dumb-init", Target::None),
    ("memory.idle.sh-gnu", Target::None),
    ("memory.idle.sh-busybox", Target::None),
    ("memory.idle.conmon", Target::None),
    ("memory.drained", AtMost(640.0)),
    ("memory.processes", AtMost(1.0)),
    ("memory.many", AtMost(60.0)),
    ("memory.many.tini", Target::None),
    ("memory.many.sh-gnu", Target::None),
    ("memory.many.sh-busybox", Target::None),
    ("startup.init", RatioAtMost(0.75)),
    ("startup.catatonit", Target::None),
    ("startup.sh-gnu", RatioAtMost(0.1)),
    ("startup.sh-busybox", Target::None),
    ("startup.synced", RatioAtMost(1.0 / 7.0)),
    ("startup.first", Target::None),
    ("startup.calls", Target::None),
    ("discard.128k.wc", RatioAtLeast(3.0)),
    ("discard.128k.splice", RatioAtLeast(0.95)),
    ("discard.128k.busybox", RatioAtLeast(8.0)),
    ("discard.128k.wc.cpu", RatioAtMost(0.75)),
    ("discard.128k.splice.cpu", Target::None),
    ("discard.128k.busybox.cpu", Target::None),
    ("discard.4k.wc", RatioAtLeast(1.35)),
    ("discard.4k.splice", Target::None),
    ("discard.4k.busybox", Target::None),
    ("discard.4k.wc.cpu", RatioAtMost(0.75)),
    ("discard.4k.splice.cpu", Target::None),
    ("discard.4k.busybox.cpu", Target::None),
    ("capture.128k.cat", RatioAtLeast(1.3)),
    ("capture.128k.head", RatioAtLeast(2.0)),
    ("capture.128k.cat.cpu", Target::None),
    ("capture.128k.head.cpu", RatioAtMost(0.55)),
    ("capture.4k.cat", RatioAtLeast(1.15)),
    ("capture.4k.head", RatioAtLeast(1.75)),
    ("capture.4k.cat.cpu", Target::None),
    ("capture.4k.head.cpu", RatioAtMost(0.55)),
    ("chatty.cat", RatioAtLeast(1.5)),
    ("chatty.head", RatioAtLeast(1.5)),
    ("chatty.dd", RatioAtLeast(1.5)),
    ("chatty.s6", RatioAtLeast(1.8)),
    ("chatty.multilog", RatioAtLeast(2.0)),
    ("chatty.svlogd", RatioAtLeast(3.5)),
    ("chatty.wc", RatioAtLeast(1.5)),
    ("chatty.cat.cpu", RatioAtMost(0.25)),
    ("chatty.head.cpu", RatioAtMost(0.25)),
    ("chatty.dd.cpu", RatioAtMost(0.25)),
    ("chatty.s6.cpu", Target::None),
    ("chatty.multilog.cpu", Target::None),
    ("chatty.svlogd.cpu", Target::None),
    ("chatty.wc.cpu", RatioAtMost(0.25)),
    ("chatty.never-slower", RatioAtLeast(0.95)),
    ("endtoend.128k.sh-gnu", RatioAtLeast(1.7)),
    ("endtoend.4k.sh-gnu", RatioAtLeast(1.2)),
    ("endtoend.lines.sh-gnu", RatioAtLeast(1.5)),
    ("endtoend.128k.sh-busybox", RatioAtLeast(6.0)),
    ("endtoend.4k.sh-busybox", Target::None),
    ("endtoend.lines.sh-busybox", Target::None),
    ("endtoend.many", RatioAtMost(0.7)),
    ("endtoend.many.time", Target::None),
    ("latency.log.p50", Target::None),
    ("latency.log.p95", RatioAtMost(1.5)),
    ("latency.log.p99", Target::None),
    ("latency.log.max", Target::None),
    ("latency.log.within", AtMost(1000.0)),
    ("latency.signal.p50", RatioAtMost(1.25)),
    ("latency.signal.p50.dumb-init", Target::None),
    ("latency.signal.p95", Target::None),
    ("latency.signal.p95.dumb-init", Target::None),
    ("scaling.time", Target::None),
    ("scaling.time.flat", RatioAtMost(1.1)),
    ("scaling.memory", AtMost(640.0)),
    ("scaling.jobs", Target::None),
    ("scaling.jobs.flat", RatioAtMost(1.25)),
];

/// A row's target.
pub(crate) fn of(row: &str) -> Target {
    TARGETS.iter().find(|(name, _)| *name == row).map_or(Target::None, |(_, target)| *target)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RatioAtLeast(bound) => write!(f, "≥ {bound:.2}×"),
            RatioAtMost(bound) if *bound < 0.2 => write!(f, "≤ {bound:.3}×"),
            RatioAtMost(bound) => write!(f, "≤ {bound:.2}×"),
            AtMost(bound) => write!(f, "≤ {}", crate::report::whole(*bound)),
            Target::None => f.write_str("–"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_named_once() {
        let mut names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn targets_read_as_bounds() {
        assert_eq!(of("startup.synced").to_string(), "≤ 0.143×");
        assert_eq!(of("discard.128k.wc").to_string(), "≥ 3.00×");
        assert_eq!(of("memory.idle").to_string(), "≤ 256");
        assert_eq!(of("size.catatonit").to_string(), "–");
    }
}
