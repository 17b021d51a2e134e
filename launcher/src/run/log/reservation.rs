//! `--reserve`: room for the whole quota, allocated before the job starts.

use super::Log;
use crate::plan::Allocation;
use crate::refusal::{Code, Refusal};
use weir_common::Errno;
use weir_common::sys::{allocation, files};

/// Where the room for the rest of the quota is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Wherever the file system finds some when it is written.
    Unreserved,
    /// Behind the end of the log, where nobody else can take it.
    Reserved,
}

impl Log<'_> {
    /// Allocates what is left of the quota, if that is asked for.
    pub(in crate::run) fn reserve(&self) -> Result<(), Refusal> {
        match self.captured.plan.allocation() {
            Allocation::Ahead => self.allocate(),
            Allocation::AsWritten => Ok(()),
        }
    }

    /// Allocates what is left of the quota.
    pub(in crate::run) fn allocate(&self) -> Result<(), Refusal> {
        let plan = self.captured.plan;
        // Even what fails may have allocated some of it.
        self.room.set(Room::Reserved);
        let room_bytes = plan.room_bytes(self.start_bytes());
        allocation::allocate(&self.file, self.start_bytes(), room_bytes).map_err(|errno| {
            let (code, hint) = match errno {
                Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => {
                    (Code::CapacityUnavailable, "free some space, or lower --quota")
                }
                // What file systems and filters answer that do not have or allow it.
                Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EPERM => (
                    Code::CapacityUnavailable,
                    "not every file system can allocate ahead; without --reserve it need not",
                ),
                _ => (Code::System, "without --reserve nothing is allocated ahead"),
            };
            let what = format!("cannot reserve {room_bytes} bytes for log");
            Refusal::new(code, what).at(plan.log_path()).because(errno).hint(hint)
        })
    }

    /// Gives back what the job did not need. Before the log is proven to be intact: this
    /// must be a part of what is proven.
    pub(in crate::run) fn give_back(&self) -> Result<(), Errno> {
        match self.room.replace(Room::Unreserved) {
            Room::Unreserved => Ok(()),
            // Whatever its length is by now: what somebody has added is not ours to cut.
            Room::Reserved => allocation::give_back(&self.file, files::status(&self.file)?.bytes),
        }
    }
}
