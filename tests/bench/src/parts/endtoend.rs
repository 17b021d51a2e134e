//! Whole runs of jobs that write more than is kept.

use super::{GIB, KIB, MIB};
use crate::Fallible;
use crate::bench::Bench;
use crate::jobs::Report;
use crate::results::{Part, Row};
use crate::run::{self, Place};
use crate::statistics::{Samples, interleaved};
use crate::wrapper::{Around, Sync, Wrapper};

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = format!(
        "From the start of the wrapper to its end, without fsyncs: a quota of 64 MiB, and {}; the \
         system places processes as it likes. 64 jobs at once write 16 MiB each, with a quota of \
         4 MiB; cpu is of everybody, the jobs too.",
        bench.either("1 GiB of output (256 MiB of lines)", "256 MiB of output (96 MiB of lines)"),
    );
    let mut part = Part::new("endtoend", "End to end", note);
    let total = bench.either(GIB, 256 * MIB);
    single(bench, &mut part, ("128k", "128 KiB writes", 128 * KIB), total)?;
    single(bench, &mut part, ("4k", "4 KiB writes", 4 * KIB), total)?;
    single(bench, &mut part, ("lines", "80-byte lines", 80), bench.either(256 * MIB, 96 * MIB))?;
    many(bench, &mut part)?;
    Ok(part)
}

const PEERS: [(Wrapper, &str); 2] =
    [(Wrapper::ShGnu, "sh-gnu"), (Wrapper::ShBusybox, "sh-busybox")];

fn single(
    bench: &Bench,
    part: &mut Part,
    (name, what, write): (&str, &str, u64),
    total: u64,
) -> Fallible<()> {
    let report = bench.scratch.at("report");
    let (size, bytes) = (write.to_string(), total.to_string());
    let job = bench.job(&["write", &size, &bytes, &report.to_string_lossy(), "-"]);
    let mut wrappers = vec![Wrapper::Weir];
    wrappers.extend(Wrapper::present(bench, &PEERS.map(|(wrapper, _)| wrapper)));
    let found = interleaved(bench.either(3, 2), &wrappers, |wrapper| -> Fallible<f64> {
        let around =
            Around { log: bench.scratch.at("log"), quota_bytes: 64 * MIB, sync: Sync::None };
        let ended = run::run(&mut wrapper.command(bench, &around, &job), Place::Anywhere)?;
        Report::take(&report)?;
        wrapper.settle(&around, total)?;
        Ok(total as f64 * 1e3 / ended.wall_ns as f64)
    })?;
    let of = |wrapper| {
        let at = wrappers.iter().position(|it| *it == wrapper)?;
        Samples::of(found[at].iter().copied())
    };
    let weir = of(Wrapper::Weir).ok_or("no rounds")?;
    for (peer, end) in PEERS {
        let row = Row::alone(&format!("endtoend.{name}.{end}"), (what, "MB/s"), weir.clone());
        part.rows.push(row.beside(peer.name(), of(peer)));
    }
    Ok(())
}

const JOBS: usize = 64;

/// Processor time and time of many jobs at once, in milliseconds.
fn many_ms(bench: &Bench, wrapper: Wrapper) -> Fallible<(f64, f64)> {
    let total = 16 * MIB;
    let mut running = Vec::new();
    let mut places = Vec::new();
    for at in 0..JOBS {
        let report = bench.scratch.at(&format!("report-{at}"));
        let log = bench.scratch.at(&format!("log-{at}"));
        let around = Around { log, quota_bytes: 4 * MIB, sync: Sync::None };
        let words = ["write", "65536", &total.to_string(), &report.to_string_lossy(), "-"];
        let mut command = wrapper.command(bench, &around, &bench.job(&words));
        running.push(run::start(&mut command, Place::Anywhere)?);
        places.push((around, report));
    }
    let (mut cpu_ns, mut wall_ns) = (0, 0);
    for ended in run::finish_all(running)? {
        let ended = ended.expect_success()?;
        cpu_ns += ended.cpu_ns;
        wall_ns = wall_ns.max(ended.wall_ns);
    }
    for (around, report) in places {
        Report::take(&report)?;
        wrapper.settle(&around, total)?;
    }
    Ok((cpu_ns as f64 / 1e6, wall_ns as f64 / 1e6))
}

fn many(bench: &Bench, part: &mut Part) -> Fallible<()> {
    let mut wrappers = vec![Wrapper::Weir];
    wrappers.extend(Wrapper::present(bench, &[Wrapper::ShGnu]));
    let found = interleaved(bench.either(5, 2), &wrappers, |it| many_ms(bench, it))?;
    let cpu = |at: usize| Samples::of(found.get(at)?.iter().map(|times| times.0));
    let wall = |at: usize| Samples::of(found.get(at)?.iter().map(|times| times.1));
    let peer = Wrapper::ShGnu.name();
    let row = Row::alone("endtoend.many", ("64 jobs at once: cpu", "ms"), cpu(0).ok_or("none")?);
    part.rows.push(row.beside(peer, cpu(1)));
    let what = ("64 jobs at once: time of the last", "ms");
    let row = Row::alone("endtoend.many.time", what, wall(0).ok_or("none")?);
    part.rows.push(row.beside(peer, wall(1)));
    Ok(())
}
