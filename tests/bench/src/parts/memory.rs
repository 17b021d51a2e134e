//! What a job's wrapper holds in memory. The job's own processes are left out for all alike.

use super::{KIB, MIB};
use crate::Fallible;
use crate::bench::{Bench, command};
use crate::processes::{self, Memory};
use crate::results::{Part, Row, Series};
use crate::run::{self, Place, Running};
use crate::statistics::{Samples, interleaved};
use crate::wrapper::{Around, Sync, Wrapper};
use std::path::Path;
use weir_common::sys::process::{self, Pid};
use weir_common::sys::signals;

pub(super) fn measure(bench: &Bench) -> Fallible<Part> {
    let note = "RSS and PSS from /proc/PID/smaps_rollup, summed over the wrapper's own processes \
        while its job, a sleep, sleeps. PSS divides what is shared among those who share it. See \
        memory.svg."
        .to_owned();
    let mut part = Part::new("memory", "Memory", note);
    idle(bench, &mut part)?;
    let drained = Samples::of([drained(bench)?]).ok_or("nothing")?;
    let total = bench.either("1 GiB", "128 MiB");
    let what = format!("RSS after draining {total} over a quota of 64 MiB");
    part.rows.push(Row::alone("memory.drained", (&what, "KiB"), drained));
    many(bench, &mut part)?;
    Ok(part)
}

const IDLE: [(Wrapper, &str); 4] = [
    (Wrapper::Tini, "memory.idle.tini"),
    (Wrapper::DumbInit, "memory.idle.dumb-init"),
    (Wrapper::ShGnu, "memory.idle.sh-gnu"),
    (Wrapper::ShBusybox, "memory.idle.sh-busybox"),
];

fn idle(bench: &Bench, part: &mut Part) -> Fallible<()> {
    let peers: Vec<Wrapper> = IDLE.iter().map(|(wrapper, _)| *wrapper).collect();
    let mut wrappers = vec![Wrapper::Weir];
    wrappers.extend(Wrapper::present(bench, &peers));
    let rounds = bench.either(5, 3);
    let found = interleaved(rounds, &wrappers, |wrapper| {
        let mut jobs = asleep(bench, wrapper, 1)?;
        let held = jobs.held.pop().ok_or("no job")?;
        jobs.end()?;
        Ok::<_, Box<dyn std::error::Error>>(held)
    })?;
    let resident = |at: usize| Samples::of(found[at].iter().map(|held| held.0.resident as f64));
    let weir = resident(0).ok_or("no rounds")?;
    let row = |name: &str| Row::alone(name, ("RSS while the job sleeps", "KiB"), weir.clone());
    part.rows.push(row("memory.idle"));
    for (wrapper, name) in IDLE {
        let at = wrappers.iter().position(|it| *it == wrapper);
        part.rows.push(row(name).beside(wrapper.name(), at.and_then(resident)));
    }
    let conmon = bench.peers.path("conmon").map(|path| conmon(bench, path)).transpose()?;
    part.rows.push(row("memory.idle.conmon").beside("conmon", Samples::of(conmon)));
    let processes = Samples::of(found[0].iter().map(|held| held.1 as f64)).ok_or("no rounds")?;
    let row = Row::alone("memory.processes", ("processes for each job", "processes"), processes);
    part.rows.push(match wrappers.iter().position(|it| *it == Wrapper::ShGnu) {
        None => row.beside(Wrapper::ShGnu.name(), None),
        Some(at) => {
            let theirs = Samples::of(found[at].iter().map(|held| held.1 as f64));
            row.beside(Wrapper::ShGnu.name(), theirs)
        }
    });
    Ok(())
}

const COUNTS: [usize; 4] = [1, 10, 100, 1000];

fn many(bench: &Bench, part: &mut Part) -> Fallible<()> {
    let wrappers = [
        (Wrapper::Weir, "memory.many"),
        (Wrapper::Tini, "memory.many.tini"),
        (Wrapper::ShGnu, "memory.many.sh-gnu"),
        (Wrapper::ShBusybox, "memory.many.sh-busybox"),
    ];
    let most = bench.either(1000, 100);
    let mut weir = None;
    for (wrapper, name) in wrappers {
        let is_here = !Wrapper::present(bench, &[wrapper]).is_empty();
        let mut points = Vec::new();
        for count in COUNTS.into_iter().filter(|count| *count <= most && is_here) {
            let jobs = asleep(bench, wrapper, count)?;
            let sum: u64 = jobs.held.iter().map(|held| held.0.proportional).sum();
            jobs.end()?;
            points.push((count as f64, sum as f64 / count as f64));
        }
        let last = Samples::of(points.last().map(|point| point.1));
        let own = weir.get_or_insert_with(|| last.clone()).clone().ok_or("no jobs")?;
        let row = Row::alone(name, (&format!("PSS per job, {most} at once"), "KiB"), own);
        part.rows.push(if wrapper == Wrapper::Weir {
            row
        } else {
            row.beside(wrapper.name(), last)
        });
        if is_here {
            let name = wrapper.name().to_owned();
            part.series.push(Series { plot: "memory".to_owned(), name, points });
        }
    }
    Ok(())
}

/// Jobs that sleep, each in a wrapper of its own.
struct Asleep {
    wrapper: Wrapper,
    running: Vec<Running>,
    places: Vec<Around>,
    jobs: Vec<i32>,
    /// What each wrapper holds, and in how many processes.
    held: Vec<(Memory, usize)>,
}

/// Starts so many, and looks at them when all of them are asleep.
fn asleep(bench: &Bench, wrapper: Wrapper, count: usize) -> Fallible<Asleep> {
    let job = ["sleep", "1000"].map(str::to_owned);
    let mut all = Asleep {
        wrapper,
        running: Vec::new(),
        places: Vec::new(),
        jobs: Vec::new(),
        held: Vec::new(),
    };
    for at in 0..count {
        let log = bench.scratch.at(&format!("log-{at}"));
        let around = Around { log, quota_bytes: 64 * KIB, sync: Sync::None };
        all.running.push(run::start(&mut wrapper.command(bench, &around, &job), Place::Anywhere)?);
        all.places.push(around);
    }
    let mut own = Vec::new();
    for child in &all.running {
        let (processes, job) = processes::settled(child.pid.raw(), "sleep")?;
        own.push(processes);
        all.jobs.push(job);
    }
    for processes in own {
        let mut sum = Memory::default();
        for one in &processes {
            let held = processes::memory(one.pid)?;
            sum.resident += held.resident;
            sum.proportional += held.proportional;
        }
        all.held.push((sum, processes.len()));
    }
    Ok(all)
}

impl Asleep {
    /// Ends the jobs, waits for their wrappers, and removes what they leave.
    fn end(self) -> Fallible<()> {
        for job in self.jobs {
            end(job)?;
        }
        run::finish_all(self.running)?;
        // A shell tells of the signal in the log; so nobody is asked what was kept.
        self.places.iter().try_for_each(|around| self.wrapper.forget(around))
    }
}

fn end(pid: i32) -> Fallible<()> {
    let pid = Pid::from_raw(pid).ok_or("no such number")?;
    process::send(pid, signals::TERM).map_err(|why| format!("cannot end {pid:?}: {why:?}").into())
}

/// weir's RSS in KiB when it has drained much, and its job still runs.
fn drained(bench: &Bench) -> Fallible<f64> {
    let report = bench.scratch.at("report");
    let total = bench.either(1024 * MIB, 128 * MIB);
    let around = Around { log: bench.scratch.at("log"), quota_bytes: 64 * MIB, sync: Sync::None };
    let words = ["write-and-stay", "65536", &total.to_string(), &report.to_string_lossy(), "-"];
    let mut weir = Wrapper::Weir.command(bench, &around, &bench.job(&words));
    let running = run::start(&mut weir, Place::Anywhere)?;
    processes::until("the job's report", || Ok(report.exists().then_some(())))?;
    let (processes, job) = processes::settled(running.pid.raw(), &bench.own_name())?;
    let held = processes::memory(processes.first().ok_or("no weir")?.pid)?;
    std::fs::remove_file(&report)?;
    end(job)?;
    run::finish(running)?;
    Wrapper::Weir.settle(&around, total)?;
    Ok(held.resident as f64)
}

/// conmon's RSS in KiB beside a "container" that sleeps.
fn conmon(bench: &Bench, conmon: &Path) -> Fallible<f64> {
    let bundle = bench.scratch.at("bundle");
    std::fs::create_dir(&bundle)?;
    let (own, job) = (bundle.join("conmon.pid"), bundle.join("job.pid"));
    let mut command = command(conmon);
    command.args(["--api-version", "1", "-c", "bench", "-u", "bench", "-n", "bench"]);
    command.arg("-r").arg(&bench.runtime).arg("-b").arg(&bundle).arg("-p").arg(&job);
    command.arg("--conmon-pidfile").arg(&own).arg("--exit-dir").arg(&bundle);
    command.arg("--socket-dir-path").arg(bench.scratch.path());
    command.arg("-l").arg(format!("k8s-file:{}", bundle.join("log").display()));
    run::run(&mut command, Place::Anywhere)?;
    let number =
        |path: &Path| Ok(std::fs::read_to_string(path).ok().and_then(|it| it.parse().ok()));
    let own: i32 = processes::until("conmon", || number(&own))?;
    let job: i32 = processes::until("conmon's job", || number(&job))?;
    let (processes, _) = processes::settled(own, "sleep")?;
    let held = processes::memory(processes.first().ok_or("no conmon")?.pid)?;
    end(job)?;
    processes::until("conmon's end", || Ok(processes::tree(own).is_empty().then_some(())))?;
    std::fs::remove_dir_all(bundle)?;
    Ok(held.resident as f64)
}
