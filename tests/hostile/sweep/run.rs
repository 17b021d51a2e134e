//! One run of weir's in a place of its own, with or without a fault.

use super::faults::Fault;
use super::scenarios::Scenario;
use super::world::{World, look};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use weir_common::sys::process::{self, Pid};
use weir_common::sys::signals;
use weir_common::sys::streams;
use weir_tests::weir_binary;

/// Far longer than any run takes.
const PATIENCE: Duration = Duration::from_secs(25);

/// A directory with a place in it, and beside it what is not weir's: the trace, what weir
/// says, and the mark that the job leaves of itself.
pub(super) struct Bench<'s> {
    scenario: &'s Scenario,
    around: PathBuf,
}

/// What a run has come to.
pub(super) struct Outcome {
    /// How it ended; `None` where it never did.
    pub(super) status: Option<ExitStatus>,
    /// Whether the job's program ran, by its own mark.
    pub(super) job_ran: bool,
    pub(super) stderr: String,
    pub(super) events: String,
    pub(super) trace: String,
    pub(super) after: World,
}

impl<'s> Bench<'s> {
    pub(super) fn new(scenario: &'s Scenario, around: PathBuf) -> Bench<'s> {
        std::fs::create_dir(&around).unwrap();
        std::fs::write(around.join("stream"), &scenario.output).unwrap();
        Bench { scenario, around }
    }

    fn place(&self) -> PathBuf {
        self.around.join("place")
    }

    /// Makes the place anew, and says what is in it.
    pub(super) fn prepare(&self) -> World {
        let place = self.place();
        if place.exists() {
            std::fs::remove_dir_all(&place).unwrap();
        }
        std::fs::create_dir(&place).unwrap();
        self.scenario.prepare(&place);
        look(&place)
    }

    /// A run with a fault.
    pub(super) fn run(&self, fault: &Fault) -> Outcome {
        let (trace, inject) = (format!("trace={}", fault.call), fault.words());
        self.run_under(&[
            "strace", "-f", "-q", "-o", "../trace", "-b", "execve", "-e", &trace, "-e", &inject,
        ])
    }

    /// A run without a fault, all of whose calls are in the trace.
    pub(super) fn run_traced(&self) -> Outcome {
        self.run_under(&["strace", "-f", "-q", "-o", "../trace", "-b", "execve"])
    }

    /// A run that is left alone, behind these words.
    pub(super) fn run_under(&self, under: &[&str]) -> Outcome {
        for name in ["trace", "ran"] {
            let _ = std::fs::remove_file(self.around.join(name));
        }
        let stream = self.around.join("stream");
        let weir = [weir_binary().to_str().unwrap(), self.scenario.command()];
        let mut words = [self.scenario.alone.words(), under, &weir].concat();
        words.extend(["--quota", "65536", "--min-free", "0"]);
        words.extend(&self.scenario.options);
        if let Some(job) = self.scenario.job {
            words.extend(["--", "sh", "-c", job, "sh", stream.to_str().unwrap()]);
        }
        let (end, held) = std::io::pipe().unwrap();
        let mut command = Command::new(which(words[0]));
        command.args(&words[1..]).current_dir(self.place()).env_clear();
        // The job is looked for in two folders, the first of which is not there.
        command.env("PATH", format!("{}/none:/usr/bin:/bin", self.around.display()));
        command.stdin(Stdio::from(held)).process_group(0);
        command.stdout(File::create(self.around.join("events")).unwrap());
        command.stderr(File::create(self.around.join("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        drop(command);
        let deadline = Instant::now() + PATIENCE;
        let mut status = None;
        while status.is_none() && Instant::now() < deadline {
            status = child.try_wait().unwrap();
            if status.is_none() {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
        // Nobody has its standard input any more: weir, its copy, the job and whatever the
        // job has started have ended.
        let ended = streams::first_readable([end.as_fd()], Some(deadline)) == Ok(Some(0));
        // But a copy that nobody traces lets go of that: it has the log until all is done.
        let ended = ended && self.log_is_free_before(deadline);
        if !ended || status.is_none() {
            let leader = Pid::from_raw(child.id() as i32).unwrap();
            let _ = process::send_to_group(leader, signals::KILL);
            status = None;
        }
        // What has ended is told again.
        let _ = child.wait();
        Outcome {
            status: status.map(|status| self.scenario.alone.as_outside(status)),
            job_ran: self.around.join("ran").exists(),
            stderr: self.text("stderr"),
            events: self.text("events"),
            trace: self.text("trace"),
            after: look(&self.place()),
        }
    }

    fn log_is_free_before(&self, deadline: Instant) -> bool {
        let Ok(log) = File::open(self.place().join(&self.scenario.names.log)) else { return true };
        while log.try_lock().is_err() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        // Not by closing it alone: what another thread starts may have it for a moment.
        log.unlock().unwrap();
        true
    }

    fn text(&self, name: &str) -> String {
        let bytes = std::fs::read(self.around.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A program by its whole path, since the search path of the run is not the test's.
fn which(program: &str) -> PathBuf {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search).map(|directory| directory.join(program));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(|| Path::new(program).to_owned())
}
