//! Finding out, before the job starts, in which way a record can get its name here.

use super::{Draft, DraftName, Links, ReserveError, Way};
use crate::sys::errno::Errno;
use crate::sys::file_system::FileSystem;
use crate::sys::files::{self, Kind, Lock, Strange};
use crate::sys::links::{self, Unnamed};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

/// A draft without a name, if this directory and this process can have and link one.
pub(super) fn unnamed<'d>(
    (directory, system): (BorrowedFd<'d>, FileSystem),
    draft_name: &DraftName,
    bytes_max: usize,
    links_allowed: Links,
) -> Option<Draft<'d>> {
    let file = links::create_unnamed(directory).ok()?;
    let ways = [Unnamed::Descriptor, Unnamed::Proc];
    let way = ways.into_iter().find(|way| links::can_tell_unnamed(&file, *way, directory))?;
    if !system.links_unnamed() {
        // Seen to be believed, with another one: a file that has lost its first name
        // cannot get a second.
        let other = links::create_unnamed(directory).ok()?;
        links::link_unnamed(&other, way, directory, &draft_name.trial()).ok()?;
        files::unlink_at(directory, &draft_name.trial()).ok()?;
    }
    let (draft_name, way) = (draft_name.clone(), Way::Unnamed(way));
    let links = links_allowed;
    Some(Draft { directory, file, spare: None, name: None, draft_name, bytes_max, links, way })
}

/// A draft with a name, and with a way to the final one that was tried out.
pub(super) fn named<'d>(
    directory: BorrowedFd<'d>,
    draft_name: &DraftName,
    bytes_max: usize,
    links_allowed: Links,
) -> Result<Draft<'d>, ReserveError> {
    let (name, trial) = (draft_name.0.as_os_str(), &draft_name.trial());
    remove_leftover(directory, trial, bytes_max)?;
    remove_leftover(directory, name, bytes_max)?;
    let file = links::create_named(directory, name).map_err(ReserveError::System)?;
    // From here on dropping it removes the name.
    let (draft_name, own_name) = (draft_name.clone(), Some(name.to_owned()));
    let mut draft = Draft {
        directory,
        file,
        spare: None,
        name: own_name,
        draft_name,
        bytes_max,
        links: links_allowed,
        way: Way::Link,
    };
    // Locked before anybody else could take it for a leftover, or else theirs.
    match files::lock(&draft.file) {
        Ok(Lock::Taken) => {}
        Ok(Lock::Busy) => return Err(ReserveError::Busy),
        Err(errno) => return Err(ReserveError::System(errno)),
    }
    draft.must_have_name(name).map_err(|_| ReserveError::Busy)?;
    draft.try_ways(trial)?;
    Ok(draft)
}

/// Removes what a killed start has left under a draft's name, and nothing else.
pub(super) fn remove_leftover(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    bytes_max: usize,
) -> Result<(), ReserveError> {
    let Some(status) =
        files::ours_at(directory, name, Kind::Regular).map_err(ReserveError::Blocked)?
    else {
        return Ok(());
    };
    if status.bytes > bytes_max as u64 {
        return Err(ReserveError::Blocked(Strange::Kind(Kind::Regular)));
    }
    // Locked until it is removed, so that it cannot come to life meanwhile.
    let _locked = match files::open_log_at(directory, name) {
        Ok(file) => match files::lock(&file) {
            Ok(Lock::Taken) => Some(file),
            Ok(Lock::Busy) => return Err(ReserveError::Busy),
            Err(errno) => return Err(ReserveError::System(errno)),
        },
        // Its owner may not even write to it: no draft that is at work is like that.
        Err(Errno::EACCES) => None,
        Err(errno) => return Err(ReserveError::System(errno)),
    };
    // It may have become a record meanwhile, and another draft have its name.
    match files::status_at(directory, name) {
        Ok(named) if named.identity == status.identity => {
            files::unlink_at(directory, name).map_err(ReserveError::System)
        }
        _ => Err(ReserveError::Busy),
    }
}

impl Draft<'_> {
    /// Links (where that is allowed), or else moves, the draft to a name for trying and
    /// back.
    fn try_ways(&mut self, trial: &OsStr) -> Result<(), ReserveError> {
        let Some(name) = self.name.clone() else { return Ok(()) };
        let may_link = self.links == Links::TwoForAMoment;
        if may_link && links::link_named(self.directory, &name, trial).is_ok() {
            self.way = Way::Link;
            return files::unlink_at(self.directory, trial).map_err(ReserveError::System);
        }
        self.way = Way::Rename;
        let there = links::rename_without_replacing(self.directory, &name, trial);
        there.map_err(ReserveError::Unsupported)?;
        // Should it not come back, dropping it removes it from where it is.
        self.name = Some(trial.to_owned());
        let back = links::rename_without_replacing(self.directory, trial, &name);
        back.map_err(ReserveError::Unsupported)?;
        self.name = Some(name);
        Ok(())
    }
}
