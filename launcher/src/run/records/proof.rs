//! What is proven of one start's output, and what its records tell.

use crate::plan::{CapturePlan, FactForm, Plan, ReceiptForm, Sync};
use crate::run::Attempt;
use crate::run::log::Log;
use crate::run::watch::StreamEnd;
use crate::voice::Voice;
use weir_common::{Capture, Counts, Errno, Fact, Receipt, ReceiptV1};

/// Why nothing can be proven about a log.
pub(super) struct Doubt {
    pub(super) errno: Errno,
    pub(super) reason: String,
}

impl Doubt {
    pub(super) fn new(errno: Errno, reason: impl Into<String>) -> Doubt {
        Doubt { errno, reason: reason.into() }
    }
}

/// Whether the quota cut anything, if that can be proven: the end of the stream was
/// seen, every byte that was to be kept was, and the log is what weir opened and as
/// long as it must be.
pub(super) fn prove(plan: &Plan, log: &Log<'_>, attempt: &Attempt) -> Result<bool, Doubt> {
    let tally = attempt.tally;
    match attempt.stream {
        StreamEnd::Reached { .. } => {}
        StreamEnd::Held => {
            let reason =
                "a signal ended the wait for a background process that still held the output";
            return Err(Doubt::new(Errno::EINTR, reason));
        }
        StreamEnd::Broken(errno) => {
            return Err(Doubt::new(
                errno,
                format!("the output could not be read to its end: {errno}"),
            ));
        }
    }
    if let Some(errno) = tally.failure {
        let reason = format!("a write failed after {} bytes: {errno}", tally.kept_bytes);
        return Err(Doubt::new(errno, reason));
    }
    if plan.sync == Sync::Full {
        log.sync()
            .map_err(|errno| Doubt::new(errno, format!("it could not be put on disk: {errno}")))?;
    }
    match log.is_intact(tally.kept_bytes) {
        Ok(true) => Ok(tally.quota_reached()),
        Ok(false) => {
            let reason = "it was replaced, or its length changed, behind weir's back";
            Err(Doubt::new(Errno::ESTALE, reason))
        }
        Err(errno) => {
            Err(Doubt::new(errno, format!("its name does not lead to it any more: {errno}")))
        }
    }
}

/// The fact, in the version that is asked for.
pub(super) fn fact(plan: &Plan, log: &Log<'_>, attempt: &Attempt, quota_reached: bool) -> Vec<u8> {
    let observed_at_ms = match attempt.stream {
        StreamEnd::Reached { at_ms } => at_ms,
        StreamEnd::Held | StreamEnd::Broken(_) => attempt.finished_at_ms,
    };
    let capture = log.captured().plan;
    let fact = Fact {
        run_id: plan.run_id.clone(),
        attempt_id: plan.attempt_id.clone(),
        log_artifact_id: capture.artifact_id.clone(),
        quota: capture.quota,
        quota_reached,
        observed_at_ms,
        counts: match capture.form {
            FactForm::V1 => None,
            FactForm::V2 => Some(counts(Some(log), attempt)),
        },
    };
    fact.encode()
}

/// The receipt, in the version that is asked for.
pub(super) fn receipt(
    plan: &Plan,
    form: &ReceiptForm,
    log: Option<&Log<'_>>,
    attempt: &Attempt,
    capture: Capture,
) -> Vec<u8> {
    let (run_id, attempt_id) = (plan.run_id.clone(), plan.attempt_id.clone());
    // The wall clock may have been set back meanwhile.
    let finished_after = |started_at_ms| attempt.finished_at_ms.max(started_at_ms);
    match form {
        ReceiptForm::V1 { callback_sequence, token, started_at_ms } => ReceiptV1 {
            run_id,
            attempt_id,
            callback_sequence: *callback_sequence,
            token: token.clone(),
            started_at_ms: *started_at_ms,
            finished_at_ms: finished_after(*started_at_ms),
            exit_code: attempt.leave.code(),
        }
        .encode(),
        ReceiptForm::V2 { log_artifact_id } => Receipt {
            run_id,
            attempt_id,
            log_artifact_id: log_artifact_id.clone(),
            started_at_ms: attempt.started_at_ms,
            finished_at_ms: finished_after(attempt.started_at_ms),
            job: attempt.job,
            capture,
            counts: counts(log, attempt),
            usage: attempt.usage,
        }
        .encode(),
    }
}

fn counts(log: Option<&Log<'_>>, attempt: &Attempt) -> Counts {
    Counts {
        start_bytes: log.map_or(0, Log::start_bytes),
        kept_bytes: attempt.tally.kept_bytes,
        dropped_bytes: attempt.tally.dropped_bytes,
    }
}

/// Says what a reader of the log must know: silent when all is well.
pub(super) fn tell(
    capture: &CapturePlan,
    attempt: &Attempt,
    proven: &Result<bool, Doubt>,
    voice: &mut Voice,
) {
    let path = capture.log_path();
    match proven {
        Ok(false) => {}
        Ok(true) => voice.note(&format!(
            "log {} was cut at its quota of {} bytes: {} bytes dropped",
            path.display(),
            capture.quota.bytes(),
            attempt.tally.dropped_bytes
        )),
        Err(doubt) => {
            voice.doubt(&format!("log {} may be incomplete: {}", path.display(), doubt.reason));
        }
    }
}
