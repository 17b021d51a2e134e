//! Whether a row is as it should be.

use super::Row;
use crate::targets::Target;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its target is met.
    Pass,
    /// It is not.
    Short,
    /// There is nothing to hold it against.
    NoPeer,
    /// It has no target.
    Info,
}

impl Verdict {
    pub(super) fn on(row: &Row) -> Verdict {
        let is_met = match (row.target(), row.ratio()) {
            (Target::AtMost(bound), _) => row.weir.median <= bound,
            (Target::RatioAtLeast(bound), Some(ratio)) => ratio >= bound,
            (Target::RatioAtMost(bound), Some(ratio)) => ratio <= bound,
            (Target::None, _) if row.peer.is_none() || row.peer_figure().is_some() => {
                return Verdict::Info;
            }
            _ => return Verdict::NoPeer,
        };
        if is_met { Verdict::Pass } else { Verdict::Short }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Short => "short",
            Verdict::NoPeer => "no peer",
            Verdict::Info => "info",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Samples;

    fn row(name: &str, weir: f64) -> Row {
        Row::alone(name, ("x", "y"), Samples::of([weir]).expect("one"))
    }

    #[test]
    fn a_bound_itself_is_inside() {
        assert_eq!(row("memory.idle", 256.0).verdict(), Verdict::Pass);
        assert_eq!(row("memory.idle", 256.5).verdict(), Verdict::Short);
    }

    #[test]
    fn ratios_are_of_weir_over_its_peer() {
        let verdict = |name, weir, peer| row(name, weir).beside("p", Samples::of([peer])).verdict();
        assert_eq!(verdict("discard.128k.wc", 6.0, 2.0), Verdict::Pass);
        assert_eq!(verdict("discard.128k.wc", 5.9, 2.0), Verdict::Short);
        assert_eq!(verdict("startup.init", 1.5, 2.0), Verdict::Pass);
        assert_eq!(verdict("startup.init", 1.6, 2.0), Verdict::Short);
    }

    #[test]
    fn without_its_peer_a_row_says_so() {
        assert_eq!(row("startup.init", 1.0).beside("tini", None).verdict(), Verdict::NoPeer);
        assert_eq!(row("startup.catatonit", 1.0).beside("c", None).verdict(), Verdict::NoPeer);
        assert_eq!(row("startup.catatonit", 1.0).verdict(), Verdict::Info);
    }
}
