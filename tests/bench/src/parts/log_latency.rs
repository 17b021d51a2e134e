//! From a sparse write until its byte can be read in the log.

use super::KIB;
use crate::Fallible;
use crate::bench::Bench;
use crate::clock::now_ns;
use crate::results::Row;
use crate::run;
use crate::statistics::{Samples, interleaved};
use crate::wrapper::{Around, Sync, Wrapper};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(super) fn rows(bench: &Bench) -> Fallible<Vec<Row>> {
    let mut wrappers = vec![Wrapper::Weir];
    wrappers.extend(Wrapper::present(bench, &[Wrapper::ShGnu]));
    let batches = interleaved(bench.either(7, 3), &wrappers, |it| batch_us(bench, it))?;
    let of = |at: usize, percent: f64| {
        let batches = batches.get(at)?;
        Samples::of(batches.iter().map(|batch| batch.percentile(percent)))
    };
    let mut rows = Vec::new();
    for (name, what, percent) in [
        ("latency.log.p50", "a byte is in the log, p50", 50.0),
        ("latency.log.p95", "a byte is in the log, p95", 95.0),
        ("latency.log.p99", "a byte is in the log, p99", 99.0),
        ("latency.log.max", "a byte is in the log, slowest of a batch", 100.0),
    ] {
        let weir = of(0, percent).ok_or("no batches")?;
        rows.push(Row::alone(name, (what, "µs"), weir).beside("sh GNU", of(1, percent)));
    }
    // The promise is one of every byte; what the machine takes away for a while is not weir's.
    let weir = of(0, 99.0).ok_or("no batches")?;
    rows.push(Row::alone("latency.log.within", ("a byte is in the log, p99", "µs"), weir));
    Ok(rows)
}

/// How long each byte of a job took into the log, in microseconds.
fn batch_us(bench: &Bench, wrapper: Wrapper) -> Fallible<Samples> {
    let count = bench.either(500, 200);
    let around = Around { log: bench.scratch.at("log"), quota_bytes: 64 * KIB, sync: Sync::None };
    let job = bench.job(&["ticks", &count.to_string(), "3000"]);
    let running = run::start(&mut wrapper.command(bench, &around, &job), bench.at_writer())?;
    let before = run::pin(bench.at_reader())?;
    let seen = observe(&around.log, count);
    run::unpin(before)?;
    run::finish(running)?.expect_success()?;
    wrapper.settle(&around, count as u64 * 8)?;
    seen
}

/// Reads the log until so many stamps are in it, and notes how old each was when it was seen.
fn observe(log: &Path, count: usize) -> Fallible<Samples> {
    let deadline_ns = now_ns() + 60_000_000_000;
    let mut ages_us = Vec::with_capacity(count);
    let log = loop {
        match File::open(log) {
            Ok(log) => break log,
            Err(_) if now_ns() < deadline_ns => {}
            Err(why) => return Err(format!("{}: {why}", log.display()).into()),
        }
    };
    let mut stamp = [0; 8];
    while ages_us.len() < count {
        let length = log.read_at(&mut stamp, ages_us.len() as u64 * 8)?;
        let seen_ns = now_ns();
        match length {
            8 => ages_us.push((seen_ns - u64::from_ne_bytes(stamp)) as f64 / 1e3),
            _ if seen_ns > deadline_ns => return Err("the log does not grow".into()),
            _ => {}
        }
    }
    Samples::of(ages_us).ok_or_else(|| "no stamps".into())
}
