//! Attempts of which everything follows from their number, so that whatever a disk holds
//! afterwards can be told from what it should hold.

use super::Dice;
use std::path::{Path, PathBuf};
use weir_common::{ArtifactId, AttemptId, Counts, Fact, LogName, RunId};
use weir_common::{receipt_name, receipt_shard};
use weir_tests::{Place, QUOTA, Weir};

/// What is put on disk: `--sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    Full,
    Records,
    None,
}

impl Sync {
    pub(super) fn name(self) -> &'static str {
        match self {
            Sync::Full => "full",
            Sync::Records => "records",
            Sync::None => "none",
        }
    }
}

/// Where an attempt's log and records stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Below a root and a root of receipts, each made by whoever comes first.
    Roots,
    /// Below a root; there is no receipt, so the fact is the last that is published.
    RootAlone,
    /// Beside each other in a directory that was there.
    Beside,
    /// The same, where an earlier start has left a log.
    Continued,
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt(pub(super) u32);

/// The job: number, how far it counts, exit code. It says nothing that another says.
pub(super) const JOB: &str = "#!/bin/sh\nseq -s \",$1,\" 1 \"$2\"\nexit \"$3\"\n";

impl Attempt {
    fn layout(self) -> Layout {
        [Layout::Roots, Layout::RootAlone, Layout::Beside, Layout::Continued][self.0 as usize % 4]
    }

    fn run_id(self) -> RunId {
        format!("run-{}", self.0).parse().unwrap()
    }

    /// Receipts stand in folders named by its first two letters.
    fn attempt_id(self) -> AttemptId {
        format!("{:02x}-{}", self.0.wrapping_mul(37) % 256, self.0).parse().unwrap()
    }

    /// The job's exit code; none of weir's own.
    pub(super) fn code(self) -> i32 {
        self.0 as i32 % 100
    }

    /// How far the job counts: every sixth one beyond the quota.
    fn count(self) -> u64 {
        match self.0 % 6 {
            5 => 12_000,
            _ => 1 + Dice::new(u64::from(self.0)).below(3000),
        }
    }

    /// The log, below a directory.
    pub(super) fn log(self, under: &Path) -> PathBuf {
        match self.layout() {
            Layout::Roots | Layout::RootAlone => {
                let artifact = ArtifactId::of(&self.run_id(), &self.attempt_id());
                under.join("root").join(artifact.shard()).join(format!("{artifact}.log"))
            }
            Layout::Beside | Layout::Continued => under.join(format!("{}.log", self.0)),
        }
    }

    /// The fact, beside the log.
    pub(super) fn fact(self, under: &Path) -> PathBuf {
        let log = self.log(under);
        log.with_file_name(LogName::new(log.file_name().unwrap()).unwrap().fact())
    }

    /// The FIFO, beside the log until all is published.
    pub(super) fn fifo(self, under: &Path) -> PathBuf {
        let log = self.log(under);
        log.with_file_name(LogName::new(log.file_name().unwrap()).unwrap().fifo())
    }

    /// The receipt, if there is to be one.
    pub(super) fn receipt(self, under: &Path) -> Option<PathBuf> {
        match self.layout() {
            Layout::Roots => {
                let id = self.attempt_id();
                Some(under.join("receipts").join(receipt_shard(&id)).join(receipt_name(&id)))
            }
            Layout::RootAlone => None,
            Layout::Beside | Layout::Continued => Some(under.join(format!("{}.json", self.0))),
        }
    }

    /// What an earlier start has left in the log.
    fn earlier(self) -> Vec<u8> {
        match self.layout() {
            Layout::Continued => format!("before {}\n", self.0).repeat(50).into_bytes(),
            Layout::Roots | Layout::RootAlone | Layout::Beside => Vec::new(),
        }
    }

    /// What the log holds in the end, and what the records say of it.
    pub(super) fn end(self) -> (Vec<u8>, Counts) {
        let numbers: Vec<String> = (1..=self.count()).map(|number| number.to_string()).collect();
        let output = numbers.join(&format!(",{},", self.0)) + "\n";
        let mut log = self.earlier();
        let start_bytes = log.len();
        let kept_bytes = output.len().min(QUOTA - start_bytes);
        log.extend(&output.as_bytes()[..kept_bytes]);
        let dropped_bytes = (output.len() - kept_bytes) as u64;
        let (start_bytes, kept_bytes) = (start_bytes as u64, kept_bytes as u64);
        (log, Counts { start_bytes, kept_bytes, dropped_bytes })
    }

    /// Whether a fact is of this attempt, under this quota.
    pub(super) fn has(self, fact: &Fact) -> bool {
        let ids = (self.run_id(), self.attempt_id());
        fact.log_artifact_id == ArtifactId::of(&ids.0, &ids.1)
            && (fact.run_id.clone(), fact.attempt_id.clone()) == ids
            && fact.quota.bytes() == QUOTA as u64
    }

    /// Lays out what was there before.
    pub(super) fn prepare(self, under: &Path) -> std::io::Result<()> {
        match self.layout() {
            Layout::Continued => std::fs::write(self.log(under), self.earlier()),
            Layout::Roots | Layout::RootAlone | Layout::Beside => Ok(()),
        }
    }

    /// The words after `weir run`; no word has a space.
    pub(super) fn words(self, under: &Path, job: &str, sync: Sync) -> Vec<String> {
        let path = |path: PathBuf| path.to_str().unwrap().to_owned();
        let mut words = vec!["--sync".to_owned(), sync.name().to_owned()];
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        option("run-id", self.run_id().to_string());
        option("attempt-id", self.attempt_id().to_string());
        option("quota", QUOTA.to_string());
        option("min-free", "0".to_owned());
        match self.layout() {
            Layout::Roots => {
                option("root", path(under.join("root")));
                option("receipt-root", path(under.join("receipts")));
            }
            Layout::RootAlone => option("root", path(under.join("root"))),
            Layout::Beside | Layout::Continued => {
                option("log", path(self.log(under)));
                option("receipt", path(self.receipt(under).unwrap()));
            }
        }
        words.extend(["--quiet".to_owned(), "--".to_owned(), job.to_owned()]);
        words.extend([self.0.to_string(), self.count().to_string(), self.code().to_string()]);
        words
    }

    /// A weir that runs it, by a program at the desk, and tells its events on its
    /// standard output.
    pub(super) fn weir(self, desk: &Place, program: &str, (under, sync): (&Path, Sync)) -> Weir {
        let words = self.words(under, desk.at(program).to_str().unwrap(), sync);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let told = ["run", "--status-fd", "1"];
        desk.bare().words(&[&told, &words[..]].concat())
    }
}
