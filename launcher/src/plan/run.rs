//! The plan of `weir run`: from options.

use super::places::{log_place, receipt_place};
use super::values::{
    after_exit, choice, grace, id, min_free, profile, quota, stdin, sync, text, words,
};
use super::{
    Allocation, Beginning, CapturePlan, Chatter, FactForm, Insistence, Leaving, LogPlan, NamedLog,
    Orphans, Output, Plan, ReceiptForm, ReceiptPlan, RecordName, Reopening, Scope, Whereabouts,
};
use crate::cli::{Args, Examination, Name, VARIABLE_PREFIX};
use crate::place::{self, Place};
use crate::refusal::{Code, Refusal};
use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use weir_common::sys::spawn::Hidden;
use weir_common::{ArtifactId, AttemptId, Links, LogName, RunId};

/// The path that the log would have by these words, as far as they make sense.
pub(crate) fn log_path(args: &Args) -> Option<PathBuf> {
    let run_id = id(args, Name::RunId, RunId::random).ok()?;
    let attempt_id = id(args, Name::AttemptId, AttemptId::random).ok()?;
    let (place, log) = log_place(args, &ArtifactId::of(&run_id, &attempt_id)).ok()?;
    Some(place::join(&place.path(), log.as_os_str()))
}

/// Which attempt.
struct Attempt {
    run_id: RunId,
    attempt_id: AttemptId,
    artifact_id: ArtifactId,
}

impl Attempt {
    fn of(args: &Args) -> Result<Attempt, Refusal> {
        let run_id = id(args, Name::RunId, RunId::random)?;
        let attempt_id = id(args, Name::AttemptId, AttemptId::random)?;
        let artifact_id = ArtifactId::of(&run_id, &attempt_id);
        Ok(Attempt { run_id, attempt_id, artifact_id })
    }
}

impl Plan {
    /// What these options mean.
    pub(crate) fn of_options(args: &Args) -> Result<Plan, Refusal> {
        let attempt = Attempt::of(args)?;
        let log = log_place(args, &attempt.artifact_id)?;
        Plan::new(args, attempt, log, words(args)?)
    }

    /// An attempt without a job, to see what becomes of it.
    pub(crate) fn of_examination(examination: &Examination) -> Result<Plan, Refusal> {
        let args = &examination.args;
        let attempt = Attempt::of(args)?;
        let log = match &examination.directory {
            Some(directory) => {
                let place = Place::plain(Path::new(directory));
                (place, LogName::of(&attempt.artifact_id))
            }
            None => log_place(args, &attempt.artifact_id)?,
        };
        Plan::new(args, attempt, log, Vec::new())
    }

    fn new(
        args: &Args,
        attempt: Attempt,
        log: (Place, LogName),
        words: Vec<CString>,
    ) -> Result<Plan, Refusal> {
        let Attempt { run_id, attempt_id, artifact_id } = attempt;
        let receipt = receipt_place(args, &attempt_id)?.map(|(place, name)| {
            let mut draft = OsString::from(".");
            draft.push(&name);
            draft.push(".receipt.tmp");
            let form = ReceiptForm::V2 { log_artifact_id: artifact_id.clone() };
            // Under a root its name tells the attempt only, and another run may have one of
            // that name; a file of its own was named by the caller, whatever it was.
            let of_run = args.value(Name::ReceiptRoot).and(args.value(Name::RunId));
            let only_of = of_run.map(|_| run_id.clone());
            ReceiptPlan { place, record: RecordName { name, draft }, form, only_of }
        });
        Ok(Plan {
            run_id,
            attempt_id,
            capture: Some(capture(args, artifact_id, log)?),
            receipt,
            insistence: Insistence::Required,
            links: Links::TwoForAMoment,
            sync: sync(args)?,
            words,
            hidden: Hidden::Prefix(VARIABLE_PREFIX),
            directory: args.value(Name::Chdir).map(PathBuf::from),
            stdin: stdin(args)?,
            chatter: if args.flag(Name::Quiet)? { Chatter::ErrorsOnly } else { Chatter::Notes },
            after_exit: after_exit(args)?,
            grace: grace(args)?,
            scope: choice(args, Name::SignalScope, [("job", Scope::Job), ("group", Scope::Group)])?,
            orphans: if args.flag(Name::Subreaper)? { Orphans::Adopted } else { Orphans::Left },
            leaving: Leaving::BySignal,
        })
    }
}

fn capture(
    args: &Args,
    artifact_id: ArtifactId,
    (place, name): (Place, LogName),
) -> Result<CapturePlan, Refusal> {
    let profile = profile(args)?;
    let made_up = args.value(Name::RunId).is_none() || args.value(Name::AttemptId).is_none();
    let by_ids = args.value(Name::Root).is_some();
    let beginning = if args.flag(Name::Fresh)? { Beginning::Fresh } else { Beginning::Replay };
    let output = if args.flag(Name::Tee)? { Output::LogAndTee } else { Output::Log };
    check_combinations(args, beginning, output)?;
    Ok(CapturePlan {
        artifact_id,
        place,
        fifo: name.fifo(),
        fact: RecordName { name: name.fact(), draft: name.fact_draft() },
        form: FactForm::V2,
        log: LogPlan::Named(NamedLog {
            name,
            whereabouts: if by_ids && made_up { Whereabouts::MadeUp } else { Whereabouts::Known },
            min_free_bytes: min_free(args, profile)?,
            allocation: match args.flag(Name::Reserve)? {
                true => Allocation::Ahead,
                false => Allocation::AsWritten,
            },
            beginning,
        }),
        quota: quota(args, profile)?,
        output,
        reopening: match args.flag(Name::Reopenable)? {
            true => Reopening::Anybody,
            false => Reopening::OwnerOnly,
        },
    })
}

fn check_combinations(args: &Args, beginning: Beginning, output: Output) -> Result<(), Refusal> {
    let standard_output = Some("1");
    if args.value(Name::LogFd).is_some() && beginning == Beginning::Fresh {
        let refusal = args.refuse(Code::Usage, Name::LogFd);
        return Err(
            refusal.because("a log that is open already cannot be started over with --fresh")
        );
    }
    if output == Output::LogAndTee && text(args, Name::StatusFd)? == standard_output {
        let refusal = args.refuse(Code::Usage, Name::StatusFd);
        return Err(refusal.because("standard output has the copy of --tee"));
    }
    Ok(())
}
