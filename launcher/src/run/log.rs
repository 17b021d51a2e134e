//! The log: opened once, by one owner, and still the same file at the end.

use crate::place::{Directory, Fate};
use crate::plan::Plan;
use crate::refusal::{Code, Refusal, creation_code};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_common::sys::files::{self, Identity, Kind, Lock, Status};
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

impl<'d> Log<'d> {
    /// Opens the log or creates it, takes its lock, and makes sure of it. `given` is the
    /// caller's own descriptor of it.
    pub(super) fn claim(
        plan: &'d Plan,
        directory: &'d Directory,
        given: Option<OwnedFd>,
    ) -> Result<Log<'d>, Refusal> {
        if let Some(given) = given {
            must_be_log(plan, directory, given)?;
        }
        let (file, fate) = open(plan, directory)?;
        let status = own(plan, directory, &file).inspect_err(|refusal| {
            // Busy means that another start has taken over what this one has made.
            if fate == Fate::Undo && refusal.code() != Code::LogBusy {
                let _ = files::unlink_at(directory, plan.log.as_os_str());
            }
        })?;
        let (identity, start_bytes) = (status.identity, status.bytes);
        let (name, fate) = (&plan.log, Cell::new(fate));
        Ok(Log { file, directory, name, identity, start_bytes, fate })
    }

    /// Refuses a log that is longer than the quota.
    pub(super) fn must_fit(&self, plan: &Plan) -> Result<(), Refusal> {
        let (bytes, quota) = (self.start_bytes, plan.quota.bytes());
        if bytes <= quota {
            return Ok(());
        }
        let refusal = Refusal::new(Code::LogOverQuota, "cannot continue log").at(plan.log_path());
        let reason = format!("it has {bytes} bytes already, the quota is {quota}");
        Err(refusal.because(reason).hint("choose a larger --quota, another log, or --fresh"))
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
        if self.fate.get() == Fate::Undo && still_ours() {
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
fn must_be_log(plan: &Plan, directory: &Directory, given: OwnedFd) -> Result<(), Refusal> {
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
    match files::status_at(directory, plan.log.as_os_str()) {
        Ok(named) if named.identity == given.identity => Ok(()),
        Ok(_) | Err(Errno::ENOENT) => {
            Err(refuse(Code::LogUnsafe).because("it leads to another file"))
        }
        Err(errno) => Err(fail(errno)),
    }
}

/// Takes the lock, and then checks that the name leads to this very file: before the
/// lock, another start could have removed it.
pub(super) fn own(plan: &Plan, directory: &Directory, file: &OwnedFd) -> Result<Status, Refusal> {
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
    match files::status_at(directory, plan.log.as_os_str()) {
        Ok(named) if named.identity == status.identity => Ok(status),
        Ok(_) | Err(Errno::ENOENT) => Err(busy(plan)),
        Err(errno) => Err(fail(errno)),
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
    status.if_ours(Kind::Regular).map_err(|strange| refusal().because(strange))?;
    match status.links {
        1 => Ok(()),
        0 => Err(busy(plan)),
        links => Err(refusal().because(format_args!("it has {links} names (hard links)"))),
    }
}
