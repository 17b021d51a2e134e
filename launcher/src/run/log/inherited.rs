//! A log that the caller has opened: weir's own standard output.

use super::{Bond, Log};
use crate::refusal::{Code, Refusal};
use crate::run::Captured;
use std::os::fd::OwnedFd;
use weir_common::sys::files::{self, Kind, Lock};

/// Takes the caller's descriptor for the log. What is no regular file is written to all
/// the same, but nothing will be proven of it.
pub(super) fn claim(captured: Captured<'_>, given: Option<OwnedFd>) -> Result<Log<'_>, Refusal> {
    let refuse = |code| Refusal::new(code, "cannot use standard output as log");
    let file = given.ok_or_else(|| refuse(Code::LogUnsafe).because("it is closed"))?;
    let status = || files::status(&file).map_err(|errno| refuse(Code::System).because(errno));
    let lock = match status()?.kind {
        Kind::Regular => Some(lock(&file)?),
        _ => None,
    };
    // Under the lock: before, another start could have written to it.
    let start = status()?;
    if start.kind == Kind::Regular && start.bytes > 0 {
        let opened = files::opened(&file).map_err(|errno| refuse(Code::System).because(errno))?;
        if !opened.append {
            let reason = "it is not in append mode, and what it holds would be overwritten";
            return Err(refuse(Code::LogUnsafe).because(reason));
        }
    }
    Ok(Log::new(file, captured, Bond::Inherited { lock }, start))
}

/// The lock of a description of weir's own. Where there is no `/proc` to get one by, it
/// is the caller's, and held as long as the caller holds it too.
fn lock(file: &OwnedFd) -> Result<OwnedFd, Refusal> {
    let refuse = |code| Refusal::new(code, "cannot lock standard output");
    let own = files::reopen_log(file).or_else(|_| files::duplicate(file));
    let own = own.map_err(|errno| refuse(Code::System).because(errno))?;
    match files::lock(&own) {
        Ok(Lock::Taken) => Ok(own),
        Ok(Lock::Busy) => Err(refuse(Code::LogBusy).because("another process has it")),
        Err(errno) => Err(refuse(Code::System).because(errno)),
    }
}
