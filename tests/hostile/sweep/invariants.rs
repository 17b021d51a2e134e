//! What must hold after a run, whatever was done to it.

use super::faults::{Fault, What};
use super::records::{Expected, check_fact, check_log, check_receipt};
use super::run::Outcome;
use super::scenarios::{Before, CODE, Scenario};
use super::world::{World, differences};
use std::os::unix::process::ExitStatusExt;

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Refused,
    /// The job ran, or weir told that it cannot; with its fact.
    Ran,
    /// The same, with no fact, which was told.
    RanWithoutFact,
    Killed,
    /// The program could not begin: an abort before anything was made.
    Aborted,
}

/// The calls with which the program begins, before its first line, where Rust or musl aborts
/// when the n-th fails: for the thread's own memory, for the stack of signals, for what was
/// closed, and for SIGPIPE.
const BEGINNING: [(&str, usize); 5] =
    [("arch_prctl", 1), ("mmap", 1), ("mprotect", 1), ("poll", 1), ("rt_sigaction", 2)];

/// A run with what was there before it, and what is wrong about it.
pub(super) struct Judge<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) fault: Option<&'a Fault>,
    pub(super) before: &'a World,
    pub(super) outcome: &'a Outcome,
    pub(super) complaints: Vec<String>,
}

impl<'a> Judge<'a> {
    pub(super) fn of(
        scenario: &'a Scenario,
        fault: Option<&'a Fault>,
        before: &'a World,
        outcome: &'a Outcome,
    ) -> Judge<'a> {
        Judge { scenario, fault, before, outcome, complaints: Vec::new() }
    }

    pub(super) fn complain(&mut self, what: impl Into<String>) {
        self.complaints.push(what.into());
    }

    /// The first run of two, with a fault.
    pub(super) fn first(&mut self) -> Verdict {
        let Some(status) = self.outcome.status else {
            self.complain("it never ended");
            return Verdict::Killed;
        };
        let is_kill = self
            .fault
            .is_some_and(|fault| fault.what == What::Kill && fault.hits(&self.outcome.trace) > 0);
        let ran = self.outcome.job_ran;
        if self.scenario.job.is_none() && status.code().is_some_and(|code| code != 125) {
            return self.examined(status.code() == Some(0));
        }
        match (status.code(), status.signal()) {
            (_, Some(9)) if is_kill => self.killed(),
            (Some(code), _) if is_kill && self.scenario.lingers && code == i32::from(CODE) => {
                self.killed()
            }
            (Some(code), _) if code == i32::from(CODE) && ran => self.ran(),
            (Some(126 | 127), _) if !ran => self.ran(),
            (Some(125), _) if !ran => self.refused(),
            (None, Some(6 | 11)) if !ran => {
                let begins = |fault: &Fault| BEGINNING.contains(&(&fault.call, fault.at));
                if !self.fault.is_some_and(begins) {
                    self.complain("it aborts");
                }
                self.unchanged();
                Verdict::Aborted
            }
            _ => {
                self.complain("it ended in a way of its own");
                Verdict::Killed
            }
        }
    }

    /// The second run, without a fault, on what the first has left.
    pub(super) fn second(&mut self) {
        let names = &self.scenario.names;
        if self.scenario.job.is_none() {
            if self.first() != Verdict::Ran {
                self.complain("the place is not good any more");
            }
            return;
        }
        let is_sealed =
            [&names.fact, &names.receipt].iter().any(|name| self.before.contains_key(*name));
        let code = self.outcome.status.and_then(|status| status.code());
        if is_sealed && self.scenario.before != Before::Sealed {
            if code != Some(125) || !self.outcome.stderr.starts_with("weir: error[log-sealed]: ") {
                self.complain("the second start is not refused as sealed");
            }
            self.unchanged();
            return;
        }
        if code != Some(i32::from(CODE)) || !self.outcome.job_ran {
            self.complain("the second start does not work");
            return;
        }
        if self.ran() != Verdict::Ran {
            self.complain("the second start has no fact");
        }
    }

    /// A place was examined, and found good or not: it is as before.
    fn examined(&mut self, is_good: bool) -> Verdict {
        let report = serde_json::from_str::<serde_json::Value>(&self.outcome.events);
        let says = report.ok().and_then(|report| report["wouldStart"].as_bool());
        if says != Some(is_good) {
            self.complain("it ends in another way than it says");
        }
        self.undone(&self.before.clone());
        if is_good { Verdict::Ran } else { Verdict::RanWithoutFact }
    }

    fn unchanged(&mut self) {
        let changed = differences(self.before, &self.outcome.after);
        if !changed.is_empty() {
            self.complain(format!("it is not as before: {}", changed.join(", ")));
        }
    }

    fn ran(&mut self) -> Verdict {
        let expected = Expected::of(self.scenario, self.before, self.outcome);
        let names = &self.scenario.names;
        let after = &self.outcome.after;
        if expected.is_not_fresh && !self.removal_failed(&names.log) {
            self.complain("the old log was not retired");
        }
        if !after.contains_key(&names.log) {
            self.complain("there is no log");
        }
        let mut found = check_log(&expected, self.scenario, after);
        let fact = check_fact(&expected, self.scenario, after, &mut found);
        let receipt = check_receipt(&expected, self.scenario, after, &mut found);
        self.complaints.append(&mut found);
        self.tidy();
        self.told(fact.is_some(), receipt);
        self.events_are_true();
        if fact.is_some() { Verdict::Ran } else { Verdict::RanWithoutFact }
    }

    /// No name is left that is not a log's, a record's or a folder's.
    fn tidy(&mut self) {
        let names = &self.scenario.names;
        let kept = [&names.log, &names.fact, &names.receipt];
        let mut left = Vec::new();
        for name in self.outcome.after.keys() {
            let is_known = kept.contains(&name) || names.directories.contains(name);
            // A draft that cannot be removed is in nobody's way, and stays.
            let was_there = names.drafts.contains(name) && self.before.contains_key(name);
            let is_stuck = self.removal_failed(name) || was_there && self.looks_failed(name);
            if !is_known && !is_stuck {
                left.push(name.clone());
            }
        }
        if !left.is_empty() {
            self.complain(format!("left behind: {}", left.join(", ")));
        }
    }

    /// A record that is not there is told somewhere.
    fn told(&mut self, has_fact: bool, receipt_failed: Option<bool>) {
        let lines = self.outcome.stderr.lines().filter(|line| line.starts_with("weir: "));
        let lines = lines.filter(|line| {
            !line.contains("still holds the output") && !line.contains("was cut at its quota")
        });
        let on_stderr = lines.count() > 0;
        // Every process has the fault at its own n-th call: where one loses the record and
        // another the line about it, the receipt has it still. A copy has no other voice.
        let twice = self.fault.is_some_and(|fault| fault.hits(&self.outcome.trace) > 1);
        let elsewhere = self.scenario.lingers || twice;
        let is_told = on_stderr || elsewhere && receipt_failed == Some(true);
        if !has_fact && !is_told {
            self.complain("the fact is missing, and nobody is told");
        }
        if receipt_failed.is_none() && !on_stderr && !(self.scenario.lingers && has_fact) {
            self.complain("the receipt is missing, and nobody is told");
        }
    }

    /// What the events say is published, is.
    fn events_are_true(&mut self) {
        if !self.scenario.options.contains(&"--status-fd") {
            return;
        }
        let names = &self.scenario.names;
        for line in self.outcome.events.lines() {
            let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else {
                self.complain(format!("half an event: {line}"));
                continue;
            };
            let name = match (event["event"].as_str(), event["record"].as_str()) {
                (Some("published"), Some("fact")) => &names.fact,
                (Some("published"), _) => &names.receipt,
                _ => continue,
            };
            if !self.outcome.after.contains_key(name) {
                self.complain(format!("told as published, and not there: {name}"));
            }
        }
    }

    fn killed(&mut self) -> Verdict {
        let (names, after) = (&self.scenario.names, &self.outcome.after);
        let mut known: Vec<&String> = vec![&names.log, &names.fact, &names.receipt, &names.fifo];
        known.extend(names.drafts.iter().chain(&names.directories));
        // Its attempt is made up, and so are the names.
        let is_tried = |name: &String| {
            let of_attempt = ["local-", ".local-", "receipts/"];
            self.scenario.job.is_none() && of_attempt.iter().any(|begin| name.starts_with(begin))
        };
        let strange = after.keys().filter(|name| !known.contains(name) && !is_tried(name));
        let strange: Vec<&str> = strange.map(String::as_str).collect();
        if !strange.is_empty() {
            self.complaints.push(format!("nobody knows {}", strange.join(", ")));
        }
        let is_same =
            |name: &String| after.contains_key(name) && after.get(name) == self.before.get(name);
        if self.scenario.before == Before::Sealed && is_same(&names.log) {
            // Not retired yet: then nothing is.
            self.unchanged();
            return Verdict::Killed;
        }
        let mut after = after.clone();
        // A record may outlive its log.
        after.retain(|name, _| !([&names.fact, &names.receipt].contains(&name) && is_same(name)));
        let expected = Expected::of(self.scenario, self.before, self.outcome);
        let mut found = check_log(&expected, self.scenario, &after);
        check_fact(&expected, self.scenario, &after, &mut found);
        check_receipt(&expected, self.scenario, &after, &mut found);
        self.complaints.append(&mut found);
        Verdict::Killed
    }
}
