//! What a refusal may leave: nothing, but what could not be removed.

use super::faults::What;
use super::invariants::{Judge, Verdict};
use super::scenarios::Before;
use super::world::{World, differences};

/// The codes of section 8 that a start with a fault may be refused with: `usage` where the
/// descriptor of an option cannot be taken.
const CODES: [&str; 9] = [
    "usage",
    "capacity-unavailable",
    "log-unsafe",
    "log-busy",
    "directory-unsafe",
    "records-unsupported",
    "fifo-blocked",
    "fifo-unsupported",
    "system",
];

impl Judge<'_> {
    pub(super) fn refused(&mut self) -> Verdict {
        let stderr = &self.outcome.stderr;
        let line = stderr.lines().next().unwrap_or_default();
        let code = line.strip_prefix("weir: error[").and_then(|rest| rest.split_once("]: "));
        let rest_is_hint = stderr.lines().skip(1).all(|line| line.starts_with("hint: "));
        match code {
            // It was told that there is no log to start over.
            Some(("log-sealed", _)) if self.removal_failed(&self.scenario.names.log) => {}
            Some((code, _))
                if CODES.contains(&code) && rest_is_hint && stderr.lines().count() <= 2 => {}
            _ => self.complain("the refusal is not told in one line with a code"),
        }
        let names = &self.scenario.names;
        let after = &self.outcome.after;
        let is_same = |name: &String| self.before.get(name) == after.get(name);
        // Or has another in its place.
        let is_gone = |name: &String| self.before.contains_key(name) && !is_same(name);
        // What a start removes first, it does not put back.
        let retired: Vec<&String> = match self.scenario.before {
            Before::Leftovers => [&names.fifo].into_iter().chain(&names.drafts).collect(),
            // The log first: no log outlives its records.
            Before::Sealed if is_gone(&names.log) => vec![&names.log, &names.fact, &names.receipt],
            _ => Vec::new(),
        };
        let mut as_before = self.before.clone();
        as_before.retain(|name, _| !(retired.contains(&name) && is_gone(name)));
        self.undone(&as_before);
        Verdict::Refused
    }

    /// All is as it was before, but what could not be removed, and what that is in.
    pub(super) fn undone(&mut self, as_before: &World) {
        let after = &self.outcome.after;
        let is_same = |name: &String| self.before.get(name) == after.get(name);
        let stuck: Vec<String> =
            after.keys().filter(|name| self.removal_failed(name)).cloned().collect();
        let mut clean = after.clone();
        clean.retain(|name, _| {
            let is_new = !is_same(name);
            !(is_new
                && stuck.iter().any(|stuck| {
                    stuck == name || (name.ends_with('/') && stuck.starts_with(name.as_str()))
                }))
        });
        let changed = differences(as_before, &clean);
        if !changed.is_empty() {
            self.complain(format!("it has left something: {}", changed.join(", ")));
        }
    }

    /// Whether the fault hit the very call that would have removed this, or was an answer
    /// for which nothing may be removed: there is no such name; another process has it.
    pub(super) fn removal_failed(&self, name: &str) -> bool {
        let Some(fault) = self.fault else { return false };
        match (fault.call.as_str(), fault.what) {
            ("unlinkat", _) => self.is_hit(name),
            ("newfstatat", What::Error("ENOENT")) => self.is_hit(name),
            // The name of an examination's log is made up.
            ("flock", What::Error("EAGAIN")) if self.scenario.job.is_none() => {
                name.starts_with("local-")
            }
            ("flock", What::Error("EAGAIN")) => name == self.scenario.names.log,
            _ => false,
        }
    }

    /// Whether the fault hit a call that has this name, or one of those without a name by
    /// which a leftover is told from somebody else's file.
    pub(super) fn looks_failed(&self, name: &str) -> bool {
        let nameless = ["flock", "geteuid"];
        self.is_hit(name) || self.fault.is_some_and(|fault| nameless.contains(&&*fault.call))
    }

    /// Whether the fault hit a call that has this name.
    fn is_hit(&self, name: &str) -> bool {
        let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let quoted = format!("\"{last}\"");
        let mut hits = self.outcome.trace.lines().filter(|line| line.contains("(INJECTED)"));
        hits.any(|line| line.contains(&quoted))
    }
}
