//! The FIFO between the job and the drainer, there until the records are published.

use super::Captured;
use crate::place::Directory;
use crate::plan::Reopening;
use crate::refusal::{Code, Refusal, creation_code};
use std::ffi::OsStr;
use weir_common::Errno;
use weir_common::sys::fifo::{self, Ends};
use weir_common::sys::files::{self, Identity, Kind, Status};

/// The FIFO's name, removed when this is dropped.
pub(super) struct Fifo<'d> {
    directory: &'d Directory,
    name: &'d OsStr,
    identity: Identity,
}

impl<'d> Fifo<'d> {
    /// Makes the FIFO and opens both ends, the reader first. The caller holds the
    /// log's lock, so a FIFO that is in the way is a killed start's.
    pub(super) fn create(captured: Captured<'d>) -> Result<(Fifo<'d>, Ends), Refusal> {
        let Captured { plan, directory } = captured;
        let name = plan.fifo.as_os_str();
        let path = directory.path_of(name);
        let made = match fifo::create_at(directory, name) {
            Err(Errno::EEXIST) => {
                remove_leftover(captured)?;
                fifo::create_at(directory, name)
            }
            other => other,
        };
        made.map_err(|errno| {
            let code = match errno {
                Errno::EEXIST => Code::FifoBlocked,
                // What file systems and filters answer that do not have or allow it.
                Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL => {
                    Code::FifoUnsupported
                }
                errno => creation_code(errno, Code::System),
            };
            Refusal::new(code, "cannot create FIFO").at(&path).because(errno)
        })?;
        let stale = || Refusal::new(Code::FifoBlocked, "cannot open FIFO").at(&path);
        let look = || files::ours_at(directory, name, Kind::Fifo);
        let identity = match look().or_else(|_| look()) {
            Ok(Some(made)) => made.identity,
            Ok(None) => return Err(stale().because("somebody has removed it")),
            Err(strange) => return Err(stale().because(strange)),
        };
        // From here on a refusal removes it.
        let fifo = Fifo { directory, name, identity };
        let ends = fifo::open_at(directory, name, identity).map_err(|errno| {
            let code = match errno {
                // It says something about FIFOs here, or about this one.
                Errno::EPERM
                | Errno::EACCES
                | Errno::EOPNOTSUPP
                | Errno::ENOSYS
                | Errno::EINVAL
                | Errno::ENXIO
                | Errno::ESTALE => Code::FifoUnsupported,
                _ => Code::System,
            };
            Refusal::new(code, "cannot open FIFO").at(&path).because(errno)
        })?;
        if plan.reopening == Reopening::Anybody {
            fifo::let_others_reopen(&ends.reader).map_err(|errno| {
                let refusal = Refusal::new(Code::System, "cannot make FIFO reopenable");
                refusal.at(&path).because(errno)
            })?;
        }
        Ok((fifo, ends))
    }
}

impl Drop for Fifo<'_> {
    fn drop(&mut self) {
        let look = || files::status_at(self.directory, self.name);
        // Whatever took its place meanwhile is not ours, also if it has got its inode.
        let is_ours = |named: Status| named.identity == self.identity && named.kind == Kind::Fifo;
        if look().or_else(|_| look()).is_ok_and(is_ours) {
            let _ = files::unlink_at(self.directory, self.name);
        }
    }
}

/// Refuses a name that is taken by anything but a FIFO of ours.
pub(super) fn must_be_free_or_ours(captured: Captured<'_>) -> Result<(), Refusal> {
    let Captured { plan, directory } = captured;
    let name = plan.fifo.as_os_str();
    match files::ours_at(directory, name, Kind::Fifo) {
        Ok(_) => Ok(()),
        Err(strange) => {
            let refusal = Refusal::new(Code::FifoBlocked, "cannot create FIFO");
            let reason = format!("something has its name, and {strange}");
            let refusal = refusal.at(directory.path_of(name)).because(reason);
            Err(refusal.hint("remove it, if nothing needs it"))
        }
    }
}

fn remove_leftover(captured: Captured<'_>) -> Result<(), Refusal> {
    must_be_free_or_ours(captured)?;
    let Captured { plan, directory } = captured;
    let name = plan.fifo.as_os_str();
    match files::unlink_at(directory, name) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => {
            let refusal = Refusal::new(Code::FifoBlocked, "cannot remove old FIFO");
            Err(refusal.at(directory.path_of(name)).because(errno))
        }
    }
}
