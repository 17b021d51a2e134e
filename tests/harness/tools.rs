//! What the machine offers to the tests.

use crate::place::Place;
use std::io::{PipeReader, PipeWriter};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything in a test may take. Far more than it does: it only ends what hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds; fails the test when it never does.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never happened: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Says loudly that a test is left out; in CI that is a failure.
fn skip(test: &str, why: &str) -> bool {
    assert!(std::env::var_os("WEIR_TESTS_STRICT").is_none(), "{test}: {why}");
    eprintln!("SKIPPED {test}: {why}");
    false
}

/// Whether a tool is there. `test` names the test that wants it.
pub fn needs(test: &str, tool: &str) -> bool {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search).any(|directory| directory.join(tool).is_file());
    found || skip(test, &format!("{tool} is not installed"))
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    weir_common::sys::process::effective_user() == 0
}

/// Whether a test that only root can do can be done. Running the tests as somebody else
/// is no defect of the machine, so this is a skip in CI too.
pub fn needs_root(test: &str) -> bool {
    if !is_root() {
        eprintln!("SKIPPED {test}: it needs root");
    }
    is_root()
}

/// The words in front of a command that give it a mount namespace of its own, in which
/// it may mount; `None` where there is no such thing.
pub fn needs_namespaces(test: &str) -> Option<Vec<&'static str>> {
    let words = match is_root() {
        true => vec!["unshare", "--mount"],
        false => vec!["unshare", "--user", "--map-root-user", "--mount"],
    };
    let mut trial = Command::new(words[0]);
    trial.args(&words[1..]).arg("true").stderr(Stdio::null());
    match trial.status() {
        Ok(status) if status.success() => Some(words),
        _ => {
            skip(test, "there are no mount namespaces here");
            None
        }
    }
}

/// The words in front of a command that make it process 1 of a pid namespace of its own;
/// `None` where there is no such thing.
pub fn needs_pid_namespaces(test: &str) -> Option<Vec<&'static str>> {
    let words = match is_root() {
        true => vec!["unshare", "--pid", "--fork"],
        false => vec!["unshare", "--user", "--map-root-user", "--pid", "--fork"],
    };
    let mut trial = Command::new(words[0]);
    trial.args(&words[1..]).args(["--mount-proc", "true"]).stderr(Stdio::null());
    match trial.status() {
        Ok(status) if status.success() => Some(words),
        _ => {
            skip(test, "there are no pid namespaces here");
            None
        }
    }
}

/// A pipe that takes no further byte.
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let flood = Command::new("sh")
        .args(["-c", "dd if=/dev/zero bs=4096 oflag=nonblock 2>/dev/null; true"])
        .stdout(writer.try_clone().unwrap())
        .status();
    assert!(flood.unwrap().success());
    (reader, writer)
}

/// What a process (its folder in `/proc`) has open, sorted and without numbers; `HERE` is
/// the test's place.
pub fn held_by(place: &Place, process: &Path) -> Vec<String> {
    let targets = std::fs::read_dir(process.join("fd")).unwrap();
    let mut held: Vec<String> = targets
        // One that is closed meanwhile is not held.
        .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .map(|target| target.replace(place.path().to_str().unwrap(), "HERE"))
        .map(|target| target.split(['[', ':', '#']).next().unwrap().to_owned())
        .collect();
    held.sort();
    held
}
