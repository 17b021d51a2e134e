//! A log that weir opens by its name.

use super::{Bond, Log};
use crate::place::Fate;
use crate::plan::CapturePlan;
use crate::refusal::{Code, Refusal, creation_code};
use crate::run::Captured;
use std::cell::Cell;
use std::os::fd::OwnedFd;
use weir_common::sys::files::{self, Kind, Lock, Status};
use weir_common::{Errno, LogName};

pub(super) fn claim<'d>(
    captured: Captured<'d>,
    name: &'d LogName,
    given: Option<OwnedFd>,
) -> Result<Log<'d>, Refusal> {
    if let Some(given) = given {
        must_be_log(captured, name, given)?;
    }
    let (file, fate) = open(captured, name)?;
    let start = own(captured, name, &file).inspect_err(|refusal| {
        // Busy means that another start has taken over what this one has made.
        if fate == Fate::Undo && refusal.code() != Code::LogBusy {
            let _ = files::unlink_at(captured.directory, name.as_os_str());
        }
    })?;
    // Between its creation and its lock, another start may have come and gone with it.
    let fate = if start.bytes == 0 { fate } else { Fate::Keep };
    Ok(Log::new(file, captured, Bond::Name { name, fate: Cell::new(fate) }, start))
}

fn refuse(plan: &CapturePlan, code: Code) -> Refusal {
    Refusal::new(code, "cannot open log").at(plan.log_path())
}

/// Creates the log, or opens the one that is there.
pub(in crate::run) fn open(
    captured: Captured<'_>,
    name: &LogName,
) -> Result<(OwnedFd, Fate), Refusal> {
    let (Captured { plan, directory }, name) = (captured, name.as_os_str());
    match files::create_log_at(directory, name) {
        Ok(file) => return Ok((file, Fate::Undo)),
        Err(Errno::EEXIST) => {}
        Err(errno) => {
            return Err(refuse(plan, creation_code(errno, Code::System)).because(errno));
        }
    }
    // Looked at before it is opened: opening a device can do things.
    match files::status_at(directory, name) {
        Ok(status) => check(plan, status)?,
        Err(Errno::ENOENT) => return Err(busy(plan)),
        Err(errno) => return Err(refuse(plan, Code::System).because(errno)),
    }
    match files::open_log_at(directory, name) {
        Ok(file) => Ok((file, Fate::Keep)),
        // Somebody's lease on it; or a fresh start has just retired it.
        Err(Errno::EAGAIN | Errno::ENOENT) => Err(busy(plan)),
        // What was put in its place since it was looked at.
        Err(errno @ (Errno::ELOOP | Errno::ENXIO | Errno::EISDIR | Errno::ENODEV)) => {
            Err(refuse(plan, Code::LogUnsafe).because(errno))
        }
        Err(errno) => Err(refuse(plan, Code::System).because(errno)),
    }
}

/// Refuses a descriptor of the caller's that is not the log, open for appending.
///
/// It is not used any further: the lock and every write go through a description that
/// nobody else has, or two weirs with one description would both own it.
fn must_be_log(captured: Captured<'_>, name: &LogName, given: OwnedFd) -> Result<(), Refusal> {
    let Captured { plan, directory } = captured;
    let what = "cannot use the descriptor of --log-fd as log";
    let refuse = |code| Refusal::new(code, what).at(plan.log_path());
    let fail = |errno| refuse(Code::System).because(errno);
    let opened = files::opened(&given).map_err(fail)?;
    if !opened.writable {
        return Err(refuse(Code::LogUnsafe).because("it is not open for writing"));
    }
    if !opened.append {
        return Err(refuse(Code::LogUnsafe).because("it is not in append mode"));
    }
    let given = files::status(&given).map_err(fail)?;
    match files::status_at(directory, name.as_os_str()) {
        Ok(named) if named.identity == given.identity => Ok(()),
        Ok(_) | Err(Errno::ENOENT) => {
            Err(refuse(Code::LogUnsafe).because("it leads to another file"))
        }
        Err(errno) => Err(fail(errno)),
    }
}

/// Takes the lock, and then checks that the name leads to this very file: before the
/// lock, another start could have removed it.
pub(in crate::run) fn own(
    captured: Captured<'_>,
    name: &LogName,
    file: &OwnedFd,
) -> Result<Status, Refusal> {
    let Captured { plan, directory } = captured;
    let fail = |errno| refuse(plan, Code::System).because(errno);
    match files::lock(file) {
        Ok(Lock::Taken) => {}
        Ok(Lock::Busy) => return Err(busy(plan)),
        Err(errno) => {
            let refusal = Refusal::new(Code::System, "cannot lock log");
            return Err(refusal.at(plan.log_path()).because(errno));
        }
    }
    let status = files::status(file).map_err(fail)?;
    check(plan, status)?;
    match files::status_at(directory, name.as_os_str()) {
        Ok(named) if named.identity == status.identity => Ok(status),
        Ok(_) | Err(Errno::ENOENT) => Err(busy(plan)),
        Err(errno) => Err(fail(errno)),
    }
}

fn busy(plan: &CapturePlan) -> Refusal {
    let refusal = refuse(plan, Code::LogBusy).because("another process has it");
    refusal
        .hint("a weir that runs, or drains what a background process still writes, holds its log")
}

/// Refuses everything but a regular file of ours with one name.
fn check(plan: &CapturePlan, status: Status) -> Result<(), Refusal> {
    let refusal = || refuse(plan, Code::LogUnsafe);
    status.if_ours(Kind::Regular).map_err(|strange| refusal().because(strange))?;
    match status.links {
        1 => Ok(()),
        0 => Err(busy(plan)),
        links => Err(refusal().because(format_args!("it has {links} names (hard links)"))),
    }
}
