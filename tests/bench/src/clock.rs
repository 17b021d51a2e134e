//! Clocks that processes share.

use rustix::time::{ClockId, clock_gettime};

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock runs below zero.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock, which is the same for every process.
pub(crate) fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of processor time that this process has used, from its fork on.
pub(crate) fn own_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}
