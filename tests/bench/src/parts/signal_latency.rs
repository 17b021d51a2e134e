//! From a signal to the wrapper until its job has it.

use super::KIB;
use crate::Fallible;
use crate::bench::{Bench, command};
use crate::clock::now_ns;
use crate::results::Row;
use crate::run::{self, Place, Running};
use crate::statistics::{Samples, interleaved};
use crate::wrapper::{Around, Sync, Wrapper};
use rustix::process::Signal;
use std::fs::File;
use std::io::Read;
use std::time::Duration;
use weir_common::sys::process;

pub(super) fn rows(bench: &Bench) -> Fallible<Vec<Row>> {
    let mut wrappers = vec![Wrapper::Weir];
    wrappers.extend(Wrapper::present(bench, &[Wrapper::Tini, Wrapper::DumbInit]));
    let signals = bench.either(600, 200);
    let mut receivers = wrappers
        .iter()
        .map(|wrapper| Receiver::start(bench, *wrapper, signals))
        .collect::<Fallible<Vec<Receiver>>>()?;
    let each: Vec<usize> = (0..receivers.len()).collect();
    let found = interleaved(signals, &each, |at| receivers[at].signal_us())?;
    end(receivers)?;
    let of = |wrapper: Wrapper, percent: f64| {
        let at = wrappers.iter().position(|it| *it == wrapper)?;
        let all = Samples::of(found[at].iter().copied())?;
        Samples::of([all.percentile(percent)])
    };
    let mut rows = Vec::new();
    for (name, what, percent) in [
        ("latency.signal.p50", "a signal is at the job, p50", 50.0),
        ("latency.signal.p95", "a signal is at the job, p95", 95.0),
    ] {
        let weir = of(Wrapper::Weir, percent).ok_or("no signals")?;
        let row = |name: &str| Row::alone(name, (what, "µs"), weir.clone());
        rows.push(row(name).beside("tini", of(Wrapper::Tini, percent)));
        let name = format!("{name}.dumb-init");
        rows.push(row(&name).beside("dumb-init", of(Wrapper::DumbInit, percent)));
    }
    Ok(rows)
}

/// A job in its wrapper that says when signals arrive.
struct Receiver {
    wrapper: Wrapper,
    running: Running,
    around: Around,
    stamps: File,
}

impl Receiver {
    fn start(bench: &Bench, wrapper: Wrapper, signals: usize) -> Fallible<Receiver> {
        let name = wrapper.name();
        let fifo = bench.scratch.at(&format!("fifo-{name}"));
        run::run(command("mkfifo").arg(&fifo), Place::Anywhere)?;
        let log = bench.scratch.at(&format!("log-{name}"));
        let around = Around { log, quota_bytes: 64 * KIB, sync: Sync::None };
        let job = bench.job(&["signals", &signals.to_string(), &fifo.to_string_lossy()]);
        let running = run::start(&mut wrapper.command(bench, &around, &job), Place::Anywhere)?;
        let mut receiver = Receiver { wrapper, running, around, stamps: File::open(fifo)? };
        // It is ready.
        receiver.stamp()?;
        Ok(receiver)
    }

    fn stamp(&mut self) -> Fallible<u64> {
        let mut stamp = [0; 8];
        self.stamps.read_exact(&mut stamp)?;
        Ok(u64::from_ne_bytes(stamp))
    }

    /// Sends one signal, and gives the microseconds that it took.
    fn signal_us(&mut self) -> Fallible<f64> {
        // Everybody is asleep then, as they mostly are when a signal comes.
        std::thread::sleep(Duration::from_millis(1));
        let sent_ns = now_ns();
        process::send(self.running.pid, Signal::USR1.as_raw())
            .map_err(|why| format!("cannot send a signal: {why:?}"))?;
        Ok((self.stamp()? - sent_ns) as f64 / 1e3)
    }
}

/// The jobs have had all their signals, and end.
fn end(receivers: Vec<Receiver>) -> Fallible<()> {
    let (running, places): (Vec<Running>, Vec<(Wrapper, Around)>) =
        receivers.into_iter().map(|it| (it.running, (it.wrapper, it.around))).unzip();
    for ended in run::finish_all(running)? {
        ended.expect_success()?;
    }
    places.iter().try_for_each(|(wrapper, around)| wrapper.settle(around, 0))
}
