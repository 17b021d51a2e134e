//! What was typed, understood: everything that a run needs to know, checked as far as
//! that goes without touching anything.

mod places;
mod ql3;
mod run;
mod values;

pub(crate) use ql3::take_log;
pub(crate) use run::log_path;
pub(crate) use values::take_handed;

use crate::place::{self, Place};
use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_common::sys::spawn::Hidden;
use weir_common::{ArtifactId, AttemptId, CallbackToken, Durability, Links, LogName, Quota, RunId};

/// A job to be run.
pub(crate) struct Plan {
    pub(crate) run_id: RunId,
    pub(crate) attempt_id: AttemptId,
    /// Where the job's output goes; `None`: where weir's own would.
    pub(crate) capture: Option<CapturePlan>,
    pub(crate) receipt: Option<ReceiptPlan>,
    pub(crate) insistence: Insistence,
    pub(crate) links: Links,
    pub(crate) sync: Sync,
    pub(crate) words: Vec<CString>,
    /// The variables of weir's own that the job does not get.
    pub(crate) hidden: Hidden<'static>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) stdin: Stdin,
    pub(crate) chatter: Chatter,
    pub(crate) after_exit: AfterExit,
    pub(crate) grace: Duration,
    pub(crate) scope: Scope,
    pub(crate) orphans: Orphans,
    pub(crate) leaving: Leaving,
}

/// Where a job's output goes, and how much of it.
pub(crate) struct CapturePlan {
    pub(crate) artifact_id: ArtifactId,
    /// Where the FIFO and the fact are, and a log that has a name.
    pub(crate) place: Place,
    pub(crate) log: LogPlan,
    pub(crate) fifo: OsString,
    pub(crate) fact: RecordName,
    pub(crate) form: FactForm,
    pub(crate) quota: Quota,
    pub(crate) output: Output,
    pub(crate) reopening: Reopening,
}

/// Which log.
pub(crate) enum LogPlan {
    /// weir opens it by its name.
    Named(NamedLog),
    /// It is weir's own standard output, which the caller has opened. That many bytes
    /// may be added to it.
    Inherited { remaining_bytes: u64 },
}

/// A log that weir opens itself.
pub(crate) struct NamedLog {
    pub(crate) name: LogName,
    /// Whether the caller can know where it is without being told.
    pub(crate) whereabouts: Whereabouts,
    pub(crate) min_free_bytes: u64,
    pub(crate) allocation: Allocation,
    pub(crate) beginning: Beginning,
}

/// A record's name, and its draft's.
#[derive(Clone, Debug)]
pub(crate) struct RecordName {
    pub(crate) name: OsString,
    pub(crate) draft: OsString,
}

impl RecordName {
    /// Every name that the record needs: its own, its draft's, and the one for trying.
    pub(crate) fn all(&self) -> [OsString; 3] {
        let mut trial = self.draft.clone();
        trial.push("~");
        [self.name.clone(), self.draft.clone(), trial]
    }
}

/// The version of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactForm {
    V1,
    V2,
}

/// Where a receipt goes, and what it tells.
pub(crate) struct ReceiptPlan {
    pub(crate) place: Place,
    pub(crate) record: RecordName,
    pub(crate) form: ReceiptForm,
    /// The run that it must be of to be started over; `None` where any will do.
    pub(crate) only_of: Option<RunId>,
}

/// The version of a receipt, with what only that version has.
pub(crate) enum ReceiptForm {
    V1 { callback_sequence: u64, token: CallbackToken, started_at_ms: u64 },
    V2 { log_artifact_id: ArtifactId },
}

/// How much a start needs its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insistence {
    /// Where they cannot be promised, or exist already, the start is refused.
    Required,
    /// The job runs whatever becomes of them.
    Wished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Known,
    MadeUp,
}

/// When the log gets its room on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// As it is written.
    AsWritten,
    /// `--reserve`: all of the quota, before the job starts.
    Ahead,
}

/// What becomes of an earlier start's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It is continued, within the quota.
    Replay,
    /// `--fresh`: it is removed, with its records.
    Fresh,
}

/// What is put on disk before weir leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    Full,
    Records,
    None,
}

impl Sync {
    /// Whether the records, and the directories that they are in, are.
    pub(crate) fn of_records(self) -> Durability {
        match self {
            Sync::Full | Sync::Records => Durability::Synced,
            Sync::None => Durability::Unsynced,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Log,
    LogAndTee,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    Inherited,
    Null,
}

/// What happens when the job has ended and others remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterExit {
    /// weir leaves after the grace; a background process drains to the true end.
    Linger,
    /// weir waits for the true end, or until it is asked to end.
    Wait,
    /// weir waits for the true end, whatever it is asked.
    WaitOut,
    /// Every descendant is ended.
    Kill,
}

/// Who gets a forwarded signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Job,
    /// The job has a process group of its own, and all of it gets the signal.
    Group,
}

/// Whether the job's orphans become weir's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orphans {
    Left,
    Adopted,
}

/// Whether a job that has dropped privileges may reopen its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reopening {
    OwnerOnly,
    Anybody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chatter {
    Notes,
    ErrorsOnly,
}

/// How weir leaves when a signal has ended the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// By the same signal, where that can be.
    BySignal,
    /// With 128 + its number.
    ByCode,
}

impl CapturePlan {
    /// The log's path, for messages.
    pub(crate) fn log_path(&self) -> PathBuf {
        match &self.log {
            LogPlan::Named(log) => place::join(&self.place.path(), log.name.as_os_str()),
            LogPlan::Inherited { .. } => Path::new("standard output").to_owned(),
        }
    }

    /// How many bytes may be added to a log of this length.
    pub(crate) fn room_bytes(&self, log_bytes: u64) -> u64 {
        let room_bytes = self.quota.bytes().saturating_sub(log_bytes);
        match self.log {
            LogPlan::Named(_) => room_bytes,
            LogPlan::Inherited { remaining_bytes } => room_bytes.min(remaining_bytes),
        }
    }

    /// When the log gets its room on disk.
    pub(crate) fn allocation(&self) -> Allocation {
        match &self.log {
            LogPlan::Named(log) => log.allocation,
            LogPlan::Inherited { .. } => Allocation::AsWritten,
        }
    }

    /// What becomes of an earlier start's log.
    pub(crate) fn beginning(&self) -> Beginning {
        match &self.log {
            LogPlan::Named(log) => log.beginning,
            LogPlan::Inherited { .. } => Beginning::Replay,
        }
    }
}
