//! `--fresh`: removing what an earlier start has left, and nothing else.

use super::log;
use super::records::Names;
use crate::place::Directory;
use crate::plan::{Beginning, Plan};
use crate::refusal::{Code, Refusal};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use weir_common::Errno;
use weir_common::sys::files::{self, Identity, Kind};
use weir_common::sys::process;

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
pub(super) fn retire(
    plan: &Plan,
    directory: &Directory,
    records: &Names<'_>,
) -> Result<(), Refusal> {
    if plan.beginning == Beginning::Replay {
        return Ok(());
    }
    let log = old_log(plan, directory)?;
    // Records are found while the log is held, and only these are removed: should
    // another start publish in the meantime, its records are others.
    let mut old_records = Vec::new();
    for record in records.iter() {
        old_records.extend(old_record(record.directory, &record.name)?);
    }
    // The log first: a record may outlive its log, but no log its record.
    log.iter().chain(&old_records).try_for_each(remove)
}

fn old_log<'d>(plan: &'d Plan, directory: &'d Directory) -> Result<Option<Old<'d>>, Refusal> {
    let name = plan.log.as_os_str();
    if matches!(files::status_at(directory, name), Err(Errno::ENOENT)) {
        return Ok(None);
    }
    let (file, _) = log::open(plan, directory)?;
    let identity = log::own(plan, directory, &file)?.identity;
    Ok(Some(Old { _file: file, directory, name, identity }))
}

fn old_record<'d>(directory: &'d Directory, name: &'d OsStr) -> Result<Option<Old<'d>>, Refusal> {
    let refuse = |code| refuse_removal(directory, name, code);
    let status = match files::status_at(directory, name) {
        Ok(status) => status,
        Err(Errno::ENOENT) => return Ok(None),
        Err(errno) => return Err(refuse(Code::System).because(errno)),
    };
    if status.kind != Kind::Regular {
        return Err(refuse(Code::LogUnsafe).because(format_args!("it is {}", status.kind)));
    }
    if status.owner != process::effective_user() {
        return Err(refuse(Code::LogUnsafe).because("it belongs to somebody else"));
    }
    let fail = |errno| refuse(Code::System).because(errno);
    let file = files::open_log_at(directory, name).map_err(fail)?;
    let identity = files::status(&file).map_err(fail)?.identity;
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
