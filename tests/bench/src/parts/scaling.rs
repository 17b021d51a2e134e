//! Whether cost stays in proportion: to output, and to the number of jobs.

use super::{GIB, KIB, MIB};
use crate::Fallible;
use crate::bench::Bench;
use crate::jobs::Report;
use crate::processes;
use crate::results::{Part, Row};
use crate::run::{self, Place};
use crate::statistics::Samples;
use crate::wrapper::{Around, Sync, Wrapper};
use weir_common::sys::process::{self, Pid};
use weir_common::sys::signals;

/// How long one run may be expected to take, in seconds.
const LONGEST: f64 = 40.0;

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "Discard of more and more output in 128 KiB writes with a quota of 64 KiB, the writer on \
         processor {}, weir on {}: time of the job for each MiB, and weir's RSS afterwards. Then \
         jobs at once that write 1 MiB each: processor time for each, the job's own in it.",
        bench.writer, bench.reader
    );
    let mut part = Part::new("scaling", "Scaling", note);
    output(bench, &mut part)?;
    jobs(bench, &mut part)?;
    Ok(part)
}

const OUTPUTS: [(u64, &str); 7] = [
    (MIB, "1 MiB"),
    (16 * MIB, "16 MiB"),
    (256 * MIB, "256 MiB"),
    (GIB, "1 GiB"),
    (2 * GIB, "2 GiB"),
    (16 * GIB, "16 GiB"),
    (64 * GIB, "64 GiB"),
];

fn output(bench: &Bench, part: &mut Part) -> Fallible<()> {
    let mut base = None;
    let mut last = None;
    let most = bench.either(64 * GIB, 2 * GIB);
    for (total, name) in OUTPUTS.into_iter().filter(|(total, _)| *total <= most) {
        let expected = last.map_or(0.0, |ns_per_mib: f64| ns_per_mib * (total / MIB) as f64 / 1e9);
        if expected > LONGEST {
            eprintln!("weir-bench: {name} would take {expected:.0} s: left out");
            continue;
        }
        // Short runs are noisy, and cheap.
        let rounds = if total <= GIB { 5 } else { 1 };
        let runs = (0..rounds).map(|_| discard(bench, total)).collect::<Fallible<Vec<_>>>()?;
        let time = Samples::of(runs.iter().map(|run| run.0)).ok_or("no rounds")?;
        let memory = Samples::of(runs.iter().map(|run| run.1)).ok_or("no rounds")?;
        last = Some(time.median());
        let what = format!("{name} of output: time");
        let row = |row: &str| Row::alone(row, (&what, "ns/MiB"), time.clone());
        part.rows.push(match &base {
            Some(base) if total > GIB => {
                row("scaling.time.flat").beside("weir, 1 GiB", Samples::clone(base).into())
            }
            _ => row("scaling.time"),
        });
        if total == GIB {
            base = Some(time.clone());
        }
        let what = format!("{name} of output: RSS");
        part.rows.push(Row::alone("scaling.memory", (&what, "KiB"), memory));
    }
    Ok(())
}

/// The job's time for each MiB in nanoseconds, and weir's RSS afterwards in KiB.
fn discard(bench: &Bench, total: u64) -> Fallible<(f64, f64)> {
    let report = bench.scratch.at("report");
    let around = Around { log: bench.scratch.at("log"), quota_bytes: 64 * KIB, sync: Sync::None };
    let (bytes, cpu) = (total.to_string(), bench.writer.to_string());
    let job = bench.job(&["write-and-stay", "131072", &bytes, &report.to_string_lossy(), &cpu]);
    let running = run::start(&mut Wrapper::Weir.command(bench, &around, &job), bench.at_reader())?;
    processes::until_within(170, "the job's report", || Ok(report.exists().then_some(())))?;
    let (own, job) = processes::settled(running.pid.raw(), &bench.own_name())?;
    let held = processes::memory(own.first().ok_or("no weir")?.pid)?;
    let job = Pid::from_raw(job).ok_or("no such number")?;
    process::send(job, signals::TERM).map_err(|why| format!("cannot end the job: {why:?}"))?;
    run::finish(running)?;
    Wrapper::Weir.settle(&around, total)?;
    let taken_ns = Report::take(&report)?.wall_ns;
    Ok((taken_ns as f64 * MIB as f64 / total as f64, held.resident as f64))
}

fn jobs(bench: &Bench, part: &mut Part) -> Fallible<()> {
    let mut base = None;
    for count in [1, 10, 100, bench.either(1000, 200)] {
        let rounds = if count <= 10 { 9 } else { bench.either(3, 1) };
        let runs = (0..rounds).map(|_| cpu_us(bench, count)).collect::<Fallible<Vec<f64>>>()?;
        let runs = Samples::of(runs).ok_or("no rounds")?;
        let what = format!("{count} jobs at once: cpu for each");
        let row = |name: &str| Row::alone(name, (&what, "µs"), runs.clone());
        part.rows.push(match &base {
            Some(base) if count > 100 => {
                row("scaling.jobs.flat").beside("weir, 10 jobs", Samples::clone(base).into())
            }
            _ => row("scaling.jobs"),
        });
        if count == 10 {
            base = Some(runs.clone());
        }
    }
    Ok(())
}

/// Processor time for each of so many jobs, in microseconds.
fn cpu_us(bench: &Bench, count: usize) -> Fallible<f64> {
    let mut running = Vec::new();
    let mut places = Vec::new();
    for at in 0..count {
        let report = bench.scratch.at(&format!("report-{at}"));
        let log = bench.scratch.at(&format!("log-{at}"));
        let around = Around { log, quota_bytes: MIB, sync: Sync::None };
        let words = ["write", "4096", &MIB.to_string(), &report.to_string_lossy(), "-"];
        let mut command = Wrapper::Weir.command(bench, &around, &bench.job(&words));
        running.push(run::start(&mut command, Place::Anywhere)?);
        places.push((around, report));
    }
    let ended = run::finish_all(running)?;
    let each = ended.into_iter().map(|it| Ok(it.expect_success()?.cpu_ns));
    let cpu_ns: u64 = each.collect::<Fallible<Vec<u64>>>()?.iter().sum();
    for (around, report) in places {
        Report::take(&report)?;
        Wrapper::Weir.settle(&around, MIB)?;
    }
    Ok(cpu_ns as f64 / 1e3 / count as f64)
}
