//! The look before anything is created: do the places exist, and is there room?

use crate::place::Site;
use crate::plan::{Beginning, Plan};
use crate::refusal::{Code, Refusal};
use weir_common::sys::files::{Kind, Space};

/// The places of an attempt that may start.
pub(super) struct Admitted {
    pub(super) log: Site,
    pub(super) receipt: Option<Site>,
}

/// Admits an attempt for which there is room: what is left of the quota, and the space
/// that must stay free. Changes nothing.
pub(super) fn admit(plan: &Plan) -> Result<Admitted, Refusal> {
    let log = plan.place.look()?;
    let receipt = plan.receipt.as_ref().map(|receipt| receipt.place.look()).transpose()?;
    let log_bytes = match (plan.beginning, log.status_of(plan.log.as_os_str())) {
        (Beginning::Replay, Some(status)) if status.kind == Kind::Regular => status.bytes,
        // A fresh start needs its whole quota while the old log may still be read.
        (Beginning::Replay | Beginning::Fresh, _) => 0,
    };
    let needed = plan.min_free_bytes + plan.remaining_bytes(log_bytes);
    match log.space()? {
        Space::Unlimited => {}
        Space::Bytes(free) if free >= needed => {}
        Space::Bytes(free) => {
            let refusal = Refusal::new(Code::CapacityUnavailable, "not enough space for log");
            let reason = format!(
                "{free} bytes are free, {needed} needed ({} for the log, {} to stay free)",
                needed - plan.min_free_bytes,
                plan.min_free_bytes
            );
            let hint = "free some space, or lower --quota or --min-free";
            return Err(refusal.at(plan.log_path()).because(reason).hint(hint));
        }
    }
    Ok(Admitted { log, receipt })
}
