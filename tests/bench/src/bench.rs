//! What every part needs: weir, its peers, a place on disk, two processors.

use crate::args::Args;
use crate::peers::Peers;
use crate::place::Scratch;
use crate::run::Place;
use crate::{Fallible, machine};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Bench {
    /// Fewer rounds of smaller runs.
    pub(crate) quick: bool,
    pub(crate) weir: PathBuf,
    pub(crate) peers: Peers,
    pub(crate) scratch: Scratch,
    /// Where writers run when it matters.
    pub(crate) writer: usize,
    /// Where who reads from them runs, on another processor if there is one.
    pub(crate) reader: usize,
    /// This program.
    own: PathBuf,
    pub(crate) sh_gnu: PathBuf,
    pub(crate) sh_busybox: PathBuf,
    pub(crate) runtime: PathBuf,
}

impl Bench {
    pub(crate) fn prepare(args: &Args) -> Fallible<Bench> {
        let found = args.weir.canonicalize();
        let weir = found.map_err(|why| format!("{}: {why}", args.weir.display()))?;
        let scratch = Scratch::new(args.scratch.as_deref().unwrap_or(&args.out))?;
        let kind = machine::file_system(scratch.path())?;
        if matches!(kind.as_str(), "tmpfs" | "ramfs") {
            eprintln!("weir-bench: LOGS ARE ON {kind}: capture is not what it is on a disk");
        }
        let cpus = machine::cpus()?;
        if cpus.len() < 2 {
            eprintln!("weir-bench: ONE PROCESSOR: writers and readers share it");
        }
        let peers = Peers::find();
        for missing in peers.missing() {
            eprintln!("weir-bench: {missing} IS NOT THERE: its rows say \"no peer\"");
        }
        Ok(Bench {
            quick: args.quick,
            weir,
            peers,
            writer: cpus[0],
            reader: *cpus.get(1).unwrap_or(&cpus[0]),
            own: std::env::current_exe()?,
            sh_gnu: scratch.script("sh-gnu", include_str!("../peers/sh-gnu"))?,
            sh_busybox: scratch.script("sh-busybox", include_str!("../peers/sh-busybox"))?,
            runtime: scratch.script("runtime", include_str!("../peers/runtime"))?,
            scratch,
        })
    }

    /// The one or the other, by how thorough the run is.
    pub(crate) fn either<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Writers on one processor.
    pub(crate) fn at_writer(&self) -> Place {
        Place::On(self.writer)
    }

    /// Readers on the other.
    pub(crate) fn at_reader(&self) -> Place {
        Place::On(self.reader)
    }

    /// What the kernel calls this program's processes: fifteen bytes of its name.
    pub(crate) fn own_name(&self) -> String {
        let name = self.own.file_name().unwrap_or_default().to_string_lossy();
        name.chars().take(15).collect()
    }

    /// A command line of this program as a job.
    pub(crate) fn job(&self, words: &[&str]) -> Vec<String> {
        let own = self.own.to_string_lossy().into_owned();
        let words = words.iter().map(|word| (*word).to_owned());
        [own, "job".to_owned()].into_iter().chain(words).collect()
    }
}

/// A command with nothing to read, nobody to tell, and few variables.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("LC_ALL", "C");
    command
}

/// The command of these words.
pub(crate) fn command_of(words: &[String]) -> Command {
    let mut command = command(&words[0]);
    command.args(&words[1..]);
    command
}

/// A file's length in bytes.
pub(crate) fn length(path: &Path) -> Fallible<u64> {
    let data = std::fs::metadata(path).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(data.len())
}
