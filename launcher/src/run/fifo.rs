//! The FIFO between the job and the drainer, there until the records are published.

use crate::place::Directory;
use crate::plan::Plan;
use crate::refusal::{Code, Refusal, creation_code};
use std::ffi::OsString;
use weir_common::Errno;
use weir_common::sys::fifo::{self, Ends};
use weir_common::sys::files::{self, Identity, Kind};
use weir_common::sys::process;

/// The FIFO's name, removed when this is dropped.
pub(super) struct Fifo<'d> {
    directory: &'d Directory,
    name: OsString,
    /// Which file it is, once that is known.
    identity: Option<Identity>,
}

impl<'d> Fifo<'d> {
    /// Makes the FIFO and opens both ends, the reader first. The caller holds the
    /// log's lock, so a FIFO that is in the way is a killed start's.
    pub(super) fn create(
        plan: &Plan,
        directory: &'d Directory,
    ) -> Result<(Fifo<'d>, Ends), Refusal> {
        let name = plan.log.fifo();
        let path = directory.path_of(&name);
        let made = match fifo::create_at(directory, &name) {
            Err(Errno::EEXIST) => {
                remove_leftover(directory, &name)?;
                fifo::create_at(directory, &name)
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
        // From here on a refusal removes it.
        let mut fifo = Fifo { directory, name, identity: None };
        let ends = fifo::open_at(directory, &fifo.name).map_err(|errno| {
            Refusal::new(Code::FifoUnsupported, "cannot open FIFO").at(&path).because(errno)
        })?;
        fifo.identity = Some(ends.identity);
        Ok((fifo, ends))
    }

    /// Removes it.
    pub(super) fn remove(self) {}
}

impl Drop for Fifo<'_> {
    fn drop(&mut self) {
        let named = files::status_at(self.directory, &self.name).map(|status| status.identity);
        // Whatever took its place meanwhile is not ours.
        if self.identity.is_none() || named.ok() == self.identity {
            let _ = files::unlink_at(self.directory, &self.name);
        }
    }
}

fn remove_leftover(directory: &Directory, name: &OsString) -> Result<(), Refusal> {
    let refuse = || {
        let refusal = Refusal::new(Code::FifoBlocked, "cannot create FIFO");
        refusal.at(directory.path_of(name))
    };
    let status = files::status_at(directory, name).map_err(|errno| refuse().because(errno))?;
    if status.kind != Kind::Fifo {
        let reason = format!("{} has its name", status.kind);
        return Err(refuse().because(reason).hint("remove it, if nothing needs it"));
    }
    if status.owner != process::effective_user() {
        return Err(refuse().because("somebody else's FIFO has its name"));
    }
    files::unlink_at(directory, name).map_err(|errno| refuse().because(errno))
}
