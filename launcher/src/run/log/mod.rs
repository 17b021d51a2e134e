//! The log: opened once, by one owner, and still the same file at the end.

mod inherited;
mod named;
mod reservation;

pub(super) use named::{open, own};

use super::Captured;
use crate::place::Fate;
use crate::plan::LogPlan;
use crate::refusal::{Code, Refusal};
use reservation::Room;
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_common::sys::files::{self, Identity, Kind, Status};
use weir_common::{Errno, LogName};

/// A log that this start alone may write, held by its lock.
pub(super) struct Log<'d> {
    file: OwnedFd,
    captured: Captured<'d>,
    bond: Bond<'d>,
    start: Status,
    room: Cell<Room>,
}

/// What makes the log this start's.
enum Bond<'d> {
    /// Its name, which leads to it, and the lock of the file itself.
    Name { name: &'d LogName, fate: Cell<Fate> },
    /// The caller has opened it. The lock is a description of its own, since the
    /// caller's may live on; `None` for what is no regular file.
    Inherited { lock: Option<OwnedFd> },
}

impl<'d> Log<'d> {
    fn new(file: OwnedFd, captured: Captured<'d>, bond: Bond<'d>, start: Status) -> Log<'d> {
        Log { file, captured, bond, start, room: Cell::new(Room::Unreserved) }
    }

    /// Opens the log or creates it, takes its lock, and makes sure of it. `given` is the
    /// caller's own descriptor of it.
    pub(super) fn claim(
        captured: Captured<'d>,
        given: Option<OwnedFd>,
    ) -> Result<Log<'d>, Refusal> {
        match &captured.plan.log {
            LogPlan::Named(log) => named::claim(captured, &log.name, given),
            LogPlan::Inherited { .. } => inherited::claim(captured, given),
        }
    }

    /// Refuses a log that is longer than the quota.
    pub(super) fn must_fit(&self) -> Result<(), Refusal> {
        let plan = self.captured.plan;
        let (bytes, quota) = (self.start_bytes(), plan.quota.bytes());
        if bytes <= quota {
            return Ok(());
        }
        let refusal = Refusal::new(Code::LogOverQuota, "cannot continue log").at(plan.log_path());
        let refusal =
            refusal.because(format!("it has {bytes} bytes already, the quota is {quota}"));
        Err(match self.bond {
            Bond::Name { .. } => refusal.hint("choose a larger --quota, another log, or --fresh"),
            Bond::Inherited { .. } => refusal,
        })
    }

    pub(super) fn captured(&self) -> Captured<'d> {
        self.captured
    }

    pub(super) fn start_bytes(&self) -> u64 {
        match self.start.kind {
            Kind::Regular => self.start.bytes,
            _ => 0,
        }
    }

    pub(super) fn identity(&self) -> Identity {
        self.start.identity
    }

    /// Whether this start has made it, and nobody has written to it.
    pub(super) fn is_new(&self) -> bool {
        matches!(&self.bond, Bond::Name { fate, .. } if fate.get() == Fate::Undo)
    }

    /// Every descriptor that it needs.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let lock = match &self.bond {
            Bond::Name { .. } => None,
            Bond::Inherited { lock } => lock.as_ref(),
        };
        [&self.file].into_iter().chain(lock).map(AsFd::as_fd)
    }

    /// From here on it stays, whatever happens.
    pub(super) fn keep(&self) {
        if let Bond::Name { fate, .. } = &self.bond {
            fate.set(Fate::Keep);
        }
    }

    /// Puts the log's content on disk.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        files::sync_data(&self.file)
    }

    /// Whether it is still there under its name, and has the length that it must have
    /// after `kept_bytes` more.
    pub(super) fn is_intact(&self, kept_bytes: u64) -> Result<bool, Errno> {
        let now = match self.bond {
            Bond::Name { name, .. } => files::status_at(self.captured.directory, name.as_os_str())?,
            // Whatever its name is, it must have one.
            Bond::Inherited { .. } => files::status(&self.file)?,
        };
        let same = now.identity == self.start.identity && now.kind == Kind::Regular;
        Ok(same && now.links > 0 && now.bytes == self.start.bytes + kept_bytes)
    }
}

impl AsFd for Log<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        // For a refusal. An end has done it already.
        let _ = self.give_back();
        let Bond::Name { name, fate } = &self.bond else { return };
        let (directory, name) = (self.captured.directory, name.as_os_str());
        let look = || files::status_at(directory, name);
        // Twice: what cannot be looked at could not be removed.
        let still_ours =
            || look().or_else(|_| look()).is_ok_and(|named| named.identity == self.identity());
        // The lock is still held, so no other start has taken the log over.
        if fate.get() == Fate::Undo && still_ours() {
            let _ = files::unlink_at(directory, name);
        }
    }
}
