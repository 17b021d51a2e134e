//! What a sweep has come to, and its failures.

use super::faults::{Fault, What};
use super::invariants::Verdict;
use super::run::Outcome;
use super::{Sweep, only};

/// What the runs of one class came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    runs: usize,
    injected: usize,
    refused: usize,
    ran: usize,
    no_fact: usize,
    killed: usize,
    aborted: usize,
}

impl Sweep<'_> {
    pub(super) fn count(&self, what: What, verdict: Verdict, was_hit: bool) {
        let mut tallies = self.tallies.lock().unwrap();
        let tally = tallies.entry(what.class()).or_default();
        tally.runs += 1;
        if !was_hit {
            return;
        }
        tally.injected += 1;
        match verdict {
            Verdict::Refused => tally.refused += 1,
            Verdict::Ran => tally.ran += 1,
            Verdict::RanWithoutFact => tally.no_fact += 1,
            Verdict::Killed => tally.killed += 1,
            Verdict::Aborted => tally.aborted += 1,
        }
    }

    pub(super) fn report(
        &self,
        fault: &Fault,
        run: &str,
        outcome: &Outcome,
        complaints: Vec<String>,
    ) {
        if complaints.is_empty() {
            return;
        }
        let hits = outcome.trace.lines().filter(|line| line.contains("(INJECTED)"));
        let hits: Vec<&str> = hits.collect();
        let names: Vec<&String> = outcome.after.keys().collect();
        let failure = format!(
            "{} | -e {} | {run} run: {}\n    {:?}, job ran: {}, stderr {:?}\n    {hits:?}\n    {names:?}",
            self.scenario.name,
            fault.words(),
            complaints.join("; "),
            outcome.status,
            outcome.job_ran,
            outcome.stderr,
        );
        let kind = format!("{} {run} {}", fault.call, complaints.join("; "));
        let mut failures = self.failures.lock().unwrap();
        failures.entry(kind).or_insert((0, failure)).0 += 1;
    }

    /// Says what was done, and fails where anything was wrong, or too little done.
    pub(super) fn conclude(&self) {
        let name = self.scenario.name;
        let mut hits = 0;
        for (class, tally) in &*self.tallies.lock().unwrap() {
            eprintln!("{name}, {class}: {tally:?}");
            assert!(tally.injected > 0, "{name}: nothing was injected as {class}");
            hits += tally.injected;
        }
        eprintln!("{name}: {hits} faults");
        let failures = self.failures.lock().unwrap();
        let count: usize = failures.values().map(|(times, _)| times).sum();
        let shown = failures.values().take(20).map(|(times, first)| format!("{times} × {first}"));
        let shown: Vec<String> = shown.collect();
        assert!(failures.is_empty(), "{name}: {count} failures:\n{}", shown.join("\n"));
        assert!(only().is_some() || hits >= self.scenario.hits_min, "{name}: only {hits} faults");
    }
}
