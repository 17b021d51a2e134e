//! The n-th call fails: every system call of a run, with every error, for n = 1, 2, 3, …
//! until a run completes untouched; and is delayed; and is the last before SIGKILL.
//!
//! Which calls there are is read from a trace of an untouched run, one for each scenario.
//! Left out are only those that [`calls::left_out`] names, with the reason beside them.
//! After each run the invariants are checked, then a second, untouched run is made on what
//! the first has left, and they are checked again. Only runs in whose trace the fault is
//! found are counted.
//!
//! Every errno ([`faults::EVERY_ERRNO`]) is tried; in scenarios that take longer, or that
//! differ from others by a few calls, one of each kind ([`faults::EVERY_KIND`]).
//!
//! Short writes are not among the faults: strace can only pretend that some bytes were
//! written, and has then thrown them away. A limit of file sizes makes real ones
//! (`promises/failing_disk.rs`).

mod calls;
mod faults;
mod invariants;
mod records;
mod refusals;
mod report;
mod run;
mod scenarios;
mod world;

use faults::{Fault, What};
use invariants::{Judge, Verdict};
use report::Tally;
use run::Bench;
use scenarios::Scenario;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_tests::{Disk, FileSystem, needs};
use world::World;

/// One sweep at a time: each keeps every processor busy.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn sweep_of_a_log_with_receipt_and_events() {
    sweep(&Scenario::log_with_receipt_and_events());
}

#[test]
fn sweep_of_roots_and_a_quota_that_cuts() {
    sweep(&Scenario::roots_and_a_quota_that_cuts());
}

#[test]
fn sweep_of_a_replay() {
    sweep(&Scenario::replay());
}

#[test]
fn sweep_of_a_start_after_a_killed_one() {
    sweep(&Scenario::leftovers());
}

#[test]
fn sweep_of_a_fresh_start() {
    sweep(&Scenario::fresh());
}

#[test]
fn sweep_of_a_drain_in_the_background() {
    sweep(&Scenario::linger());
}

#[test]
fn sweep_of_an_end_that_kills_what_remains() {
    sweep(&Scenario::kill());
}

#[test]
fn sweep_of_a_reserved_log() {
    sweep(&Scenario::reserve());
}

#[test]
fn sweep_of_a_tee() {
    sweep(&Scenario::tee());
}

#[test]
fn sweep_of_an_examination() {
    sweep(&Scenario::examination());
}

/// A sweep of one scenario, in the hands of several threads.
struct Sweep<'s> {
    scenario: &'s Scenario,
    around: PathBuf,
    series: Vec<Series>,
    next: AtomicUsize,
    tallies: Mutex<BTreeMap<&'static str, Tally>>,
    /// By what is wrong at which call: how often, and the first time.
    failures: Mutex<BTreeMap<String, (usize, String)>>,
}

/// One kind of fault at one call, for every n.
struct Series {
    call: String,
    what: What,
    /// How many of these calls the untouched run made.
    times: usize,
}

fn sweep(scenario: &Scenario) {
    if !needs(scenario.name, "strace") {
        return;
    }
    let Some(disk) = Disk::needed(scenario.name, FileSystem::Tmpfs, "size=256m", &[]) else {
        return;
    };
    let turn = TURN.lock().unwrap_or_else(|why| why.into_inner());
    let place = disk.place();
    let sweep = Sweep {
        scenario,
        around: place.path().to_owned(),
        series: every_series(scenario, place.at("untouched")),
        next: AtomicUsize::new(0),
        tallies: Mutex::default(),
        failures: Mutex::default(),
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let sweep = &sweep;
            scope.spawn(move || sweep.work(thread));
        }
    });
    drop(turn);
    sweep.conclude();
}

/// The one call that is swept, to see a failure again: `WEIR_SWEEP_CALL`.
fn only() -> Option<String> {
    std::env::var("WEIR_SWEEP_CALL").ok()
}

/// Every kind of fault at every call that an untouched run makes.
fn every_series(scenario: &Scenario, around: PathBuf) -> Vec<Series> {
    let bench = Bench::new(scenario, around);
    let before = bench.prepare();
    let untouched = bench.run_traced();
    let mut judge = Judge::of(scenario, None, &before, &untouched);
    assert_eq!(judge.first(), Verdict::Ran, "{}", untouched.stderr);
    assert_eq!(judge.complaints, [""; 0], "{}", scenario.name);
    let mut series = Vec::new();
    for (call, times) in calls::counted(&untouched.trace) {
        if only().is_some_and(|only| call != only) {
            continue;
        }
        let errors = scenario.errnos.iter().map(|errno| What::Error(errno));
        for what in errors.chain([What::Kill, What::Delay]) {
            if calls::left_out(&call, what).is_none() {
                series.push(Series { call: call.clone(), what, times });
            }
        }
    }
    series
}

impl Sweep<'_> {
    fn work(&self, thread: usize) {
        let bench = Bench::new(self.scenario, self.around.join(format!("thread-{thread}")));
        while let Some(series) = self.series.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            for at in calls::first_at(&series.call).. {
                let (call, what) = (series.call.clone(), series.what);
                let was_hit = self.try_one(&bench, &Fault { call, what, at });
                // How often a loop goes round is not the same every time.
                if !was_hit && at > series.times {
                    break;
                }
            }
        }
    }

    /// One run with a fault and one without; says whether the fault was hit.
    fn try_one(&self, bench: &Bench<'_>, fault: &Fault) -> bool {
        let before = bench.prepare();
        let first = bench.run(fault);
        let was_hit = fault.hits(&first.trace) > 0;
        let mut judge = Judge::of(self.scenario, Some(fault), &before, &first);
        let verdict = judge.first();
        if fault.what == What::Delay && verdict != Verdict::Ran {
            judge.complain("a delay has changed what becomes of it");
        }
        if !was_hit && verdict != Verdict::Ran {
            judge.complain("it fails untouched");
        }
        let complaints = judge.complaints;
        self.report(fault, "first", &first, complaints);
        if first.status.is_some() {
            self.try_again(bench, fault, &first.after);
        }
        self.count(fault.what, verdict, was_hit);
        was_hit
    }

    fn try_again(&self, bench: &Bench<'_>, fault: &Fault, left: &World) {
        let second = bench.run_under(&[]);
        let mut judge = Judge::of(self.scenario, None, left, &second);
        judge.second();
        let complaints = judge.complaints;
        self.report(fault, "second", &second, complaints);
    }
}
