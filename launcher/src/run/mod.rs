//! The story of `weir run`.

mod admission;
mod background;
mod fifo;
mod fresh;
mod job;
mod log;
mod records;
mod relay;
mod remaining;
mod watch;

use crate::ending::Leave;
use crate::place::{Directory, Site};
use crate::plan::{Chatter, Output, Plan, Whereabouts};
use crate::refusal::{Code, Refusal};
use crate::voice::Voice;
use fifo::Fifo;
use job::{Setting, Start};
use log::Log;
use records::Names;
use relay::Relay;
use remaining::Remaining;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;
use watch::{Means, StreamEnd};
use weir_common::sys::files::{self, Standard};
use weir_common::sys::process::Usage;
use weir_common::sys::signals::{READ_BY_LAUNCHER, SignalReader};
use weir_common::sys::{descriptors, inherited, process, terminal};
use weir_common::{Errno, JobEnd};
use weir_drainer::{Drain, Tally};

/// Runs one job. A refusal leaves nothing behind: whatever was made for this start is
/// removed when the values that stand for it are dropped.
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
    let admitted = admission::admit(plan)?;
    let directory = admitted.log.make()?;
    let receipt_directory = admitted.receipt.map(Site::make).transpose()?;
    let names = Names::of(plan, &directory, receipt_directory.as_ref())?;
    fresh::retire(plan, &directory, &names)?;
    let log = Log::claim(plan, &directory, given_log)?;
    keep_from_log(plan, &log, voice)?;
    names.must_be_free(plan)?;
    log.must_fit(plan)?;
    let records = names.reserve()?;
    let (fifo, ends) = Fifo::create(plan, &directory)?;
    let copy = match plan.output {
        Output::Log => None,
        Output::LogAndTee => terminal::never_blocking(Standard::Output.borrow()),
    };
    let means = Means {
        remaining: Remaining::take_over(plan)?,
        relay: Relay::new(&signals, plan.scope),
        source: ends.reader.as_fd(),
        copy: copy.as_ref().map(AsFd::as_fd),
        after_exit: plan.after_exit,
        grace: plan.grace,
    };
    voice.admitted(plan);
    if plan.whereabouts == Whereabouts::MadeUp {
        voice.note(&format!("log {}", plan.log_path().display()));
    }

    let start = job::start(plan, &setting, ends.writer, &means.relay)?;
    // The point of no return: a job runs, or the log is about to tell why none does.
    // What fails from here on is remembered and reported, and ends nothing.
    drop(setting);
    log.keep();
    let directories = || [Some(&directory), receipt_directory.as_ref()].into_iter().flatten();
    directories().for_each(Directory::keep);
    if let Start::Running(_) = start {
        let own = [signals.as_fd(), log.as_fd(), ends.reader.as_fd()].into_iter();
        let own = own.chain(means.relay.terminal().map(AsFd::as_fd)).chain(voice.status());
        let own = own.chain(directories().flat_map(Directory::descriptors));
        let own = own.chain(copy.as_ref().map(AsFd::as_fd)).chain(records.descriptors());
        let_go_of_everything_else(plan, own);
    }
    let room_bytes = plan.remaining_bytes(log.start_bytes());
    let mut drain = Drain::new(&ends.reader, log.as_fd(), room_bytes);
    if plan.output == Output::LogAndTee {
        drain = drain.tee(means.copy.unwrap_or(Standard::Output.borrow()));
    }
    let (attempt, leave) = see_through(plan, start, &mut drain, means, voice);
    records.publish(plan, &log, &attempt, voice);
    fifo.remove();
    Ok(leave)
}

/// Lets go of what weir was started with and does not need: the caller's descriptors,
/// standard input, the working directory.
fn let_go_of_everything_else<'a>(plan: &Plan, own: impl Iterator<Item = BorrowedFd<'a>>) {
    descriptors::keep_only(own);
    descriptors::let_go(Standard::Input.borrow());
    if plan.output == Output::Log {
        descriptors::let_go(Standard::Output.borrow());
    }
    process::leave_working_directory();
}

/// Keeps what weir itself writes out of the log, whose length it would change behind the
/// quota's back. (Standard error was looked at before anything could be said there.)
fn keep_from_log(plan: &Plan, log: &Log<'_>, voice: &mut Voice) -> Result<(), Refusal> {
    let output = files::status_of_standard(Standard::Output);
    let output_is_log = output.is_some_and(|status| status.identity == log.identity());
    if plan.output == Output::LogAndTee && output_is_log {
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
/// own, here or in the background.
fn see_through<Source: AsFd + Send, Log: AsFd + Send>(
    plan: &Plan,
    start: Start,
    drain: &mut Drain<'_, Source, Log>,
    means: Means<'_>,
    voice: &mut Voice,
) -> (Attempt, Leave) {
    let started_at_ms = now_ms();
    let (job, finished_at_ms, usage, mut stream, mut leave) = match start {
        Start::Running(pid) => {
            voice.started(pid);
            let (ended, stream) = watch::see_through(pid, drain, &means, voice);
            let (job, leave) = (JobEnd::Ended(ended.end), Leave::as_job(ended.end));
            (job, ended.at_ms, ended.usage, stream, leave)
        }
        Start::Failed { refusal, errno, output } => {
            voice.refused(&refusal);
            job::tell_in_log(&refusal, output);
            let leave = Leave::Code(refusal.code().exit_code());
            let stream = background::wait(drain, means.relay.signals);
            voice.drained(drain.tally());
            (JobEnd::NeverStarted(errno), now_ms(), Usage::default(), stream, leave)
        }
    };
    let never_started = matches!(job, JobEnd::NeverStarted(_));
    if stream == StreamEnd::Held && !never_started {
        (stream, leave) = background::settle(plan, leave, drain, means, voice);
        voice.drained(drain.tally());
    }
    // A reader that has seen enough is no failure.
    if let Some(errno) = drain.tee_failure().filter(|errno| *errno != Errno::EPIPE) {
        voice.failure(&format!("copying the log to standard output ended early: {errno}"));
    }
    let tally = drain.tally();
    (Attempt { started_at_ms, job, finished_at_ms, usage, stream, tally }, leave)
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
}

/// The wall clock, in milliseconds since 1970.
fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
