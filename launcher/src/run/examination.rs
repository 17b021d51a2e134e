//! `weir doctor`: what becomes of a run in a directory, found out by starting one, all but
//! the job.

use super::fifo::Fifo;
use super::job::Setting;
use super::log::Log;
use super::records::{Names, Reserved};
use super::{Captured, admission};
use crate::place::{Directory, Site};
use crate::plan::{Allocation, CapturePlan, LogPlan, Plan, Sync};
use crate::refusal::{Code, Refusal};
use weir_common::sys::file_system::FileSystem;
use weir_common::sys::signals::{READ_BY_LAUNCHER, SignalReader};
use weir_common::sys::{files, inherited};

/// What one check has found.
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) verdict: Verdict,
}

/// What that means for a run.
pub(crate) enum Verdict {
    /// It is as it should be.
    Fine(String),
    /// A run would start, and may not keep this promise.
    Warning(String),
    /// A run would be refused.
    Refused(Refusal),
}

/// What all checks have found, in the order in which a run makes them.
#[derive(Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// Whether a run would start.
    pub(crate) fn would_start(&self) -> bool {
        !self.iter().any(|finding| matches!(finding.verdict, Verdict::Refused(_)))
    }

    fn add(&mut self, check: &'static str, verdict: Verdict) {
        self.0.push(Finding { check, verdict });
    }

    /// Notes a step of a run: what to say of it when it went well, or its refusal.
    fn note<T>(
        &mut self,
        check: &'static str,
        step: Result<T, Refusal>,
        say: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match step {
            Ok(made) => {
                self.add(check, Verdict::Fine(say(&made)));
                Some(made)
            }
            Err(refusal) => {
                self.add(check, Verdict::Refused(refusal));
                None
            }
        }
    }
}

/// Takes the steps of a run before its job, each as far as those before it allow, and
/// undoes them.
pub(crate) fn examine(plan: &Plan) -> Result<Findings, Refusal> {
    // A signal must not end it half-way.
    let _signals = SignalReader::new(READ_BY_LAUNCHER)
        .map_err(|errno| Refusal::new(Code::System, "cannot read signals").because(errno))?;
    let _setting = Setting::take_over(plan, inherited::inherited())?;
    let mut findings = Findings::default();
    let directory = plan.capture.as_ref().and_then(|capture| {
        let site = findings.note("directory", capture.place.look(), ToString::to_string)?;
        look_at_room(capture, &site, &mut findings);
        enter("directory", site, plan, &mut findings)
    });
    let receipt_directory = plan.receipt.as_ref().and_then(|receipt| {
        let looked = receipt.place.look();
        let site = findings.note("receipt directory", looked, ToString::to_string)?;
        enter("receipt directory", site, plan, &mut findings)
    });
    if let Some((capture, directory)) = plan.capture.as_ref().zip(directory.as_ref()) {
        let captured = Captured { plan: capture, directory };
        try_out(plan, captured, receipt_directory.as_ref(), &mut findings);
    }
    Ok(findings)
}

fn look_at_room(capture: &CapturePlan, site: &Site<'_>, findings: &mut Findings) {
    if let LogPlan::Named(log) = &capture.log {
        let room = admission::must_have_room(capture, log, site);
        findings.note("space", room, ToString::to_string);
    }
    // What a run needs of them is found out by making it.
    let inodes = match site.free_inodes() {
        Ok(Some(0)) => Verdict::Warning("none are free".to_owned()),
        Ok(Some(free)) => Verdict::Fine(format!("{free} are free")),
        Ok(None) => Verdict::Fine("as many as there is space for".to_owned()),
        Err(errno) => Verdict::Warning(errno.to_string()),
    };
    findings.add("inodes", inodes);
}

/// Makes what is missing of a place.
fn enter(
    check: &'static str,
    site: Site<'_>,
    plan: &Plan,
    findings: &mut Findings,
) -> Option<Directory> {
    let made = site.make(plan.sync.of_records());
    made.map_err(|refusal| findings.add(check, Verdict::Refused(refusal))).ok()
}

/// Makes everything that a run makes before its job, all of it at once.
fn try_out(
    plan: &Plan,
    captured: Captured<'_>,
    receipt_directory: Option<&Directory>,
    findings: &mut Findings,
) {
    let names = match Names::of(plan, Some(captured), receipt_directory) {
        Ok(names) => names,
        Err(refusal) => return findings.add("receipt", Verdict::Refused(refusal)),
    };
    let log = findings.note("log", Log::claim(captured, None), |_| "made and locked".to_owned());
    if let Err(refusal) = names.must_be_free(captured) {
        findings.add("receipt", Verdict::Refused(refusal));
    }
    let asked_for = captured.plan.allocation();
    // Others may need the room more than a run that would not get as far as this: a log that
    // is being written, first of all.
    if let (Some(log), Allocation::Ahead, true) = (&log, asked_for, findings.would_start()) {
        findings.note("reserve", log.reserve(), |()| "allocated".to_owned());
    }
    let mut records = Vec::new();
    for record in names.iter() {
        let reserved = Reserved::new(record);
        let way = |made: &Reserved<'_>| made.way().to_owned();
        records.push(findings.note(record.which.as_str(), reserved, way));
    }
    let opened = "made, and opened at both ends";
    let _fifo = findings.note("fifo", Fifo::create(captured), |_| opened.to_owned());
    let Some(log) = log else { return };
    findings.add("sync", durability(plan.sync, &log, captured.directory));
    if asked_for == Allocation::AsWritten && findings.would_start() {
        // The last of all: what it takes may not be free again at once.
        let verdict = match log.allocate() {
            Ok(()) => Verdict::Fine("could be allocated ahead".to_owned()),
            Err(refusal) => Verdict::Warning(format!("--reserve: {}", refusal.message())),
        };
        findings.add("reserve", verdict);
    }
}

/// Whether what is put on disk there is on disk.
fn durability(sync: Sync, log: &Log<'_>, directory: &Directory) -> Verdict {
    if sync == Sync::None {
        return Verdict::Warning("not asked for: a power cut may take facts and logs".to_owned());
    }
    if sync == Sync::Full {
        if let Err(errno) = log.sync() {
            return Verdict::Warning(format!("there would be no fact: {errno}"));
        }
    }
    match (files::sync_all(directory), sync) {
        // By then it has its name.
        (Err(errno), _) => Verdict::Warning(format!("a power cut may take facts: {errno}")),
        (Ok(()), _) if FileSystem::of(directory).is_in_memory() => {
            Verdict::Warning("in memory: a power cut takes everything".to_owned())
        }
        (Ok(()), Sync::Full) => Verdict::Fine("log and directory".to_owned()),
        (Ok(()), _) => Verdict::Warning("of records only: a power cut may take logs".to_owned()),
    }
}
