//! The log: opened once, by one owner, and still the same file at the end.

use crate::place::Directory;
use crate::plan::Plan;
use crate::refusal::{Code, Refusal, creation_code};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_common::sys::files::{self, Identity, Kind, Lock, Status};
use weir_common::sys::process;
use weir_common::{Errno, LogName};

/// A log that this start alone may write, held by its lock.
pub(super) struct Log<'d> {
    file: OwnedFd,
    directory: &'d Directory,
    name: &'d LogName,
    identity: Identity,
    start_bytes: u64,
    fate: Cell<Fate>,
}

/// What becomes of the log when this start is refused after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// This start has created it, and removes it again.
    Remove,
    /// It was there before, or the job has started.
    Keep,
}

impl<'d> Log<'d> {
    /// Opens the log or creates it, takes its lock, and makes sure of it.
    pub(super) fn claim(plan: &'d Plan, directory: &'d Directory) -> Result<Log<'d>, Refusal> {
        let (file, fate) = match plan.given_log {
            Some(number) => (take_given(plan, number)?, Fate::Keep),
            None => open(plan, directory)?,
        };
        let status = own(plan, directory, &file).inspect_err(|refusal| {
            // Busy means that another start has taken over what this one has made.
            if fate == Fate::Remove && refusal.code() != Code::LogBusy {
                let _ = files::unlink_at(directory, plan.log.as_os_str());
            }
        })?;
        let log = Log {
            file,
            directory,
            name: &plan.log,
            identity: status.identity,
            start_bytes: status.bytes,
            fate: Cell::new(fate),
        };
        if log.start_bytes > plan.quota.bytes() {
            let refusal =
                Refusal::new(Code::LogOverQuota, "cannot continue log").at(plan.log_path());
            let reason = format!(
                "it has {} bytes already, the quota is {}",
                log.start_bytes,
                plan.quota.bytes()
            );
            return Err(refusal
                .because(reason)
                .hint("choose a larger --quota, another log, or --fresh"));
        }
        Ok(log)
    }

    pub(super) fn start_bytes(&self) -> u64 {
        self.start_bytes
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// From here on it stays, whatever happens.
    pub(super) fn keep(&self) {
        self.fate.set(Fate::Keep);
    }

    /// Puts the log's content on disk.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        files::sync_data(&self.file)
    }

    /// Whether its name still leads to the file that was opened, and that file has the
    /// length that it must have after `kept_bytes` more.
    pub(super) fn is_intact(&self, kept_bytes: u64) -> Result<bool, Errno> {
        let named = files::status_at(self.directory, self.name.as_os_str())?;
        let expected = self.start_bytes + kept_bytes;
        Ok(named.identity == self.identity && named.bytes == expected)
    }

    /// Lets go of the lock, which a caller's copy of the descriptor would keep.
    pub(super) fn release(self) {
        // Closing what may be the last descriptor does the rest.
        let _ = files::unlock(&self.file);
    }
}

impl AsFd for Log<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        let name = self.name.as_os_str();
        let still_ours = || {
            files::status_at(self.directory, name)
                .is_ok_and(|named| named.identity == self.identity)
        };
        // The lock is still held, so no other start has taken the log over.
        if self.fate.get() == Fate::Remove && still_ours() {
            let _ = files::unlink_at(self.directory, name);
        }
    }
}

fn refuse(plan: &Plan, code: Code) -> Refusal {
    Refusal::new(code, "cannot open log").at(plan.log_path())
}

/// Creates the log, or opens the one that is there.
pub(super) fn open(plan: &Plan, directory: &Directory) -> Result<(OwnedFd, Fate), Refusal> {
    let name = plan.log.as_os_str();
    match files::create_log_at(directory, name) {
        Ok(file) => return Ok((file, Fate::Remove)),
        Err(Errno::EEXIST) => {}
        Err(errno) => {
            return Err(refuse(plan, creation_code(errno, Code::System)).because(errno));
        }
    }
    // Looked at before it is opened: opening a device can do things.
    let fail = |errno| refuse(plan, Code::LogUnsafe).because(errno);
    check(plan, files::status_at(directory, name).map_err(fail)?)?;
    match files::open_log_at(directory, name) {
        Ok(file) => Ok((file, Fate::Keep)),
        // Somebody's lease on it.
        Err(Errno::EAGAIN) => Err(busy(plan)),
        Err(errno) => Err(fail(errno)),
    }
}

/// The log that the caller has opened.
fn take_given(plan: &Plan, number: i32) -> Result<OwnedFd, Refusal> {
    let refusal = || {
        Refusal::new(Code::LogUnsafe, format!("cannot use descriptor {number} as log"))
            .at(plan.log_path())
    };
    let fail = |errno: Errno| refusal().because(errno);
    let file = files::take_inherited(number).map_err(fail)?;
    let opened = files::opened(&file).map_err(fail)?;
    match (opened.writable, opened.append) {
        (true, true) => Ok(file),
        (false, _) => Err(refusal().because("it is not open for writing")),
        (true, false) => Err(refusal().because("it is not in append mode")),
    }
}

/// Takes the lock, and then checks that the name leads to this very file: before the
/// lock, another start could have removed it.
pub(super) fn own(plan: &Plan, directory: &Directory, file: &OwnedFd) -> Result<Status, Refusal> {
    let fail = |errno| refuse(plan, Code::System).because(errno);
    check(plan, files::status(file).map_err(fail)?)?;
    match files::lock(file) {
        Ok(Lock::Taken) => {}
        Ok(Lock::Busy) => return Err(busy(plan)),
        Err(errno) => {
            return Err(Refusal::new(Code::System, "cannot lock log")
                .at(plan.log_path())
                .because(errno));
        }
    }
    let status = files::status(file).map_err(fail)?;
    check(plan, status)?;
    match files::status_at(directory, plan.log.as_os_str()) {
        Ok(named) if named.identity == status.identity => Ok(status),
        _ if plan.given_log.is_some() => {
            let refusal = refuse(plan, Code::LogUnsafe);
            Err(refusal.because("the descriptor of --log-fd leads to another file"))
        }
        _ => Err(busy(plan)),
    }
}

fn busy(plan: &Plan) -> Refusal {
    let refusal = refuse(plan, Code::LogBusy).because("another process has it");
    refusal
        .hint("a weir that runs, or drains what a background process still writes, holds its log")
}

/// Refuses everything but a regular file of ours with one name.
fn check(plan: &Plan, status: Status) -> Result<(), Refusal> {
    let refusal = || refuse(plan, Code::LogUnsafe);
    if status.kind != Kind::Regular {
        return Err(refusal().because(format_args!("it is {}", status.kind)));
    }
    if status.owner != process::effective_user() {
        return Err(refusal().because("it belongs to somebody else"));
    }
    match status.links {
        1 => Ok(()),
        0 => Err(busy(plan)),
        links => Err(refusal().because(format_args!("it has {links} names (hard links)"))),
    }
}
