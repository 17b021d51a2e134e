//! What the log, the fact and the receipt of one run must say.

use super::run::Outcome;
use super::scenarios::{Before, CODE, Scenario};
use super::world::{Entry, Kind, World};
use std::os::unix::process::ExitStatusExt;
use weir_common::sys::process::End;
use weir_common::{Capture, Counts, Fact, JobEnd, Receipt};
use weir_tests::QUOTA;

/// What this run's stream was, by what is known of it from outside.
pub(super) struct Expected {
    /// What the log held when it was opened.
    old: Vec<u8>,
    /// That, and the stream.
    whole: Vec<u8>,
    job: Option<JobEnd>,
    has_failed_to_start: bool,
    /// Whether a log that was to be retired is still there.
    pub(super) is_not_fresh: bool,
}

impl Expected {
    pub(super) fn of(scenario: &Scenario, before: &World, outcome: &Outcome) -> Expected {
        let name = &scenario.names.log;
        let (old_log, new_log) = (before.get(name), outcome.after.get(name));
        let inode = |log: &Entry| log.inode;
        let is_same = old_log.is_some() && old_log.map(inode) == new_log.map(inode);
        let is_fresh = scenario.before == Before::Sealed;
        let old = match old_log {
            Some(log) if is_same || !is_fresh => log.content.clone(),
            _ => Vec::new(),
        };
        let status = outcome.status.map(|status| (status.code(), status.signal()));
        let has_failed_to_start = matches!(status, Some((Some(126 | 127), _)));
        let line = outcome.stderr.split_inclusive('\n').next().unwrap_or_default();
        let stream = match (outcome.job_ran, has_failed_to_start) {
            (true, _) => &scenario.output[..],
            (false, true) => line.as_bytes(),
            (false, false) => b"",
        };
        let job = match (outcome.job_ran, status) {
            (true, _) => Some(JobEnd::Ended(End::Code(CODE))),
            (false, Some((None, Some(number)))) => {
                Some(JobEnd::Ended(End::Signal { number, core_dumped: false }))
            }
            (false, _) => None,
        };
        let whole = [&old[..], stream].concat();
        let is_not_fresh = is_fresh && is_same;
        Expected { old, whole, job, has_failed_to_start, is_not_fresh }
    }

    fn counts(&self, log: &Entry) -> Counts {
        let bytes = |length: usize| length as u64;
        Counts {
            start_bytes: bytes(self.old.len()),
            kept_bytes: bytes(log.content.len().saturating_sub(self.old.len())),
            dropped_bytes: bytes(self.whole.len().saturating_sub(log.content.len())),
        }
    }
}

/// A log is a prefix of what was there and what was written, and no longer than the quota.
pub(super) fn check_log(expected: &Expected, scenario: &Scenario, after: &World) -> Vec<String> {
    let mut found = Vec::new();
    let Some(log) = after.get(&scenario.names.log) else { return found };
    // A start that is killed between making a log and setting its mode leaves less.
    if log.kind != Kind::File || log.mode != 0o600 || log.links != 1 {
        found.push(format!("the log is {:?}, {:o}, {} links", log.kind, log.mode, log.links));
    }
    if !log.content.starts_with(&expected.old) {
        found.push("what the log held before is gone".to_owned());
    }
    if !expected.whole.starts_with(&log.content) {
        found.push("the log is no prefix of the stream".to_owned());
    }
    if log.content.len() > QUOTA {
        found.push(format!("the log has {} bytes", log.content.len()));
    }
    found
}

/// The fact's answer, if there is one, which must be right.
pub(super) fn check_fact(
    expected: &Expected,
    scenario: &Scenario,
    after: &World,
    found: &mut Vec<String>,
) -> Option<bool> {
    let entry = after.get(&scenario.names.fact)?;
    check_entry("fact", entry, found);
    let fact = match Fact::decode(&entry.content) {
        Ok(fact) => fact,
        Err(why) => {
            found.push(format!("the fact is none: {why}"));
            return None;
        }
    };
    let Some(log) = after.get(&scenario.names.log) else {
        found.push("a fact without its log".to_owned());
        return Some(fact.quota_reached);
    };
    let is_cut = expected.whole.len() > QUOTA;
    let kept = if is_cut { &expected.whole[..QUOTA] } else { &expected.whole[..] };
    if fact.quota_reached != is_cut || log.content != kept {
        let (bytes, whole) = (log.content.len(), expected.whole.len());
        let reached = fact.quota_reached;
        found.push(format!("the fact says {reached}; {bytes} of {whole} bytes are in the log"));
    }
    if fact.quota.bytes() != QUOTA as u64 || fact.counts != Some(expected.counts(log)) {
        found.push(format!("the fact counts {:?}, not {:?}", fact.counts, expected.counts(log)));
    }
    Some(fact.quota_reached)
}

/// Whether the receipt says that the capture has failed, if there is a receipt.
pub(super) fn check_receipt(
    expected: &Expected,
    scenario: &Scenario,
    after: &World,
    found: &mut Vec<String>,
) -> Option<bool> {
    let entry = after.get(&scenario.names.receipt)?;
    check_entry("receipt", entry, found);
    let receipt = match Receipt::decode(&entry.content) {
        Ok(receipt) => receipt,
        Err(why) => {
            found.push(format!("the receipt is none: {why}"));
            return None;
        }
    };
    let job_is_right = match receipt.job {
        JobEnd::NeverStarted(_) => expected.has_failed_to_start,
        ended => expected.job == Some(ended),
    };
    if !job_is_right {
        found.push(format!("the receipt says {:?}, not {:?}", receipt.job, expected.job));
    }
    let fact = after.get(&scenario.names.fact).and_then(|fact| Fact::decode(&fact.content).ok());
    let captured = fact.map(|fact| match fact.quota_reached {
        true => Capture::Truncated,
        false => Capture::Complete,
    });
    let has_failed = matches!(receipt.capture, Capture::Failed(_));
    if captured.map_or(!has_failed, |captured| captured != receipt.capture) {
        found.push(format!("the receipt says {:?}, the fact {captured:?}", receipt.capture));
    }
    if let Some(log) = after.get(&scenario.names.log) {
        let (told, counted) = (receipt.counts, expected.counts(log));
        if told != counted {
            found.push(format!("the receipt counts {told:?}, not {counted:?}"));
        }
    }
    Some(has_failed)
}

fn check_entry(which: &str, entry: &Entry, found: &mut Vec<String>) {
    if entry.kind != Kind::File || entry.mode != 0o600 || entry.links != 1 {
        let (kind, mode, links) = (entry.kind, entry.mode, entry.links);
        found.push(format!("the {which} is {kind:?}, {mode:o}, {links} links"));
    }
}
