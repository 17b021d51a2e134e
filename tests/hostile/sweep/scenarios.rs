//! The runs that faults are put into.

use super::faults::{EVERY_ERRNO, EVERY_KIND};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use weir_common::sys::fifo;
use weir_common::sys::files;
use weir_common::sys::process::{End, Usage};
use weir_common::{
    ArtifactId, AttemptId, Capture, Counts, Fact, JobEnd, LogName, Quota, Receipt, RunId,
    receipt_name, receipt_shard,
};
use weir_tests::{QUOTA, noise};

/// What the log holds before a replay.
const OLD: &[u8] = b"an earlier start wrote this\n";
/// What the small jobs write.
const FEW: &[u8] = b"first second\n";
/// The job's own exit code, which nobody else uses.
pub(super) const CODE: u8 = 37;

/// One run of weir's, without a fault.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) options: Vec<&'static str>,
    /// A shell script; `$1` is a file with what it is to write, `$PPID` is weir. `None`:
    /// the place is examined (`weir doctor`).
    pub(super) job: Option<&'static str>,
    pub(super) output: Vec<u8>,
    pub(super) before: Before,
    pub(super) errnos: &'static [&'static str],
    pub(super) names: Names,
    /// Whether a copy of weir, which has nobody to speak to, publishes.
    pub(super) lingers: bool,
    pub(super) alone: Alone,
    /// Fewer hits than this, and the sweep has not been one.
    pub(super) hits_min: usize,
}

/// Which processes there are besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alone {
    /// Those of the machine.
    No,
    /// None, in a pid namespace: for a run that looks at every process.
    Yes,
}

impl Alone {
    /// The words in front of a command.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Alone::No => &[],
            Alone::Yes => &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
        }
    }

    /// How a run ended. The first process of a namespace cannot die by a signal of its own,
    /// and tells how weir died by its code.
    pub(super) fn as_outside(self, status: ExitStatus) -> ExitStatus {
        match (self, status.code()) {
            (Alone::Yes, Some(code)) if code > 128 => ExitStatus::from_raw(code - 128),
            _ => status,
        }
    }
}

/// What stands in the place before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// A log with bytes.
    Log,
    /// A log with bytes, and the FIFO and the drafts of a weir that was killed.
    Leftovers,
    /// A log with its fact and its receipt.
    Sealed,
}

/// The names of everything that a start may make.
pub(super) struct Names {
    pub(super) log: String,
    pub(super) fact: String,
    pub(super) fifo: String,
    pub(super) receipt: String,
    pub(super) drafts: Vec<String>,
    pub(super) directories: Vec<String>,
}

impl Names {
    fn beside(log: &str) -> Names {
        let receipt_draft = format!(".{log}-receipt.receipt.tmp");
        Names {
            log: log.to_owned(),
            fact: format!(".{log}.truncated.json"),
            fifo: format!(".{log}.fifo"),
            receipt: format!("{log}-receipt"),
            drafts: drafts(&format!(".{log}.truncated.tmp"), &receipt_draft),
            directories: Vec::new(),
        }
    }

    fn below_roots() -> Names {
        let (run, attempt): (RunId, AttemptId) = ("r".parse().unwrap(), "aa-1".parse().unwrap());
        let artifact = ArtifactId::of(&run, &attempt);
        let log = LogName::of(&artifact);
        let shard = format!("root/{}/", artifact.shard());
        let at = |name: &std::ffi::OsStr| format!("{shard}{}", name.to_str().unwrap());
        let receipts = format!("receipts/{}/", receipt_shard(&attempt));
        let receipt = receipt_name(&attempt);
        let receipt_draft = format!("{receipts}.{receipt}.receipt.tmp");
        Names {
            log: at(log.as_os_str()),
            fact: at(&log.fact()),
            fifo: at(&log.fifo()),
            receipt: format!("{receipts}{receipt}"),
            drafts: drafts(&at(&log.fact_draft()), &receipt_draft),
            directories: vec!["root/".into(), shard, "receipts/".into(), receipts],
        }
    }
}

fn drafts(fact: &str, receipt: &str) -> Vec<String> {
    [fact, receipt].into_iter().flat_map(|name| [name.to_owned(), format!("{name}~")]).collect()
}

impl Scenario {
    /// A log and a receipt in the place itself, and a job that writes less than the quota.
    fn plain(name: &'static str) -> Scenario {
        Scenario {
            name,
            options: vec!["--log", "l", "--receipt", "l-receipt"],
            job: Some(": >../ran; printf 'first second\\n'; exit 37"),
            output: FEW.to_vec(),
            before: Before::Nothing,
            errnos: EVERY_ERRNO,
            names: Names::beside("l"),
            lingers: false,
            alone: Alone::No,
            hits_min: 1800,
        }
    }

    /// With one errno of each kind.
    fn of_every_kind(self) -> Scenario {
        Scenario { errnos: EVERY_KIND, hits_min: 1200, ..self }
    }

    fn with(mut self, options: &[&'static str]) -> Scenario {
        self.options.extend(options);
        self
    }

    pub(super) fn log_with_receipt_and_events() -> Scenario {
        let plain = Scenario::plain("log, receipt, events").with(&["--status-fd", "1"]);
        Scenario { hits_min: 2200, ..plain }
    }

    pub(super) fn roots_and_a_quota_that_cuts() -> Scenario {
        let plain = Scenario::plain("roots, cut by the quota");
        Scenario {
            options: vec!["--root", "root", "--run-id", "r", "--attempt-id", "aa-1"],
            job: Some(": >../ran; cat \"$1\"; exit 37"),
            output: noise(QUOTA + 600),
            names: Names::below_roots(),
            hits_min: 2200,
            ..plain
        }
        .with(&["--receipt-root", "receipts"])
    }

    pub(super) fn replay() -> Scenario {
        Scenario { before: Before::Log, ..Scenario::plain("replay") }
    }

    pub(super) fn leftovers() -> Scenario {
        let plain = Scenario::plain("leftovers of a killed weir").of_every_kind();
        Scenario { before: Before::Leftovers, ..plain }
    }

    pub(super) fn fresh() -> Scenario {
        let plain = Scenario::plain("fresh").with(&["--fresh"]).of_every_kind();
        Scenario { before: Before::Sealed, ..plain }
    }

    /// The holder writes when weir has left; where weir does not (a fault), it gives up.
    pub(super) fn linger() -> Scenario {
        let job = ": >../ran; printf 'first '; (i=0; while [ $i -lt 60 ] && kill -0 $PPID; do \
                   i=$((i+1)); sleep 0.01; done 2>/dev/null; echo second) & exit 37";
        let plain = Scenario::plain("linger").with(&["--after-exit", "linger", "--grace", "0"]);
        Scenario { job: Some(job), lingers: true, ..plain.of_every_kind() }
    }

    /// The holder outlives its time only where a fault keeps weir from ending it.
    pub(super) fn kill() -> Scenario {
        let job = ": >../ran; printf 'first second\\n'; sleep 0.3 & exit 37";
        let plain = Scenario::plain("kill").with(&["--after-exit", "kill", "--grace", "1"]);
        Scenario { job: Some(job), alone: Alone::Yes, errnos: EVERY_KIND, hits_min: 2400, ..plain }
    }

    pub(super) fn reserve() -> Scenario {
        let plain = Scenario::plain("reserve").with(&["--reserve"]).of_every_kind();
        Scenario { before: Before::Log, ..plain }
    }

    pub(super) fn tee() -> Scenario {
        Scenario::plain("tee").with(&["--tee"]).of_every_kind()
    }

    /// `weir doctor` in the place, with a receipt's root that is not there.
    pub(super) fn examination() -> Scenario {
        let options = vec!["--json", "--receipt-root", "receipts", "."];
        let plain = Scenario::plain("examination");
        Scenario { options, job: None, names: Names::below_roots(), hits_min: 1600, ..plain }
    }

    /// The command of weir's.
    pub(super) fn command(&self) -> &'static str {
        if self.job.is_some() { "run" } else { "doctor" }
    }

    /// Puts what stands there before into an empty place.
    pub(super) fn prepare(&self, place: &Path) {
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(place.join(name), bytes).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(place.join(name), mode).unwrap();
        };
        if self.before != Before::Nothing {
            write(&self.names.log, OLD);
        }
        if self.before == Before::Leftovers {
            let directory = files::open_directory(place).unwrap();
            fifo::create_at(&directory, self.names.fifo.as_ref()).unwrap();
            // Not those for trying, which only a draft with a name needs.
            let drafts = self.names.drafts.iter().filter(|draft| !draft.ends_with('~'));
            drafts.for_each(|draft| write(draft, b"{\"half"));
        }
        if self.before == Before::Sealed {
            let (fact, receipt) = records();
            write(&self.names.fact, &fact);
            write(&self.names.receipt, &receipt);
        }
    }
}

/// The records of the start that wrote `OLD`.
fn records() -> (Vec<u8>, Vec<u8>) {
    let (run_id, attempt_id): (RunId, AttemptId) =
        ("old".parse().unwrap(), "old-1".parse().unwrap());
    let log_artifact_id = ArtifactId::of(&run_id, &attempt_id);
    let counts = Counts { start_bytes: 0, kept_bytes: OLD.len() as u64, dropped_bytes: 0 };
    let fact = Fact {
        run_id: run_id.clone(),
        attempt_id: attempt_id.clone(),
        log_artifact_id: log_artifact_id.clone(),
        quota: Quota::new(QUOTA as u64).unwrap(),
        quota_reached: false,
        observed_at_ms: 1,
        counts: Some(counts),
    };
    let receipt = Receipt {
        run_id,
        attempt_id,
        log_artifact_id,
        started_at_ms: 1,
        finished_at_ms: 1,
        job: JobEnd::Ended(End::Code(0)),
        capture: Capture::Complete,
        counts,
        usage: Usage::default(),
    };
    (fact.encode(), receipt.encode())
}
