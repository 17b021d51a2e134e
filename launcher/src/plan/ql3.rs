//! The plan of `weir ql3`: from the variables of its protocol.

use super::places::split;
use super::values::c_words;
use super::{
    AfterExit, CapturePlan, Chatter, FactForm, Insistence, Leaving, LogPlan, Orphans, Output, Plan,
    ReceiptForm, ReceiptPlan, RecordName, Reopening, Scope, Stdin, Sync,
};
use crate::cli::{Launch, VARIABLES, Variable};
use crate::place::{Place, Rule};
use crate::refusal::{Code, Refusal};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use weir_common::sys::spawn::Hidden;
use weir_common::sys::{files, inherited};
use weir_common::{Links, Quota};

/// The largest integer that the client's numbers hold exactly.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// Takes over what the client has handed down: its log, on descriptor 1. The script that
/// started weir, on descriptor 3, is closed. To be called before anything is opened.
pub(crate) fn take_log() -> Option<OwnedFd> {
    const SCRIPT: i32 = 3;
    drop(files::take_inherited(SCRIPT));
    let is_open = inherited::inherited().standard_open[1];
    is_open.then(|| files::take_inherited(1).ok()).flatten()
}

impl Plan {
    /// What this launch and the variables mean.
    pub(crate) fn of_variables(launch: &Launch) -> Result<Plan, Refusal> {
        let capture = match Variable::Fifo.value().filter(|fifo| !fifo.is_empty()) {
            Some(_) => Some(capture()?),
            None => None,
        };
        let plan = Plan {
            run_id: parsed(Variable::RunId)?,
            attempt_id: parsed(Variable::AttemptId)?,
            capture,
            receipt: Some(receipt()?),
            insistence: Insistence::Wished,
            links: Links::NeverTwo,
            sync: Sync::Full,
            words: words(launch)?,
            hidden: Hidden::Names(&VARIABLES),
            directory: None,
            stdin: Stdin::Inherited,
            chatter: Chatter::ErrorsOnly,
            // Whoever stops an attempt signals its whole group, and kills what has not ended
            // by then; and looks for the receipt when weir has left.
            after_exit: AfterExit::WaitOut,
            grace: Duration::ZERO,
            scope: Scope::Job,
            orphans: Orphans::Left,
            leaving: Leaving::ByCode,
        };
        check_names(&plan)?;
        Ok(plan)
    }
}

fn capture() -> Result<CapturePlan, Refusal> {
    let (place, fact) = record(Variable::FactTarget, Variable::FactTemporary)?;
    let fifo = path(Variable::Fifo)?;
    let (directory, fifo) = named(Variable::Fifo, &fifo)?;
    if directory != place.base {
        let reason = format!("it is not beside {}", Variable::FactTarget.name());
        return Err(Variable::Fifo.refuse(Code::Usage).because(reason));
    }
    let quota = Variable::MaximumBytes;
    let quota = Quota::new(decimal(quota, u64::MAX)?)
        .map_err(|why| quota.refuse(Code::QuotaOutOfRange).because(why))?;
    Ok(CapturePlan {
        artifact_id: parsed(Variable::LogArtifactId)?,
        place,
        log: LogPlan::Inherited {
            remaining_bytes: decimal(Variable::RemainingBytes, quota.bytes())?,
        },
        fifo: fifo.to_owned(),
        fact,
        form: FactForm::V1,
        quota,
        output: Output::Log,
        reopening: Reopening::OwnerOnly,
    })
}

fn receipt() -> Result<ReceiptPlan, Refusal> {
    let (place, record) = record(Variable::ReceiptTarget, Variable::ReceiptTemporary)?;
    let sequence = Variable::CallbackSequence;
    let callback_sequence = match decimal(sequence, SAFE_INTEGER_MAX)? {
        _ if text(sequence)?.starts_with('0') => {
            let reason = "it is not a whole number from 1, without a zero in front";
            return Err(sequence.refuse(Code::Usage).because(reason));
        }
        number => number,
    };
    let token = parsed(Variable::CallbackToken)?;
    let started_at_ms = decimal(Variable::StartedAtMs, SAFE_INTEGER_MAX)?;
    let form = ReceiptForm::V1 { callback_sequence, token, started_at_ms };
    Ok(ReceiptPlan { place, record, form, only_of: None })
}

fn words(launch: &Launch) -> Result<Vec<std::ffi::CString>, Refusal> {
    match launch {
        Launch::Argv(words) => c_words(words.iter().map(OsString::as_os_str)),
        Launch::Shell => {
            let shell = path(Variable::Shell)?;
            let command = present(Variable::ShellCommand)?;
            c_words([shell.as_os_str(), OsStr::new("-c"), &command])
        }
    }
}

/// The place and the names of a record. The client has made the place, and it alone
/// decides who else may write there.
fn record(target: Variable, temporary: Variable) -> Result<(Place, RecordName), Refusal> {
    let (target_path, temporary_path) = (path(target)?, path(temporary)?);
    let (base, name) = named(target, &target_path)?;
    let (other_base, draft) = named(temporary, &temporary_path)?;
    if base != other_base {
        let reason = format!("it is not in the directory of {}", target.name());
        return Err(temporary.refuse(Code::Usage).because(reason));
    }
    let place = Place { base: base.to_owned(), rule: Rule::Unchecked, below: Vec::new() };
    Ok((place, RecordName { name: name.to_owned(), draft: draft.to_owned() }))
}

/// Refuses names of which one would be in the way of the other.
fn check_names(plan: &Plan) -> Result<(), Refusal> {
    let mut taken: Vec<(&Path, OsString, Variable)> = Vec::new();
    let mut take = |base, name, variable: Variable| {
        if taken.iter().any(|(other, taken, _)| *other == base && *taken == name) {
            let refusal = variable.refuse(Code::Usage);
            return Err(refusal.because("it is the name of another file of this attempt"));
        }
        taken.push((base, name, variable));
        Ok(())
    };
    if let Some(receipt) = &plan.receipt {
        let [name, draft, trial] = receipt.record.all();
        let base = receipt.place.base.as_path();
        take(base, name, Variable::ReceiptTarget)?;
        take(base, draft, Variable::ReceiptTemporary)?;
        take(base, trial, Variable::ReceiptTemporary)?;
    }
    if let Some(capture) = &plan.capture {
        let [name, draft, trial] = capture.fact.all();
        let base = capture.place.base.as_path();
        take(base, name, Variable::FactTarget)?;
        take(base, draft, Variable::FactTemporary)?;
        take(base, trial, Variable::FactTemporary)?;
        take(base, capture.fifo.clone(), Variable::Fifo)?;
    }
    Ok(())
}

fn present(variable: Variable) -> Result<OsString, Refusal> {
    variable.value().ok_or_else(|| variable.refuse(Code::Usage).because("it is not set"))
}

fn text(variable: Variable) -> Result<String, Refusal> {
    let value = present(variable)?.into_string();
    value.map_err(|_| variable.refuse(Code::Usage).because("it is not UTF-8"))
}

fn parsed<T: FromStr<Err: Display>>(variable: Variable) -> Result<T, Refusal> {
    text(variable)?.parse().map_err(|why| variable.refuse(Code::Usage).because(why))
}

/// A whole number: digits and nothing else.
fn decimal(variable: Variable, maximum: u64) -> Result<u64, Refusal> {
    let text = text(variable)?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number <= maximum);
    number.ok_or_else(|| {
        let reason = match maximum {
            u64::MAX => "it is not a whole number".to_owned(),
            _ => format!("it is not a whole number up to {maximum}"),
        };
        variable.refuse(Code::Usage).because(reason)
    })
}

fn path(variable: Variable) -> Result<PathBuf, Refusal> {
    let path = PathBuf::from(present(variable)?);
    match path.as_os_str().as_bytes().first() {
        Some(b'/') => Ok(path),
        _ => Err(variable.refuse(Code::Usage).because("it is not an absolute path")),
    }
}

fn named(variable: Variable, path: &Path) -> Result<(&Path, &OsStr), Refusal> {
    split(path).map_err(|why| variable.refuse(Code::Usage).because(why))
}
