//! What a wrapper adds to the time of a job that does nothing.

use super::KIB;
use crate::Fallible;
use crate::bench::{Bench, command};
use crate::clock::now_ns;
use crate::results::{Part, Row};
use crate::run::{self, Place};
use crate::statistics::{Samples, differences, interleaved};
use crate::wrapper::{Around, Sync, Wrapper};

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let rounds = bench.either(300, 60);
    let note = format!(
        "Time from the start to the end of /bin/true in each wrapper, less that of /bin/true \
         alone in the same round: medians of {rounds} differences. weir has its FIFO, log and fact \
         in it. \"Until the job runs\" ends with the job's first instruction.",
    );
    let mut part = Part::new("startup", "Start-up", note);
    added(bench, &mut part, rounds)?;
    synced(bench, &mut part, bench.either(150, 30))?;
    first_instruction(bench, &mut part, rounds)?;
    calls(bench, &mut part)?;
    Ok(part)
}

fn around(bench: &Bench, sync: Sync) -> Around {
    Around { log: bench.scratch.at("log"), quota_bytes: 64 * KIB, sync }
}

/// The time of one run in microseconds.
fn time_us(bench: &Bench, wrapper: Wrapper, sync: Sync, job: &[String]) -> Fallible<f64> {
    let around = around(bench, sync);
    let ended = run::run(&mut wrapper.command(bench, &around, job), Place::Anywhere)?;
    wrapper.settle(&around, 0)?;
    Ok(ended.wall_ns as f64 / 1e3)
}

/// What each of these adds to the job alone, in microseconds.
fn added_us(
    bench: &Bench,
    wanted: &[Wrapper],
    sync: Sync,
    rounds: usize,
) -> Fallible<Vec<(Wrapper, Samples)>> {
    let job = ["/bin/true".to_owned()];
    let mut wrappers = vec![Wrapper::Direct];
    wrappers.extend(Wrapper::present(bench, wanted));
    // Once before, so that every program is in memory.
    interleaved(1, &wrappers, |it| time_us(bench, it, sync, &job))?;
    let found = interleaved(rounds, &wrappers, |it| time_us(bench, it, sync, &job))?;
    let others = wrappers.iter().zip(&found).skip(1);
    Ok(others.filter_map(|(it, times)| Some((*it, differences(times, &found[0])?))).collect())
}

fn of(all: &[(Wrapper, Samples)], wrapper: Wrapper) -> Option<Samples> {
    all.iter().find(|(it, _)| *it == wrapper).map(|(_, samples)| samples.clone())
}

fn added(bench: &Bench, part: &mut Part, rounds: usize) -> Fallible<()> {
    let peers = [
        (Wrapper::Tini, "startup.init"),
        (Wrapper::DumbInit, "startup.init"),
        (Wrapper::Catatonit, "startup.catatonit"),
        (Wrapper::ShGnu, "startup.sh-gnu"),
        (Wrapper::ShBusybox, "startup.sh-busybox"),
    ];
    let mut wanted = vec![Wrapper::Weir];
    wanted.extend(peers.map(|(wrapper, _)| wrapper));
    let found = added_us(bench, &wanted, Sync::None, rounds)?;
    let weir = of(&found, Wrapper::Weir).ok_or("no rounds")?;
    for (peer, name) in peers {
        let row = Row::alone(name, ("added to a job, no fsync", "µs"), weir.clone());
        part.rows.push(row.beside(peer.name(), of(&found, peer)));
    }
    Ok(())
}

fn synced(bench: &Bench, part: &mut Part, rounds: usize) -> Fallible<()> {
    let found = added_us(bench, &[Wrapper::Weir, Wrapper::ShGnu], Sync::Full, rounds)?;
    let weir = of(&found, Wrapper::Weir).ok_or("no rounds")?;
    let row = Row::alone("startup.synced", ("added to a job, with fsyncs", "µs"), weir);
    part.rows.push(row.beside("sh GNU, sync", of(&found, Wrapper::ShGnu)));
    Ok(())
}

/// From just before the start to the job's first instruction, less the same of the job alone.
fn first_instruction(bench: &Bench, part: &mut Part, rounds: usize) -> Fallible<()> {
    let stamp = bench.scratch.at("stamp");
    let job = bench.job(&["stamp", &stamp.to_string_lossy()]);
    let peers = [Wrapper::Tini, Wrapper::DumbInit, Wrapper::ShGnu];
    let mut wrappers = vec![Wrapper::Direct, Wrapper::Weir];
    wrappers.extend(Wrapper::present(bench, &peers));
    let found = interleaved(rounds, &wrappers, |wrapper| -> Fallible<f64> {
        let around = around(bench, Sync::None);
        let mut command = wrapper.command(bench, &around, &job);
        let started_ns = now_ns();
        run::run(&mut command, Place::Anywhere)?;
        wrapper.settle(&around, 0)?;
        let bytes: [u8; 8] = std::fs::read(&stamp)?.try_into().map_err(|_| "a cut stamp")?;
        std::fs::remove_file(&stamp)?;
        Ok((u64::from_ne_bytes(bytes) - started_ns) as f64 / 1e3)
    })?;
    let of = |wrapper| {
        let at = wrappers.iter().position(|it| *it == wrapper)?;
        differences(&found[at], &found[0])
    };
    let weir = of(Wrapper::Weir).ok_or("no rounds")?;
    for peer in peers {
        let row = Row::alone("startup.first", ("added until the job runs", "µs"), weir.clone());
        part.rows.push(row.beside(peer.name(), of(peer)));
    }
    Ok(())
}

/// System calls of a whole run, less those of the job alone.
fn calls(bench: &Bench, part: &mut Part) -> Fallible<()> {
    let Some(strace) = bench.peers.path("strace") else {
        part.note += " No strace: system calls were not counted.";
        return Ok(());
    };
    let job = ["/bin/true".to_owned()];
    let count = |wrapper: Wrapper| -> Fallible<f64> {
        let (around, told) = (around(bench, Sync::Full), bench.scratch.at("strace"));
        let run = wrapper.command(bench, &around, &job);
        let mut traced = command(strace);
        traced.args(["-f", "-c", "-o"]).arg(&told).arg("--").arg(run.get_program());
        run::run(traced.args(run.get_args()), Place::Anywhere)?;
        wrapper.settle(&around, 0)?;
        total_calls(&std::fs::read_to_string(&told)?)
    };
    let alone = count(Wrapper::Direct)?;
    let weir = Samples::of([count(Wrapper::Weir)? - alone]).ok_or("no calls")?;
    for peer in [Wrapper::Tini, Wrapper::ShGnu] {
        let here = Wrapper::present(bench, &[peer]);
        let theirs = here.into_iter().map(count).collect::<Fallible<Vec<f64>>>()?;
        let what = ("system calls of a run with fsyncs", "calls");
        let row = Row::alone("startup.calls", what, weir.clone());
        let theirs = theirs.into_iter().map(|calls| calls - alone);
        part.rows.push(row.beside(peer.name(), Samples::of(theirs)));
    }
    Ok(())
}

/// The sum in the last line of strace's table.
fn total_calls(table: &str) -> Fallible<f64> {
    let line = table.lines().find(|line| line.ends_with(" total")).ok_or("no total")?;
    // Share, seconds, microseconds each, calls, maybe errors.
    Ok(line.split_whitespace().nth(3).ok_or("a short total")?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_trace_is_its_calls() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     100.00    0.000000           0         1           execve\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.000123           2        61         3 total\n";
        assert_eq!(total_calls(table).ok(), Some(61.0));
    }
}
