//! The story of a run, whatever its plan was made from.

mod admission;
mod background;
mod examination;
mod fifo;
mod fresh;
mod job;
mod log;
mod records;
mod relay;
mod remaining;
mod stream;
mod watch;

pub(crate) use examination::{Findings, Verdict, examine};

use crate::ending::Leave;
use crate::place::{Directory, Site};
use crate::plan::{CapturePlan, Chatter, LogPlan, Output, Plan, Whereabouts};
use crate::refusal::{Code, Refusal};
use crate::voice::Voice;
use job::{Setting, Start};
use log::Log;
use records::Names;
use relay::Relay;
use remaining::Remaining;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;
use stream::Stream;
use watch::{Means, StreamEnd};
use weir_common::sys::files::{self, Standard};
use weir_common::sys::process::Usage;
use weir_common::sys::signals::{READ_BY_LAUNCHER, SignalReader};
use weir_common::sys::{descriptors, inherited, process, terminal};
use weir_common::{Errno, JobEnd};
use weir_drainer::{Drain, Tally};

/// The plan for the job's output, and the directory that it speaks of, open.
#[derive(Clone, Copy)]
struct Captured<'d> {
    plan: &'d CapturePlan,
    directory: &'d Directory,
}

/// Runs one job. `given_log` is the log as the caller has opened it, if it has.
///
/// A refusal leaves nothing behind: whatever was made for this start is removed when the
/// values that stand for it are dropped.
pub(crate) fn run(
    plan: &Plan,
    given_log: Option<OwnedFd>,
    voice: &mut Voice,
) -> Result<Leave, Refusal> {
    // From here on a signal waits to be read, and ends nothing half-way.
    let signals = SignalReader::new(READ_BY_LAUNCHER)
        .map_err(|errno| Refusal::new(Code::System, "cannot read signals").because(errno))?;
    let setting = Setting::take_over(plan, inherited::inherited())?;
    if plan.chatter == Chatter::ErrorsOnly {
        voice.quieten();
    }
    let admitted = admission::admit(plan, voice)?;
    let make = |site: Site<'_>| site.make(plan.sync.of_records());
    let directory = admitted.capture.map(make).transpose()?;
    let receipt_directory = admitted.receipt.map(make).transpose()?;
    let captured = plan.capture.as_ref().zip(directory.as_ref());
    let captured = captured.map(|(plan, directory)| Captured { plan, directory });
    let names = Names::of(plan, captured, receipt_directory.as_ref())?;
    let log = match captured {
        Some(captured) => Some(take_log(captured, given_log, &names, voice)?),
        None => {
            // Before it is let go of along with everything else.
            drop(given_log);
            None
        }
    };
    let records = names.reserve(voice)?;
    let (stream, output) = log.map(Stream::open).transpose()?.unzip();
    let copy = match captured {
        Some(captured) if captured.plan.output == Output::LogAndTee => CopyTo::open(),
        _ => CopyTo::Nowhere,
    };
    // Before the job: afterwards there may be no memory.
    let drain = stream.as_ref().map(|stream| stream.drain(copy.descriptor()));
    let mut drain = drain.transpose()?;
    let means = Means {
        remaining: Remaining::take_over(plan)?,
        relay: Relay::new(&signals, plan.scope),
        source: stream.as_ref().map(Stream::source),
        terminal_copy: copy.own(),
        after_exit: plan.after_exit,
        grace: plan.grace,
    };
    if let Some(captured) = captured {
        announce(plan, captured.plan, voice);
    }

    let start = job::start(plan, &setting, output, &means.relay)?;
    // The point of no return: a job runs, or the log is about to tell why none does.
    // What fails from here on is remembered and reported, and ends nothing.
    drop(setting);
    if let Some(stream) = &stream {
        stream.log.keep();
    }
    let directories = || [&directory, &receipt_directory].into_iter().flatten();
    directories().for_each(Directory::keep);
    if let Start::Running(_) = start {
        let own = [signals.as_fd()].into_iter().chain(stream.iter().flat_map(Stream::descriptors));
        let own = own.chain(means.relay.terminal().map(AsFd::as_fd)).chain(voice.status());
        let own = own.chain(directories().flat_map(Directory::descriptors));
        let own = own.chain(copy.own()).chain(records.descriptors());
        let_go_of_everything_else(&copy, own, voice);
    }
    let attempt = see_through(plan, start, drain.as_mut(), means, voice);
    if let Some(stream) = &stream {
        give_back(&stream.log, voice);
    }
    records.publish(plan, stream.as_ref().map(|stream| &stream.log), &attempt, voice);
    drop(stream);
    Ok(attempt.leave)
}

/// Makes the log this start's, and refuses one that is not to be written.
fn take_log<'d>(
    captured: Captured<'d>,
    given: Option<OwnedFd>,
    names: &Names<'_>,
    voice: &mut Voice,
) -> Result<Log<'d>, Refusal> {
    fresh::retire(captured, names)?;
    let were_free = names.must_be_free(captured).is_ok();
    let log = Log::claim(captured, given)?;
    keep_from_log(&log, voice)?;
    fresh::retire_orphans(&log, names)?;
    names.must_be_free(captured).map_err(|refusal| match refusal.code() {
        Code::LogSealed if were_free => {
            // Another start has come and gone with the log that this one has made.
            log.keep();
            fresh::or_busy(captured, refusal)
        }
        _ => refusal,
    })?;
    log.must_fit()?;
    log.reserve()?;
    Ok(log)
}

/// Gives back what was reserved for the log and not used.
fn give_back(log: &Log<'_>, voice: &mut Voice) {
    if let Err(errno) = log.give_back() {
        let log = log.captured().plan.log_path();
        let log = log.display();
        voice.failure(&format!("log {log}: its reserved space was not given back: {errno}"));
    }
}

/// Says that the start is admitted, and where its log is if nobody can know.
fn announce(plan: &Plan, capture: &CapturePlan, voice: &mut Voice) {
    voice.admitted(plan, capture);
    if let LogPlan::Named(log) = &capture.log {
        if log.whereabouts == Whereabouts::MadeUp {
            voice.note(&format!("log {}", capture.log_path().display()));
        }
    }
}

/// Where the kept bytes go besides the log.
enum CopyTo {
    Nowhere,
    Output,
    /// weir's own description of a terminal that is its standard output.
    Terminal(OwnedFd),
}

impl CopyTo {
    /// To standard output.
    fn open() -> CopyTo {
        let terminal = terminal::never_blocking(Standard::Output.borrow());
        terminal.map_or(CopyTo::Output, CopyTo::Terminal)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            CopyTo::Nowhere => None,
            CopyTo::Output => Some(Standard::Output.borrow()),
            CopyTo::Terminal(terminal) => Some(terminal.as_fd()),
        }
    }

    /// What weir has opened for it.
    fn own(&self) -> Option<BorrowedFd<'_>> {
        match self {
            CopyTo::Nowhere | CopyTo::Output => None,
            CopyTo::Terminal(terminal) => Some(terminal.as_fd()),
        }
    }
}

/// Lets go of what weir was started with and does not need: the caller's descriptors,
/// standard input, the working directory.
fn let_go_of_everything_else<'a>(
    copy: &CopyTo,
    own: impl Iterator<Item = BorrowedFd<'a>>,
    voice: &Voice,
) {
    descriptors::keep_only(own);
    let output = matches!(copy, CopyTo::Nowhere).then_some(Standard::Output);
    let error = (!voice.uses_standard_error()).then_some(Standard::Error);
    let unused = [Standard::Input].into_iter().chain(output).chain(error);
    descriptors::let_go(unused.map(Standard::borrow));
    process::leave_working_directory();
}

/// Keeps what weir itself writes out of the log, whose length it would change behind the
/// quota's back. (Standard error was looked at before anything could be said there.)
fn keep_from_log(log: &Log<'_>, voice: &mut Voice) -> Result<(), Refusal> {
    let output = files::status_of_standard(Standard::Output);
    let output_is_log = output.is_some_and(|status| status.identity == log.identity());
    if log.captured().plan.output == Output::LogAndTee && output_is_log {
        let refusal =
            Refusal::new(Code::Usage, "--tee").because("standard output is the log itself");
        return Err(refusal.hint("without --tee the job's output is in the log already"));
    }
    if voice.tells(log.identity()) {
        // Nor may the refusal go there.
        voice.speak_to(None);
        return Err(Refusal::new(Code::Usage, "--status-fd").because("it is the log itself"));
    }
    Ok(())
}

/// Drains what the job writes, and sees the job through to its end and its stream to its
/// own, here or in the background. Without a drain there is only the job.
fn see_through<Source: AsFd + Send, Log: AsFd + Send>(
    plan: &Plan,
    start: Start,
    mut drain: Option<&mut Drain<'_, Source, Log>>,
    means: Means<'_>,
    voice: &mut Voice,
) -> Attempt {
    let started_at_ms = now_ms();
    let (job, finished_at_ms, usage, mut stream, mut leave) = match start {
        Start::Running(pid) => {
            voice.started(pid);
            let (ended, stream) = watch::see_through(pid, drain.as_deref_mut(), &means, voice);
            let leave = Leave::as_job(ended.end, plan.leaving);
            (JobEnd::Ended(ended.end), ended.at_ms, ended.usage, stream, leave)
        }
        Start::Failed { refusal, errno, output } => {
            voice.refused(&refusal);
            if let Some(output) = output {
                job::tell_in_log(&refusal, output);
            }
            let leave = Leave::Code(refusal.code().exit_code());
            let stream = match drain.as_deref_mut() {
                Some(drain) => {
                    let stream = background::wait(drain, means.relay.signals);
                    voice.drained(drain.tally());
                    stream
                }
                None => StreamEnd::now(),
            };
            (JobEnd::NeverStarted(errno), now_ms(), Usage::default(), stream, leave)
        }
    };
    let mut tally = Tally::default();
    if let Some(drain) = drain {
        let never_started = matches!(job, JobEnd::NeverStarted(_));
        if stream == StreamEnd::Held && !never_started {
            (stream, leave) = background::settle(plan, leave, drain, means, voice);
            voice.drained(drain.tally());
        }
        // A reader that has seen enough is no failure.
        if let Some(errno) = drain.tee_failure().filter(|errno| *errno != Errno::EPIPE) {
            voice.failure(&format!("copying the log to standard output ended early: {errno}"));
        }
        tally = drain.tally();
    }
    Attempt { started_at_ms, job, finished_at_ms, usage, stream, tally, leave }
}

/// Everything that the records of one start tell.
struct Attempt {
    started_at_ms: u64,
    job: JobEnd,
    /// When the job ended, by the wall clock in milliseconds.
    finished_at_ms: u64,
    usage: Usage,
    stream: StreamEnd,
    tally: Tally,
    /// How weir leaves.
    leave: Leave,
}

/// The wall clock, in milliseconds since 1970.
fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
