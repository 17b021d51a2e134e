//! What a container has left on disk.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use weir_common::{
    ArtifactId, AttemptId, Capture, Fact, LogName, Receipt, RunId, receipt_name, receipt_shard,
};
use weir_tests::{Place, QUOTA};

/// What `seq COUNT` prints.
pub(crate) fn numbers(count: u32) -> String {
    (1..=count).map(|number| format!("{number}\n")).collect()
}

/// What a container has left on disk.
pub(crate) struct Left {
    /// The test's folder; `logs` in it is the container's `/logs`.
    pub(crate) place: Place,
}

fn ids() -> (RunId, AttemptId) {
    ("run".parse().unwrap(), "attempt".parse().unwrap())
}

fn artifact() -> ArtifactId {
    let (run, attempt) = ids();
    ArtifactId::of(&run, &attempt)
}

/// A name in the shard of the log, from `logs` on.
fn in_shard(name: &OsStr) -> String {
    format!("weir/{}/{}", artifact().shard(), name.to_string_lossy())
}

impl Left {
    /// The log's path.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.place.at("logs").join(in_shard(LogName::of(&artifact()).as_os_str()))
    }

    /// The fact's path.
    pub(crate) fn fact_path(&self) -> PathBuf {
        self.place.at("logs").join(Left::fact_name())
    }

    /// The fact's name below `logs`.
    pub(crate) fn fact_name() -> String {
        in_shard(&LogName::of(&artifact()).fact())
    }

    /// The FIFO's name below `logs`.
    pub(crate) fn fifo_name() -> String {
        in_shard(&LogName::of(&artifact()).fifo())
    }

    /// The log's content.
    #[track_caller]
    pub(crate) fn log(&self) -> Vec<u8> {
        std::fs::read(self.log_path()).unwrap()
    }

    /// The fact, if there is one.
    #[track_caller]
    pub(crate) fn fact(&self) -> Option<Fact> {
        Fact::read(&self.fact_path()).unwrap()
    }

    /// The receipt, if there is one.
    #[track_caller]
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        let (_, attempt) = ids();
        let name = format!("logs/receipts/{}/{}", receipt_shard(&attempt), receipt_name(&attempt));
        Receipt::read(&self.place.at(&name)).unwrap()
    }

    /// The log is the head of this, cut at the smallest quota, the fact tells how much is
    /// missing, and nothing else is left but the receipt.
    #[track_caller]
    pub(crate) fn is_cut(&self, all: &str) {
        assert!(self.log() == all.as_bytes()[..QUOTA], "the log is not the head");
        let fact = self.fact().expect("a fact");
        assert!(fact.quota_reached);
        let counts = fact.counts.unwrap();
        let expected = (QUOTA as u64, (all.len() - QUOTA) as u64);
        assert_eq!((counts.kept_bytes, counts.dropped_bytes), expected);
        assert_eq!(self.receipt().unwrap().capture, Capture::Truncated);
        assert_eq!(self.names(), Left::whole_names());
    }

    /// Every file and folder below `logs`.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.place.names().into_iter();
        names
            .filter_map(|name| name.strip_prefix("logs/").map(str::to_owned))
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// What is there while a job runs: log and FIFO, and no draft that has a name.
    pub(crate) fn running_names() -> Vec<String> {
        let name = LogName::of(&artifact());
        let (_, attempt) = ids();
        let mut names = vec![
            "receipts/".to_owned(),
            format!("receipts/{}/", receipt_shard(&attempt)),
            "weir/".to_owned(),
            format!("weir/{}/", artifact().shard()),
            in_shard(&name.fifo()),
            in_shard(name.as_os_str()),
        ];
        names.sort();
        names
    }

    /// What is left of a whole run: log, fact and receipt.
    pub(crate) fn whole_names() -> Vec<String> {
        let (_, attempt) = ids();
        let shard = receipt_shard(&attempt);
        let mut names = Left::running_names();
        names.retain(|one| *one != Left::fifo_name());
        names.push(Left::fact_name());
        names.push(format!("receipts/{shard}/{}", receipt_name(&attempt)));
        names.sort();
        names
    }

    /// Owner and permissions of the log.
    pub(crate) fn log_owner_and_mode(&self) -> (u32, u32) {
        let status = std::fs::symlink_metadata(self.log_path()).unwrap();
        (status.uid(), status.mode() & 0o7777)
    }
}
