//! What is measured, subject by subject.

mod against;
mod capture;
mod chatty;
mod discard;
mod endtoend;
mod latency;
mod log_latency;
mod memory;
mod scaling;
mod signal_latency;
mod size;
mod startup;
mod throughput;

use crate::Fallible;
use crate::bench::Bench;
use crate::results::Part;

type Measure = fn(&Bench) -> Fallible<Part>;

/// Every part by its name, in the order in which they are run. Start-up comes before the jobs
/// of memory: ext4 looks twice at inodes that were deleted a moment ago, and thousands of
/// those would make every file of a start look dearer than it is.
pub(crate) const PARTS: [(&str, Measure); 10] = [
    ("size", size::measure),
    ("startup", startup::measure),
    ("memory", memory::measure),
    ("discard", discard::measure),
    ("capture", capture::measure),
    ("chatty", chatty::measure),
    ("endtoend", endtoend::measure),
    ("latency", latency::measure),
    ("scaling", scaling::measure),
    ("throughput", throughput::measure),
];

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
