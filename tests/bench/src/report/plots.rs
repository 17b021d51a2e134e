//! The plots: which lines they show, and between which bounds.

use super::svg::{Axis, Panel, picture};
use crate::results::Results;

/// Every plot that there are lines for, with the name of its file.
pub(super) fn draw(results: &Results) -> Vec<(&'static str, String)> {
    let throughput = [("capture", "Capture: into a log"), ("discard", "Discard: beyond the quota")]
        .map(|(plot, title)| Panel {
            title,
            lines: results.plot(plot),
            x: Axis { label: "bytes in each write", ticks: WRITES },
            y: "MB/s",
        });
    let memory = [Panel {
        title: "Memory of one job's wrapper",
        lines: results.plot("memory"),
        x: Axis { label: "jobs at once", ticks: JOBS },
        y: "KiB (PSS) per job",
    }];
    let drawn = [("throughput.svg", picture(&throughput)), ("memory.svg", picture(&memory))];
    drawn.into_iter().filter_map(|(name, picture)| Some((name, picture?))).collect()
}

const WRITES: &[(f64, &str)] = &[
    (80.0, "80"),
    (256.0, "256"),
    (1024.0, "1 Ki"),
    (4096.0, "4 Ki"),
    (16_384.0, "16 Ki"),
    (131_072.0, "128 Ki"),
];

const JOBS: &[(f64, &str)] = &[(1.0, "1"), (10.0, "10"), (100.0, "100"), (1000.0, "1000")];
