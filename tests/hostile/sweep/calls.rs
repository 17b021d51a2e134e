//! Which calls a run makes, read from a trace of it.

use super::faults::What;
use std::collections::BTreeMap;

/// How often each call is made by the process that makes it most often.
pub(super) fn counted(trace: &str) -> BTreeMap<String, usize> {
    let mut by_process: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in trace.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        // Not: `<... read resumed>`, `+++ exited with 0 +++`, `--- SIGCHLD …`.
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            *by_process.entry((pid, name)).or_default() += 1;
        }
    }
    let mut calls = BTreeMap::new();
    for ((_, name), times) in by_process {
        let most = calls.entry(name.to_owned()).or_insert(0);
        *most = times.max(*most);
    }
    calls
}

/// Why this is not done to that call; `None` where it is.
pub(super) fn left_out(call: &str, what: What) -> Option<&'static str> {
    match (call, what) {
        ("exit" | "exit_group", What::Error(_)) => Some("it does not return"),
        ("close", What::Error(_)) => {
            Some("whatever it answers, Linux has closed the descriptor; strace would not have")
        }
        ("futex", What::Error(_)) => Some("it wakes whoever waits, and musl waits for ever else"),
        ("rt_sigprocmask", What::Error(_)) => {
            Some("it cannot fail as musl calls it, which puts a mask back that it never got")
        }
        ("mprotect", What::Error("ENOSYS")) => {
            Some("musl takes it for a machine without an MMU, and does without")
        }
        _ => None,
    }
}

/// The first of these calls that is weir's own: strace itself makes the first execve.
pub(super) fn first_at(call: &str) -> usize {
    if call == "execve" { 2 } else { 1 }
}
