//! The records of one start: room first, proof later, and then their names.

use super::Attempt;
use super::log::Log;
use super::watch::StreamEnd;
use crate::place::Directory;
use crate::plan::{Plan, Sync};
use crate::refusal::{Code, Refusal, creation_code};
use crate::voice::Voice;
use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use weir_common::sys::files;
use weir_common::{
    Capture, Counts, Draft, DraftName, Durability, Errno, FACT_BYTES_MAX, Fact, PublishError,
    Published, RECEIPT_BYTES_MAX, Receipt, ReserveError,
};

/// Which record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Fact,
    Receipt,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Which::Fact => "fact",
            Which::Receipt => "receipt",
        })
    }
}

/// Where one record goes.
pub(super) struct Named<'d> {
    which: Which,
    pub(super) directory: &'d Directory,
    pub(super) name: OsString,
    draft_name: OsString,
}

impl Named<'_> {
    fn path(&self) -> PathBuf {
        self.directory.path_of(&self.name)
    }

    /// Whether what has its name is such a record, for whoever wants to remove it.
    pub(super) fn must_be_one(&self) -> Result<(), String> {
        let path = Path::new(&self.name);
        let read = match self.which {
            Which::Fact => Fact::read_at(self.directory, path).map(drop),
            Which::Receipt => Receipt::read_at(self.directory, path).map(drop),
        };
        read.map_err(|why| format!("it is no {}: {}", self.which, why.reason()))
    }

    /// Every name that it needs: its own, its draft's, and the one for trying.
    fn names(&self) -> [OsString; 3] {
        let mut trial = self.draft_name.clone();
        trial.push("~");
        [self.name.clone(), self.draft_name.clone(), trial]
    }
}

/// Where this start's records go.
pub(super) struct Names<'d> {
    fact: Named<'d>,
    receipt: Option<Named<'d>>,
}

impl<'d> Names<'d> {
    /// The names of the records; refused where the receipt's would be in the way of the
    /// log's.
    pub(super) fn of(
        plan: &Plan,
        directory: &'d Directory,
        receipt_directory: Option<&'d Directory>,
    ) -> Result<Names<'d>, Refusal> {
        let (name, draft_name) = (plan.log.fact(), plan.log.fact_draft());
        let fact = Named { which: Which::Fact, directory, name, draft_name };
        let receipt = plan.receipt.as_ref().zip(receipt_directory).map(|(receipt, directory)| {
            let (name, mut draft_name) = (receipt.name.clone(), OsString::from("."));
            draft_name.push(&name);
            draft_name.push(".receipt.tmp");
            Named { which: Which::Receipt, directory, name, draft_name }
        });
        if let Some(receipt) = &receipt {
            let fail =
                |errno| Refusal::new(Code::System, "cannot look at directories").because(errno);
            let (one, other) = (directory.identity(), receipt.directory.identity());
            let taken = [plan.log.as_os_str().to_owned(), plan.log.fifo()];
            let mut taken = taken.into_iter().chain(fact.names());
            let clash = taken.any(|taken| receipt.names().contains(&taken));
            if clash && one.map_err(fail)? == other.map_err(fail)? {
                let refusal =
                    Refusal::new(Code::Usage, "cannot publish receipt").at(receipt.path());
                return Err(refusal.because("its name is the log's, or one of its records'"));
            }
        }
        Ok(Names { fact, receipt })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Named<'d>> {
        [&self.fact].into_iter().chain(&self.receipt)
    }

    /// A log whose records exist is sealed, and refused.
    pub(super) fn must_be_free(&self, plan: &Plan) -> Result<(), Refusal> {
        self.iter().try_for_each(|record| must_be_free(plan, record))
    }

    /// Makes room for the records, so that a disk that fills up meanwhile still takes
    /// them.
    pub(super) fn reserve(&self) -> Result<Records<'_>, Refusal> {
        let fact = Reserved::new(&self.fact)?;
        let receipt = self.receipt.as_ref().map(Reserved::new).transpose()?;
        Ok(Records { fact, receipt })
    }
}

/// The records of a start: their room is reserved, their content is still to come.
pub(super) struct Records<'d> {
    fact: Reserved<'d>,
    receipt: Option<Reserved<'d>>,
}

struct Reserved<'d> {
    record: &'d Named<'d>,
    draft: Draft<'d>,
}

impl<'d> Reserved<'d> {
    fn new(record: &'d Named<'d>) -> Result<Reserved<'d>, Refusal> {
        let bytes_max = match record.which {
            Which::Fact => FACT_BYTES_MAX,
            Which::Receipt => RECEIPT_BYTES_MAX,
        };
        let draft_name = DraftName(record.draft_name.clone());
        match Draft::reserve(record.directory, &draft_name, bytes_max) {
            Ok(draft) => Ok(Reserved { record, draft }),
            Err(why) => Err(refuse_reserving(record, why)),
        }
    }

    fn publish(self, bytes: &[u8], durability: Durability, voice: &mut Voice) -> Result<(), Doubt> {
        let what = self.record.which;
        match self.draft.publish(&self.record.name, bytes, durability) {
            Ok(Published::Ours) => {}
            Ok(Published::AlreadyThere) => {
                let reason = format!("another {what} took its name meanwhile, and stays");
                return Err(Doubt::new(Errno::EEXIST, reason));
            }
            // It is there for all to see; that it may not survive a power cut is told.
            Err(why @ PublishError::Directory(_)) => voice.failure(&format!("{what}: {why}")),
            Err(why) => return Err(Doubt::new(why.errno(), format!("{what}: {why}"))),
        }
        voice.published(&what.to_string(), &self.record.path());
        Ok(())
    }
}

fn must_be_free(plan: &Plan, record: &Named<'_>) -> Result<(), Refusal> {
    let refusal = || Refusal::new(Code::LogSealed, "cannot continue log").at(plan.log_path());
    let (what, path) = (record.which, record.path());
    match files::status_at(record.directory, &record.name) {
        Err(Errno::ENOENT) => Ok(()),
        Err(errno) => {
            let refusal = Refusal::new(Code::System, format!("cannot look for {what}"));
            Err(refusal.at(path).because(errno))
        }
        Ok(_) => Err(refusal().because(format_args!("its {what} {} exists", path.display())).hint(
            "an attempt is run once: use another log, --root with a new attempt id, or --fresh",
        )),
    }
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

/// Why nothing can be proven about a log.
struct Doubt {
    errno: Errno,
    reason: String,
}

impl Doubt {
    fn new(errno: Errno, reason: impl Into<String>) -> Doubt {
        Doubt { errno, reason: reason.into() }
    }
}

impl Records<'_> {
    /// Every descriptor that they need.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.fact].into_iter().chain(&self.receipt).map(|reserved| reserved.draft.as_fd())
    }

    /// Publishes what is proven: the fact first, then the receipt, which tells what
    /// became of the fact.
    pub(super) fn publish(self, plan: &Plan, log: &Log<'_>, attempt: &Attempt, voice: &mut Voice) {
        let durability = match plan.sync {
            Sync::Full | Sync::Records => Durability::Synced,
            Sync::None => Durability::Unsynced,
        };
        if durability == Durability::Synced {
            for reserved in [&self.fact].into_iter().chain(&self.receipt) {
                if let Err(errno) = reserved.record.directory.sync_parents() {
                    voice.failure(&format!(
                        "cannot put the new directory of {} on disk: {errno}",
                        reserved.record.which
                    ));
                }
            }
        }
        let proven = prove(plan, log, attempt).and_then(|quota_reached| {
            let fact = fact(plan, log, attempt, quota_reached);
            self.fact.publish(&fact.encode(), durability, voice).map(|()| quota_reached)
        });
        if let Some(reserved) = self.receipt {
            let capture = match &proven {
                Ok(true) => Capture::Truncated,
                Ok(false) => Capture::Complete,
                Err(doubt) => Capture::Failed(Some(doubt.errno)),
            };
            let receipt = receipt(plan, log, attempt, capture);
            if let Err(doubt) = reserved.publish(&receipt.encode(), durability, voice) {
                voice.failure(&doubt.reason);
            }
        }
        tell(plan, attempt, &proven, voice);
    }
}

/// Whether the quota cut anything, if that can be proven: the end of the stream was
/// seen, every byte that was to be kept was, and the log is what weir opened and as
/// long as it must be.
fn prove(plan: &Plan, log: &Log<'_>, attempt: &Attempt) -> Result<bool, Doubt> {
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

fn counts(log: &Log<'_>, attempt: &Attempt) -> Counts {
    Counts {
        start_bytes: log.start_bytes(),
        kept_bytes: attempt.tally.kept_bytes,
        dropped_bytes: attempt.tally.dropped_bytes,
    }
}

fn fact(plan: &Plan, log: &Log<'_>, attempt: &Attempt, quota_reached: bool) -> Fact {
    let observed_at_ms = match attempt.stream {
        StreamEnd::Reached { at_ms } => at_ms,
        StreamEnd::Held | StreamEnd::Broken(_) => attempt.finished_at_ms,
    };
    Fact {
        run_id: plan.run_id.clone(),
        attempt_id: plan.attempt_id.clone(),
        log_artifact_id: plan.artifact_id.clone(),
        quota: plan.quota,
        quota_reached,
        observed_at_ms,
        counts: Some(counts(log, attempt)),
    }
}

fn receipt(plan: &Plan, log: &Log<'_>, attempt: &Attempt, capture: Capture) -> Receipt {
    Receipt {
        run_id: plan.run_id.clone(),
        attempt_id: plan.attempt_id.clone(),
        log_artifact_id: plan.artifact_id.clone(),
        started_at_ms: attempt.started_at_ms,
        // The wall clock may have been set back meanwhile.
        finished_at_ms: attempt.finished_at_ms.max(attempt.started_at_ms),
        job: attempt.job,
        capture,
        counts: counts(log, attempt),
        usage: attempt.usage,
    }
}

/// Says what a reader of the log must know: silent when all is well.
fn tell(plan: &Plan, attempt: &Attempt, proven: &Result<bool, Doubt>, voice: &mut Voice) {
    let path = plan.log_path();
    match proven {
        Ok(false) => {}
        Ok(true) => voice.note(&format!(
            "log {} was cut at its quota of {} bytes: {} bytes dropped",
            path.display(),
            plan.quota.bytes(),
            attempt.tally.dropped_bytes
        )),
        Err(doubt) => {
            voice.doubt(&format!("log {} may be incomplete: {}", path.display(), doubt.reason));
        }
    }
}
