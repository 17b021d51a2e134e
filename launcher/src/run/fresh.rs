//! `--fresh`: removing what an earlier start has left, and nothing else.

use super::log::{self, Log};
use super::records::{Named, Names};
use super::{Captured, fifo};
use crate::place::Directory;
use crate::plan::{Beginning, LogPlan};
use crate::refusal::{Code, Refusal};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use weir_common::Errno;
use weir_common::sys::files::{self, Identity, Kind, Strange};

/// One of an earlier start's files.
struct Old<'d> {
    /// Open, so that no other file can get its inode in the meantime.
    _file: OwnedFd,
    directory: &'d Directory,
    name: &'d OsStr,
    identity: Identity,
}

/// Removes the log and the records of an earlier start, where a fresh one is asked
/// for. Never a busy log.
pub(super) fn retire(captured: Captured<'_>, records: &Names<'_>) -> Result<(), Refusal> {
    if captured.plan.beginning() == Beginning::Replay {
        return Ok(());
    }
    // What would refuse the new start is found before the old one's log is gone.
    fifo::must_be_free_or_ours(captured)?;
    let Some(log) = old_log(captured)? else { return Ok(()) };
    // Records are found while the log is held, and only these are removed: should
    // another start publish in the meantime, its records are others.
    let old_records = old_records(records)?;
    // The log first: a record may outlive its log, but no log its record.
    [&log].into_iter().chain(&old_records).try_for_each(remove)
}

/// Removes records whose log is gone, where a fresh start is asked for: when it has made
/// a log of this name, and has its lock, nobody else can be at work with it.
pub(super) fn retire_orphans(log: &Log<'_>, records: &Names<'_>) -> Result<(), Refusal> {
    match (log.captured().plan.beginning(), log.is_new()) {
        (Beginning::Fresh, true) => old_records(records)?.iter().try_for_each(remove),
        _ => Ok(()),
    }
}

/// What to say of a log that another start has sealed since it was retired here: not that
/// it wants to be started over.
pub(super) fn or_busy(captured: Captured<'_>, sealed: Refusal) -> Refusal {
    match captured.plan.beginning() {
        Beginning::Fresh => Refusal::new(Code::LogBusy, "cannot start over log")
            .at(captured.plan.log_path())
            .because("another start has used it meanwhile"),
        Beginning::Replay => sealed,
    }
}

fn old_records<'d>(records: &'d Names<'d>) -> Result<Vec<Old<'d>>, Refusal> {
    let mut old = Vec::new();
    for record in records.iter() {
        old.extend(old_record(record)?);
    }
    Ok(old)
}

fn old_log(captured: Captured<'_>) -> Result<Option<Old<'_>>, Refusal> {
    let Captured { plan, directory } = captured;
    let LogPlan::Named(log) = &plan.log else { return Ok(None) };
    let name = log.name.as_os_str();
    if matches!(files::status_at(directory, name), Err(Errno::ENOENT)) {
        return Ok(None);
    }
    let (file, _) = log::open(captured, &log.name)?;
    let identity = log::own(captured, &log.name, &file)?.identity;
    Ok(Some(Old { _file: file, directory, name, identity }))
}

fn old_record<'d>(record: &'d Named<'d>) -> Result<Option<Old<'d>>, Refusal> {
    let (directory, name) = (record.directory, record.name());
    let refuse = |code| refuse_removal(directory, name, code);
    let fail = |errno| refuse(Code::System).because(errno);
    match files::ours_at(directory, name, Kind::Regular) {
        Ok(Some(_)) => {}
        Ok(None) => return Ok(None),
        Err(Strange::System(errno)) => return Err(fail(errno)),
        Err(strange) => return Err(refuse(Code::LogUnsafe).because(strange)),
    }
    let file = files::pin_at(directory, name).map_err(fail)?;
    let identity = files::status(&file).map_err(fail)?.identity;
    // The name of a receipt is the caller's choice, and could be any file's.
    record.must_be_one().map_err(|why| refuse(Code::LogUnsafe).because(why))?;
    Ok(Some(Old { _file: file, directory, name, identity }))
}

fn remove(old: &Old<'_>) -> Result<(), Refusal> {
    let fail = |errno| refuse_removal(old.directory, old.name, Code::System).because(errno);
    match files::status_at(old.directory, old.name) {
        Ok(named) if named.identity == old.identity => {
            files::unlink_at(old.directory, old.name).map_err(fail)
        }
        // Gone, or another's by now: not ours to remove.
        Ok(_) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(fail(errno)),
    }
}

fn refuse_removal(directory: &Directory, name: &OsStr, code: Code) -> Refusal {
    Refusal::new(code, "cannot remove").at(directory.path_of(name))
}
