//! What was typed, understood: everything that a run needs to know, checked as far as
//! that goes without touching anything.

mod places;
mod values;

pub(crate) use values::take_handed;

use crate::cli::{Args, Name};
use crate::place::{self, Place};
use crate::refusal::{Code, Refusal};
use places::{log_place, receipt_plan};
use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::time::Duration;
use values::{after_exit, choice, grace, id, min_free, profile, quota, stdin, sync, text, words};
use weir_common::{ArtifactId, AttemptId, LogName, Quota, RunId};

/// A job to be run.
pub(crate) struct Plan {
    pub(crate) run_id: RunId,
    pub(crate) attempt_id: AttemptId,
    pub(crate) artifact_id: ArtifactId,
    pub(crate) place: Place,
    pub(crate) log: LogName,
    /// Whether the caller can know where the log is without being told.
    pub(crate) whereabouts: Whereabouts,
    pub(crate) quota: Quota,
    pub(crate) min_free_bytes: u64,
    pub(crate) receipt: Option<ReceiptPlan>,
    pub(crate) beginning: Beginning,
    pub(crate) sync: Sync,
    pub(crate) output: Output,
    pub(crate) words: Vec<CString>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) stdin: Stdin,
    pub(crate) chatter: Chatter,
    pub(crate) after_exit: AfterExit,
    pub(crate) grace: Duration,
    pub(crate) scope: Scope,
    pub(crate) orphans: Orphans,
    pub(crate) reopening: Reopening,
}

/// Where a receipt goes.
pub(crate) struct ReceiptPlan {
    pub(crate) place: Place,
    pub(crate) name: OsString,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Known,
    MadeUp,
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
    /// weir waits for the true end.
    Wait,
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

/// The path that the log would have by these words, as far as they make sense.
pub(crate) fn log_path(args: &Args) -> Option<PathBuf> {
    let run_id = id(args, Name::RunId, RunId::random).ok()?;
    let attempt_id = id(args, Name::AttemptId, AttemptId::random).ok()?;
    let (place, log) = log_place(args, &ArtifactId::of(&run_id, &attempt_id)).ok()?;
    Some(place::join(&place.path(), log.as_os_str()))
}

impl Plan {
    pub(crate) fn of(args: &Args) -> Result<Plan, Refusal> {
        let run_id = id(args, Name::RunId, RunId::random)?;
        let attempt_id = id(args, Name::AttemptId, AttemptId::random)?;
        let artifact_id = ArtifactId::of(&run_id, &attempt_id);
        let (place, log) = log_place(args, &artifact_id)?;
        let profile = profile(args)?;
        let made_up = args.value(Name::RunId).is_none() || args.value(Name::AttemptId).is_none();
        let by_ids = args.value(Name::Root).is_some();
        let plan = Plan {
            receipt: receipt_plan(args, &attempt_id)?,
            whereabouts: if by_ids && made_up { Whereabouts::MadeUp } else { Whereabouts::Known },
            quota: quota(args, profile)?,
            min_free_bytes: min_free(args, profile)?,
            beginning: if args.flag(Name::Fresh)? { Beginning::Fresh } else { Beginning::Replay },
            sync: sync(args)?,
            output: if args.flag(Name::Tee)? { Output::LogAndTee } else { Output::Log },
            words: words(args)?,
            directory: args.value(Name::Chdir).map(PathBuf::from),
            stdin: stdin(args)?,
            chatter: if args.flag(Name::Quiet)? { Chatter::ErrorsOnly } else { Chatter::Notes },
            after_exit: after_exit(args)?,
            grace: grace(args)?,
            scope: choice(args, Name::SignalScope, [("job", Scope::Job), ("group", Scope::Group)])?,
            orphans: if args.flag(Name::Subreaper)? { Orphans::Adopted } else { Orphans::Left },
            reopening: match args.flag(Name::Reopenable)? {
                true => Reopening::Anybody,
                false => Reopening::OwnerOnly,
            },
            run_id,
            attempt_id,
            artifact_id,
            place,
            log,
        };
        check_combinations(args, &plan)?;
        Ok(plan)
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        place::join(&self.place.path(), self.log.as_os_str())
    }

    /// How much of the quota is left to a log of this length.
    pub(crate) fn remaining_bytes(&self, log_bytes: u64) -> u64 {
        self.quota.bytes().saturating_sub(log_bytes)
    }
}

fn check_combinations(args: &Args, plan: &Plan) -> Result<(), Refusal> {
    let standard_output = Some("1");
    if args.value(Name::LogFd).is_some() && plan.beginning == Beginning::Fresh {
        let refusal = args.refuse(Code::Usage, Name::LogFd);
        return Err(
            refusal.because("a log that is open already cannot be started over with --fresh")
        );
    }
    if plan.output == Output::LogAndTee && text(args, Name::StatusFd)? == standard_output {
        let refusal = args.refuse(Code::Usage, Name::StatusFd);
        return Err(refusal.because("standard output has the copy of --tee"));
    }
    Ok(())
}
