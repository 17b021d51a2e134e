//! What can stand at the other end of a job's output.

use crate::Fallible;
use crate::bench::{Bench, command, command_of, length};
use crate::jobs::{LINE_BYTES, Report, pattern};
use crate::run::{self, Place};
use crate::wrapper::{Around, Sync, Wrapper};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Who reads, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Weir,
    Cat,
    StdbufHead,
    BusyboxDd,
    S6Log,
    Multilog,
    Svlogd,
    Wc,
    BusyboxWc,
    Splice,
}

/// What is written, and how much of it weir is to keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// The size of each write.
    pub(crate) write_bytes: usize,
    pub(crate) total_bytes: u64,
    pub(crate) quota_bytes: u64,
}

/// What one run showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    /// As fast as the job could write, in millions of bytes a second.
    pub(crate) mb_per_second: f64,
    /// What the reader used, in milliseconds.
    pub(crate) cpu_ms: f64,
}

impl Reader {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Reader::Weir => "weir",
            Reader::Cat => "cat >>log",
            Reader::StdbufHead => "stdbuf -o0 head -c",
            Reader::BusyboxDd => "busybox dd",
            Reader::S6Log => "s6-log",
            Reader::Multilog => "multilog",
            Reader::Svlogd => "svlogd",
            Reader::Wc => "wc -c",
            Reader::BusyboxWc => "busybox wc -c",
            Reader::Splice => "bare splice",
        }
    }

    const fn needs(self) -> &'static [&'static str] {
        match self {
            Reader::Weir | Reader::Splice => &[],
            Reader::Cat => &["cat"],
            Reader::StdbufHead => &["stdbuf", "head"],
            Reader::BusyboxDd | Reader::BusyboxWc => &["busybox"],
            Reader::S6Log => &["s6-log"],
            Reader::Multilog => &["multilog"],
            Reader::Svlogd => &["svlogd"],
            Reader::Wc => &["wc"],
        }
    }

    /// Those of them that are here.
    pub(crate) fn present(bench: &Bench, wanted: &[Reader]) -> Vec<Reader> {
        wanted.iter().copied().filter(|it| bench.peers.have(it.needs())).collect()
    }

    /// Lets a job write to it, each on a processor of its own, and sees that it kept what it
    /// should have.
    pub(crate) fn measure(self, bench: &Bench, flow: Flow) -> Fallible<Drained> {
        let report = bench.scratch.at("report");
        let log = bench.scratch.at("log");
        let (size, total) = (flow.write_bytes.to_string(), flow.total_bytes.to_string());
        let cpu = bench.writer.to_string();
        let job = bench.job(&["write", &size, &total, &report.to_string_lossy(), &cpu]);
        let (report, cpu_ns) = match self {
            Reader::Weir => {
                let around =
                    Around { log: log.clone(), quota_bytes: flow.quota_bytes, sync: Sync::None };
                let mut weir = Wrapper::Weir.command(bench, &around, &job);
                let ended = run::run(&mut weir, bench.at_reader())?;
                check_end(&log, flow)?;
                Wrapper::Weir.settle(&around, flow.total_bytes)?;
                let report = Report::take(&report)?;
                // It has waited for the job, so the job's time is in it.
                (report, ended.cpu_ns.saturating_sub(report.cpu_ns))
            }
            _ => {
                let ended = self.beside(bench, &log, command_of(&job))?;
                self.settle(&log, flow)?;
                (Report::take(&report)?, ended)
            }
        };
        Ok(Drained {
            mb_per_second: flow.total_bytes as f64 * 1000.0 / report.wall_ns as f64,
            cpu_ms: cpu_ns as f64 / 1e6,
        })
    }

    /// Runs both with a pipe between them, and gives the reader's processor time.
    fn beside(self, bench: &Bench, log: &Path, mut job: Command) -> Fallible<u64> {
        let (output, input) = std::io::pipe()?;
        let mut reader = self.command(bench, log)?;
        reader.stdin(Stdio::from(output));
        job.stdout(Stdio::from(input));
        let reading = run::start(&mut reader, bench.at_reader())?;
        let writing = run::start(&mut job, Place::On(bench.writer))?;
        // They hold the pipe's ends, and its end would never come.
        drop((reader, job));
        let mut cpu_ns = 0;
        for ended in run::finish_all(vec![writing, reading])? {
            cpu_ns = ended.expect_success()?.cpu_ns;
        }
        Ok(cpu_ns)
    }

    fn command(self, bench: &Bench, log: &Path) -> Fallible<Command> {
        let program = |name: &str, words: &[&str]| {
            let mut command = command(bench.peers.path(name).unwrap_or(Path::new(name)));
            command.args(words);
            command
        };
        let into_log = |mut command: Command| -> Fallible<Command> {
            command.stdout(OpenOptions::new().append(true).create(true).open(log)?);
            Ok(command)
        };
        let into_folder = |mut command: Command| -> Fallible<Command> {
            std::fs::create_dir(log)?;
            command.arg(log).stderr(Stdio::null());
            Ok(command)
        };
        match self {
            Reader::Cat => into_log(program("cat", &[])),
            // More than there is: what is measured is the keeping.
            Reader::StdbufHead => into_log(program("stdbuf", &["-o0", "head", "-c", "1G"])),
            Reader::BusyboxDd => {
                let words = ["dd", "iflag=count_bytes", "count=1G", "bs=64k"];
                let mut dd = program("busybox", &words);
                dd.stderr(Stdio::null());
                into_log(dd)
            }
            Reader::S6Log => into_folder(program("s6-log", &["n20", "s268435455"])),
            Reader::Multilog => into_folder(program("multilog", &["n200", "s16777215"])),
            // A size of 0 in its configuration: one file, however long.
            Reader::Svlogd => {
                let command = into_folder(program("svlogd", &[]))?;
                std::fs::write(log.join("config"), "s0\n")?;
                Ok(command)
            }
            Reader::Wc => Ok(program("wc", &["-c"])),
            Reader::BusyboxWc => Ok(program("busybox", &["wc", "-c"])),
            Reader::Weir | Reader::Splice => Ok(command_of(&bench.job(&["splice"]))),
        }
    }

    /// Sees that everything was kept, where it should be, and removes it.
    fn settle(self, log: &Path, flow: Flow) -> Fallible<()> {
        match self {
            Reader::Wc | Reader::BusyboxWc | Reader::Splice => Ok(()),
            Reader::S6Log | Reader::Multilog | Reader::Svlogd => {
                let kept = logged(log)?;
                std::fs::remove_dir_all(log)?;
                // One drops a last line that has no end, another gives it one.
                let is_whole = kept.abs_diff(flow.total_bytes) < LINE_BYTES;
                self.expect(if is_whole { flow.total_bytes } else { kept }, flow)
            }
            _ => {
                check_end(log, flow)?;
                let kept = length(log)?;
                std::fs::remove_file(log)?;
                self.expect(kept, flow)
            }
        }
    }

    fn expect(self, kept: u64, flow: Flow) -> Fallible<()> {
        if kept == flow.total_bytes {
            return Ok(());
        }
        Err(format!("{} has kept {kept} bytes of {}", self.name(), flow.total_bytes).into())
    }
}

/// How much a logger has in the files of its folder.
fn logged(folder: &Path) -> Fallible<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "current" || name.to_string_lossy().starts_with('@') {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Sees that the log ends in what the job wrote there.
fn check_end(log: &Path, flow: Flow) -> Fallible<()> {
    let kept = length(log)?;
    let from = kept.saturating_sub(4096);
    let mut found = vec![0; (kept - from) as usize];
    File::open(log)?.read_exact_at(&mut found, from)?;
    let write = pattern(flow.write_bytes);
    let as_written = |at: usize| write[((from + at as u64) % flow.write_bytes as u64) as usize];
    match found.iter().enumerate().all(|(at, byte)| *byte == as_written(at)) {
        true => Ok(()),
        false => Err(format!("{} holds something else than was written", log.display()).into()),
    }
}
