//! The look before anything is created: do the places exist, and is there room?

use crate::place::Site;
use crate::plan::{Beginning, CapturePlan, Insistence, LogPlan, NamedLog, Plan};
use crate::refusal::{Code, Refusal};
use crate::voice::Voice;
use std::fmt;
use weir_common::sys::file_system::Space;
use weir_common::sys::files::Kind;

/// The places of an attempt that may start.
pub(super) struct Admitted<'p> {
    pub(super) capture: Option<Site<'p>>,
    pub(super) receipt: Option<Site<'p>>,
}

/// Admits an attempt for which there is room: what is left of the quota, and the space
/// that must stay free. Changes nothing.
pub(super) fn admit<'p>(plan: &'p Plan, voice: &mut Voice) -> Result<Admitted<'p>, Refusal> {
    let capture = plan.capture.as_ref().map(|capture| capture.place.look()).transpose()?;
    let receipt = match plan.receipt.as_ref().map(|receipt| receipt.place.look()) {
        Some(Err(refusal)) if plan.insistence == Insistence::Wished => {
            voice.failure(&format!("no receipt: {}", refusal.message()));
            None
        }
        looked => looked.transpose()?,
    };
    if let (Some(capture), Some(site)) = (&plan.capture, &capture) {
        // A log that the caller has opened already, it has made room for as well.
        if let LogPlan::Named(log) = &capture.log {
            must_have_room(capture, log, site)?;
        }
    }
    Ok(Admitted { capture, receipt })
}

/// The room that there is for an attempt, and the room that it needs.
pub(super) struct Room {
    space: Space,
    log_bytes: u64,
    min_free_bytes: u64,
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.space {
            Space::Bytes(free) => write!(f, "{free} bytes are free")?,
            Space::Unlimited => f.write_str("no bound")?,
        }
        let (log, min_free) = (self.log_bytes, self.min_free_bytes);
        write!(f, ", {} needed ({log} for the log, {min_free} to stay free)", log + min_free)
    }
}

/// Refuses a place without room for what is left of the quota and what must stay free.
pub(super) fn must_have_room(
    capture: &CapturePlan,
    log: &NamedLog,
    site: &Site<'_>,
) -> Result<Room, Refusal> {
    let old_bytes = match (log.beginning, site.status_of(log.name.as_os_str())) {
        (Beginning::Replay, Some(status)) if status.kind == Kind::Regular => status.bytes,
        // A fresh start needs its whole quota while the old log may still be read.
        (Beginning::Replay | Beginning::Fresh, _) => 0,
    };
    let (log_bytes, min_free_bytes) = (capture.room_bytes(old_bytes), log.min_free_bytes);
    let room = Room { space: site.space()?, log_bytes, min_free_bytes };
    match room.space {
        Space::Bytes(free) if free < log_bytes + min_free_bytes => {
            let refusal = Refusal::new(Code::CapacityUnavailable, "not enough space for log");
            let hint = "free some space, or lower --quota or --min-free";
            Err(refusal.at(capture.log_path()).because(room).hint(hint))
        }
        Space::Bytes(_) | Space::Unlimited => Ok(room),
    }
}
