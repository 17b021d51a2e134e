//! The records of one start: room first, proof later, and then their names.

mod names;
mod proof;

pub(super) use names::{Named, Names};

use super::Attempt;
use super::log::Log;
use crate::plan::Plan;
use crate::refusal::{Code, Refusal, creation_code};
use crate::voice::Voice;
use proof::{Doubt, fact, prove, receipt, tell};
use std::os::fd::BorrowedFd;
use weir_common::{
    Capture, Draft, DraftName, Durability, Errno, PublishError, Published, ReserveError,
};

/// The records of a start: their room is reserved, their content is still to come.
pub(super) struct Records<'d> {
    fact: Option<Reserved<'d>>,
    receipt: Option<Reserved<'d>>,
}

pub(super) struct Reserved<'d> {
    record: &'d Named<'d>,
    /// `None` where there is no room yet, or no way to name it; it is tried again.
    draft: Option<Draft<'d>>,
}

impl<'d> Reserved<'d> {
    pub(super) fn new(record: &'d Named<'d>) -> Result<Reserved<'d>, Refusal> {
        match reserve(record, record.bytes_max) {
            Ok(draft) => Ok(Reserved { record, draft: Some(draft) }),
            Err(why) => Err(refuse_reserving(record, why)),
        }
    }

    /// In which way it will get its name, in words.
    pub(super) fn way(&self) -> &'static str {
        self.draft.as_ref().map_or("found out at the end", Draft::way)
    }

    /// A record whose draft is to be made when it is published.
    fn later(record: &'d Named<'d>) -> Reserved<'d> {
        Reserved { record, draft: None }
    }

    /// The draft, which may have to be made still: then with no more room than is needed.
    fn draft(self, bytes: usize) -> Result<Draft<'d>, Doubt> {
        match self.draft {
            Some(draft) => Ok(draft),
            None => reserve(self.record, bytes)
                .map_err(|why| Doubt::new(why.errno(), format!("{}: {why}", self.record.which))),
        }
    }

    fn publish(self, bytes: &[u8], durability: Durability, voice: &mut Voice) -> Result<(), Doubt> {
        let record = self.record;
        let what = record.which;
        match self.draft(bytes.len())?.publish(record.name(), bytes, durability) {
            Ok(Published::Ours) => {}
            Ok(Published::AlreadyThere) => {
                let reason = format!("another {what} took its name meanwhile, and stays");
                return Err(Doubt::new(Errno::EEXIST, reason));
            }
            // It is there for all to see; that it may not survive a power cut is told.
            Err(why @ PublishError::Directory(_)) => voice.failure(&format!("{what}: {why}")),
            Err(why) => return Err(Doubt::new(why.errno(), format!("{what}: {why}"))),
        }
        voice.published(&what.to_string(), &record.path());
        Ok(())
    }
}

fn reserve<'d>(record: &'d Named<'d>, bytes: usize) -> Result<Draft<'d>, ReserveError> {
    let draft_name = DraftName(record.record.draft.clone());
    Draft::reserve(record.directory, &draft_name, bytes, record.links)
}

fn refuse_reserving(record: &Named<'_>, why: ReserveError) -> Refusal {
    let code = match &why {
        ReserveError::System(errno) => creation_code(*errno, Code::System),
        ReserveError::Blocked(_) | ReserveError::Unsupported(_) => Code::RecordsUnsupported,
        ReserveError::Busy => Code::LogBusy,
    };
    let what = format!("cannot reserve {}", record.which);
    Refusal::new(code, what).at(record.path()).because(why)
}

impl Records<'_> {
    /// Every descriptor that they need.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all().filter_map(|reserved| reserved.draft.as_ref()).flat_map(Draft::descriptors)
    }

    fn all(&self) -> impl Iterator<Item = &Reserved<'_>> {
        self.fact.iter().chain(&self.receipt)
    }

    /// Publishes what is proven: the fact first, then the receipt, which tells what
    /// became of the fact.
    #[cold]
    #[inline(never)]
    pub(super) fn publish(
        self,
        plan: &Plan,
        log: Option<&Log<'_>>,
        attempt: &Attempt,
        voice: &mut Voice,
    ) {
        let durability = plan.sync.of_records();
        let proven = log.zip(self.fact).map(|(log, reserved)| {
            let proven = prove(plan, log, attempt).and_then(|quota_reached| {
                let fact = fact(plan, log, attempt, quota_reached);
                reserved.publish(&fact, durability, voice).map(|()| quota_reached)
            });
            (log, proven)
        });
        if let Some((receipt_plan, reserved)) = plan.receipt.as_ref().zip(self.receipt) {
            let capture = match &proven {
                Some((_, Ok(true))) => Capture::Truncated,
                Some((_, Ok(false))) => Capture::Complete,
                Some((_, Err(doubt))) => Capture::Failed(Some(doubt.errno)),
                None => Capture::Failed(None),
            };
            let receipt = receipt(plan, &receipt_plan.form, log, attempt, capture);
            if let Err(doubt) = reserved.publish(&receipt, durability, voice) {
                voice.failure(&doubt.reason);
            }
        }
        if let Some((log, proven)) = proven {
            tell(log.captured().plan, attempt, &proven, voice);
        }
    }
}
