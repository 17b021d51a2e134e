//! From the job's start to its end and the end of its stream: reap, forward, drain.

use super::now_ms;
use super::relay::{Relay, asks_to_end};
use super::remaining::{Children, Remaining};
use crate::plan::AfterExit;
use crate::voice::Voice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weir_common::Errno;
use weir_common::sys::process::{self, End, News, Pid, Stops, Usage};
use weir_common::sys::signals::{self, READ_BY_LAUNCHER};
use weir_common::sys::streams::{self, Wake};
use weir_common::sys::thread;
use weir_drainer::{Drain, Pause, Tally, Until};

/// How a job has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    /// When, by the wall clock in milliseconds.
    pub(super) at_ms: u64,
    pub(super) usage: Usage,
}

/// How the stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Every writer has closed it; when, by the wall clock in milliseconds.
    Reached { at_ms: u64 },
    /// Not yet: others hold it still, and weir's patience has ended.
    Held,
    /// It could not be read any more.
    Broken(Errno),
}

impl StreamEnd {
    /// It ends at this moment.
    pub(super) fn now() -> StreamEnd {
        StreamEnd::Reached { at_ms: now_ms() }
    }

    /// What a drain's rest says of its stream, now.
    pub(super) fn of(run: Result<Pause, Errno>) -> StreamEnd {
        match run {
            Ok(Pause::Ended) => StreamEnd::now(),
            Ok(Pause::Interrupted) => StreamEnd::Held,
            Err(errno) => StreamEnd::Broken(errno),
        }
    }
}

/// What a watch needs: a way to the job, and what is done about processes that remain
/// when it has ended.
pub(super) struct Means<'a> {
    pub(super) relay: Relay<'a>,
    /// The reading end of the stream, to be asked whether anybody writes to it still.
    pub(super) source: Option<BorrowedFd<'a>>,
    /// weir's own description of a terminal that gets a copy.
    pub(super) terminal_copy: Option<BorrowedFd<'a>>,
    pub(super) after_exit: AfterExit,
    pub(super) grace: Duration,
    pub(super) remaining: Remaining,
}

/// The drainer's stack: its loop needs little, but debug builds need more than that.
const STACK_BYTES: usize = 128 << 10;

/// Sees a running job through to its end, and its stream, if it has one here, to its end
/// or to the end of weir's patience.
pub(super) fn see_through<Source, Log>(
    job: Pid,
    drain: Option<&mut Drain<'_, Source, Log>>,
    means: &Means<'_>,
    voice: &mut Voice,
) -> (Ended, StreamEnd)
where
    Source: AsFd + Send,
    Log: AsFd + Send,
{
    let mut watch = Watch {
        means,
        voice,
        stops: if means.relay.terminal().is_some() { Stops::Told } else { Stops::Untold },
        job: Job::Running(job),
        stream: match drain {
            Some(_) => None,
            None => Some(StreamEnd::now()),
        },
        children: Children::Some,
        after: After::Job,
    };
    // What has arrived while the job was started.
    watch.take_signals();
    match drain {
        Some(drain) => {
            if drain_beside(drain, &mut watch).is_err() {
                drain_between(drain, &mut watch);
            }
        }
        None => {
            while !watch.is_over() {
                watch.wait_for_signals();
            }
        }
    }
    match (watch.job, watch.stream) {
        (Job::Ended(ended), Some(stream)) => (ended, stream),
        _ => unreachable!("a watch is over when its job and its stream are"),
    }
}

/// The drainer on its own thread, so that signals are forwarded while a write of the
/// log hangs. An error means that there was no thread to be had, and nothing has been
/// drained.
fn drain_beside<Source, Log>(
    drain: &mut Drain<'_, Source, Log>,
    watch: &mut Watch<'_>,
) -> Result<(), Errno>
where
    Source: AsFd + Send,
    Log: AsFd + Send,
{
    let (stop, done, outcome) = (Wake::new()?, Wake::new()?, OnceLock::new());
    let body = || {
        // Anew, since a C library may open a new thread to signals of its own.
        signals::block(READ_BY_LAUNCHER);
        let end = StreamEnd::of(drain.run(Until::interrupted_by(stop.as_fd())));
        let _ = outcome.set((end, drain.tally()));
        done.raise();
    };
    thread::beside(STACK_BYTES, body, || {
        // And in the thread that makes one: glibc unblocks its two real-time signals here.
        signals::block(READ_BY_LAUNCHER);
        while !watch.is_over() {
            // Before every wait: patience may have ended without one.
            if watch.gives_up() {
                stop.raise();
            }
            if watch.stream.is_some() {
                watch.wait_for_signals();
                continue;
            }
            let (signals, deadline) = (watch.means.relay.signals.as_fd(), watch.deadline());
            // A wait that fails is tried again: something always comes.
            let ready = streams::first_readable([signals, done.as_fd()], deadline);
            match outcome.get().filter(|_| ready == Ok(Some(1))) {
                Some((end, tally)) => watch.stream_ended(*end, *tally),
                None => watch.take_signals(),
            }
        }
    })
}

/// The drainer on this thread, between signals: for a process that may have no second
/// thread (a pids limit), and a job that runs already.
fn drain_between<Source: AsFd, Log: AsFd>(
    drain: &mut Drain<'_, Source, Log>,
    watch: &mut Watch<'_>,
) {
    while !watch.is_over() {
        if watch.stream.is_some() {
            watch.wait_for_signals();
            continue;
        }
        let (signals, deadline) = (watch.means.relay.signals.as_fd(), watch.deadline());
        let paused = match watch.gives_up() {
            true => Ok(Pause::Interrupted),
            false => drain.run(Until::interrupted_by(signals).or_at(deadline)),
        };
        watch.take_signals();
        if paused != Ok(Pause::Interrupted) || watch.gives_up() {
            watch.stream_ended(StreamEnd::of(paused), drain.tally());
        }
    }
}

/// The job, in the eyes of its parent.
enum Job {
    Running(Pid),
    Ended(Ended),
}

/// What weir waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The job's end.
    Job,
    /// What remains after it, at the latest until then.
    Grace(Option<Instant>),
    /// What the pipe and a tee hold still: nobody writes any more.
    Rest,
    /// Nothing more: the grace is over.
    Over,
}

struct Watch<'a> {
    means: &'a Means<'a>,
    voice: &'a mut Voice,
    stops: Stops,
    job: Job,
    stream: Option<StreamEnd>,
    children: Children,
    after: After,
}

impl Watch<'_> {
    fn is_over(&self) -> bool {
        let ended = matches!((&self.job, &self.stream), (Job::Ended(_), Some(_)));
        ended && self.means.remaining.is_gone(self.children)
    }

    /// Until when there is something to wait for, if there is such a time.
    fn deadline(&self) -> Option<Instant> {
        match self.after {
            After::Grace(until) => until,
            After::Job | After::Rest | After::Over => None,
        }
    }

    /// Whether the stream is to be left as it is.
    fn gives_up(&self) -> bool {
        self.after == After::Over && self.means.after_exit != AfterExit::Kill
    }

    fn stream_ended(&mut self, end: StreamEnd, tally: Tally) {
        if end != StreamEnd::Held {
            self.voice.drained(tally);
        }
        self.stream = Some(end);
    }

    /// Waits where there is nothing to drain.
    fn wait_for_signals(&mut self) {
        let signals = self.means.relay.signals.as_fd();
        // A wait that fails is tried again: something always comes.
        let _ = streams::first_readable([signals], self.deadline());
        self.take_signals();
    }

    /// Takes the signals that have arrived, reaps, and looks at the clock. Signals before
    /// children: one that ends between the two is reaped now, and its signal finds
    /// nothing to do.
    fn take_signals(&mut self) {
        while let Some(arrived) = self.means.relay.signals.next() {
            match self.job {
                Job::Running(pid) => self.means.relay.pass_on(pid, arrived),
                Job::Ended(_) if asks_to_end(arrived.signal) => self.asked_to_end(),
                Job::Ended(_) => {}
            }
        }
        self.take_news();
        if self.deadline().is_some_and(|until| Instant::now() >= until) {
            self.grace_ends();
        }
    }

    fn take_news(&mut self) {
        let mut reaped_any = false;
        let mut tries = 0..100;
        loop {
            match process::news(self.stops) {
                News::Ended(reaped) => {
                    reaped_any = true;
                    if matches!(self.job, Job::Running(pid) if pid == reaped.pid) {
                        self.means.relay.take_terminal_back(reaped.pid);
                        let (end, usage) = (reaped.end, reaped.usage);
                        self.job_ended(Ended { end, at_ms: now_ms(), usage });
                    }
                    // Another is a child that this process had before it became weir,
                    // or an orphan that it has adopted.
                }
                News::Stopped(pid, signal) => {
                    if matches!(self.job, Job::Running(job) if job == pid) {
                        self.means.relay.stop_with(pid, signal);
                    }
                }
                News::Nothing => break,
                // Not for long: a parent has its child until it has reaped it.
                News::NoChildren
                    if matches!(self.job, Job::Running(_)) && tries.next().is_some() => {}
                News::NoChildren => {
                    self.children = Children::None;
                    break;
                }
            }
        }
        if reaped_any && self.after == After::Over {
            // Whoever has lost its parent meanwhile is ours by now.
            self.means.remaining.send(signals::KILL);
        }
    }

    fn job_ended(&mut self, ended: Ended) {
        self.job = Job::Ended(ended);
        self.voice.exited(ended.end);
        // A bound that no clock reaches is none.
        let bound = Instant::now().checked_add(self.means.grace);
        self.after = After::Grace(match self.means.after_exit {
            AfterExit::Linger | AfterExit::Kill => bound,
            AfterExit::Wait | AfterExit::WaitOut => None,
        });
        self.means.remaining.ask_to_end();
    }

    fn asked_to_end(&mut self) {
        if self.means.after_exit != AfterExit::WaitOut {
            self.patience_ends();
        }
    }

    fn grace_ends(&mut self) {
        let is_kill = self.means.after_exit == AfterExit::Kill;
        let is_held = self.means.source.is_some_and(streams::has_writer);
        if !is_kill && !is_held {
            // No holder, only a slow reader of the copy: it may take its time.
            self.after = After::Rest;
        } else {
            self.patience_ends();
        }
    }

    fn patience_ends(&mut self) {
        self.after = After::Over;
        self.means.remaining.send(signals::KILL);
    }
}
