//! How soon a byte is in the log, and a signal at the job.

use super::{log_latency, signal_latency};
use crate::Fallible;
use crate::bench::Bench;
use crate::results::Part;

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "A job that writes the time every 3 ms, and an observer on processor {} that reads the \
         log without a pause until it sees it; everybody else is on processor {}. Signals: from \
         just before kill(2) until the job has read it.",
        bench.reader, bench.writer
    );
    let mut part = Part::new("latency", "Latency", note);
    part.rows = log_latency::rows(bench)?;
    part.rows.extend(signal_latency::rows(bench)?);
    Ok(part)
}
