//! What can be put around a job.

use crate::Fallible;
use crate::bench::{Bench, command, command_of, length};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, or a script, that runs a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrapper {
    /// Nothing around it.
    Direct,
    Weir,
    Tini,
    DumbInit,
    Catatonit,
    ShGnu,
    ShBusybox,
}

/// Whether records are put on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    Full,
    None,
}

/// How it is to run, as far as it knows of such things.
pub(crate) struct Around {
    pub(crate) log: PathBuf,
    pub(crate) quota_bytes: u64,
    pub(crate) sync: Sync,
}

impl Wrapper {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Wrapper::Direct => "nothing",
            Wrapper::Weir => "weir",
            Wrapper::Tini => "tini",
            Wrapper::DumbInit => "dumb-init",
            Wrapper::Catatonit => "catatonit",
            Wrapper::ShGnu => "sh GNU",
            Wrapper::ShBusybox => "sh busybox",
        }
    }

    const fn needs(self) -> &'static [&'static str] {
        match self {
            Wrapper::Direct | Wrapper::Weir => &[],
            Wrapper::Tini => &["tini"],
            Wrapper::DumbInit => &["dumb-init"],
            Wrapper::Catatonit => &["catatonit"],
            Wrapper::ShGnu => &["mkfifo", "stdbuf", "head", "wc"],
            Wrapper::ShBusybox => &["busybox"],
        }
    }

    /// Those of them that are here.
    pub(crate) fn present(bench: &Bench, wanted: &[Wrapper]) -> Vec<Wrapper> {
        wanted.iter().copied().filter(|it| bench.peers.have(it.needs())).collect()
    }

    /// Whether it keeps the job's output.
    pub(crate) const fn keeps(self) -> bool {
        matches!(self, Wrapper::Weir | Wrapper::ShGnu | Wrapper::ShBusybox)
    }

    /// The command that runs the job.
    pub(crate) fn command(self, bench: &Bench, around: &Around, job: &[String]) -> Command {
        let quota = around.quota_bytes.to_string();
        let sync = match around.sync {
            Sync::Full => "full",
            Sync::None => "none",
        };
        let script = |mut shell: Command, script: &Path| {
            shell.arg(script).args([sync, &quota]).arg(&around.log).args(job);
            shell
        };
        let init = |name: &str, words: &[&str]| {
            let mut init = command(bench.peers.path(name).unwrap_or(Path::new(name)));
            init.args(words).arg("--").args(job);
            init
        };
        match self {
            Wrapper::Direct => command_of(job),
            Wrapper::Weir => {
                let mut weir = command(&bench.weir);
                weir.args(["run", "--quiet", "--min-free", "0", "--sync", sync, "--quota", &quota]);
                weir.arg("--log").arg(&around.log).arg("--").args(job);
                weir
            }
            // Not process 1 here: without it, it warns.
            Wrapper::Tini => init("tini", &["-s"]),
            Wrapper::DumbInit => init("dumb-init", &[]),
            Wrapper::Catatonit => init("catatonit", &[]),
            Wrapper::ShGnu => script(command("/bin/sh"), &bench.sh_gnu),
            Wrapper::ShBusybox => {
                let mut busybox = command("busybox");
                busybox.arg("sh");
                script(busybox, &bench.sh_busybox)
            }
        }
    }

    /// Sees that it has kept what it should have of a job that wrote so many bytes, with a
    /// record of it; and removes both.
    pub(crate) fn settle(self, around: &Around, written: u64) -> Fallible<()> {
        if !self.keeps() {
            return Ok(());
        }
        let kept = written.min(around.quota_bytes);
        let found = length(&around.log)?;
        if found != kept {
            return Err(format!("{} has kept {found} bytes of {written}", self.name()).into());
        }
        let record = self.record(&around.log);
        let text = std::fs::read(&record).map_err(|why| format!("{}: {why}", record.display()))?;
        let fact: serde_json::Value = serde_json::from_slice(&text)?;
        let dropped = written - kept;
        let is_true = fact["droppedBytes"] == dropped
            && (self != Wrapper::Weir
                || (fact["keptBytes"] == kept && fact["quotaReached"] == (dropped > 0)));
        if !is_true {
            return Err(format!("{} says {fact} of {written} bytes", self.name()).into());
        }
        self.forget(around)
    }

    /// Removes the log and the record of it.
    pub(crate) fn forget(self, around: &Around) -> Fallible<()> {
        if self.keeps() {
            std::fs::remove_file(self.record(&around.log))?;
            std::fs::remove_file(&around.log)?;
        }
        Ok(())
    }

    fn record(self, log: &Path) -> PathBuf {
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Wrapper::Weir => log.with_file_name(format!(".{name}.truncated.json")),
            _ => log.with_file_name(format!("{name}.fact")),
        }
    }
}
