//! From the job's start to its end and the end of its stream: reap, forward, drain.

use super::now_ms;
use crate::ending::Leave;
use crate::voice::Voice;
use std::os::fd::AsFd;
use std::thread;
use weir_common::sys::process::{self, End, Pid, Usage};
use weir_common::sys::signals::{self, Arrived, Origin, READ_BY_LAUNCHER, SignalReader};
use weir_common::sys::streams::{self, Wake};
use weir_common::{Errno, JobEnd};
use weir_drainer::{Drain, Pause, Tally};

/// How it all ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) job: JobEnd,
    /// When the job ended, by the wall clock in milliseconds.
    pub(super) finished_at_ms: u64,
    pub(super) usage: Usage,
    pub(super) stream: StreamEnd,
    pub(super) tally: Tally,
}

/// How the stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Every writer has closed it; when, by the wall clock in milliseconds.
    Reached { at_ms: u64 },
    /// A signal ended the wait for a process that still held it.
    Abandoned,
    /// It could not be read any more.
    Broken(Errno),
}

/// The drainer's stack: its loop needs little, but debug builds need more than that.
const STACK_BYTES: usize = 128 << 10;

/// Sees a running job through to its end and to the end of its stream.
pub(super) fn see_through<Source, Log>(
    job: Pid,
    drain: &mut Drain<'_, Source, Log>,
    signals: &SignalReader,
    voice: &mut Voice,
) -> (Outcome, Leave)
where
    Source: AsFd + Send,
    Log: AsFd + Send,
{
    let leads_session = process::leads_session();
    let mut watch = Watch {
        signals,
        voice,
        leads_session,
        job: Job::Running(job),
        stream: None,
        patience: Patience::Endless,
    };
    if drain_beside(drain, &mut watch).is_err() {
        drain_between(drain, &mut watch);
    }
    let (stream, tally) = watch.stream.unwrap_or((StreamEnd::Abandoned, drain.tally()));
    let Job::Ended { end, at_ms, usage } = watch.job else {
        unreachable!("a watch is over when its job has ended, and not before");
    };
    let job = JobEnd::Ended(end);
    (Outcome { job, finished_at_ms: at_ms, usage, stream, tally }, Leave::as_job(end))
}

/// Drains what a job that never was has left in the stream.
pub(super) fn drain_rest<Source: AsFd, Log: AsFd>(
    job: JobEnd,
    drain: &mut Drain<'_, Source, Log>,
    voice: &mut Voice,
) -> Outcome {
    let finished_at_ms = now_ms();
    let stream = stream_end(drain.run(None));
    let tally = drain.tally();
    voice.drained(tally.kept_bytes, tally.dropped_bytes);
    Outcome { job, finished_at_ms, usage: Usage::default(), stream, tally }
}

fn stream_end(run: Result<Pause, Errno>) -> StreamEnd {
    match run {
        Ok(Pause::Ended) => StreamEnd::Reached { at_ms: now_ms() },
        Ok(Pause::Interrupted) => StreamEnd::Abandoned,
        Err(errno) => StreamEnd::Broken(errno),
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
    let (stop, done) = (Wake::new()?, Wake::new()?);
    thread::scope(|scope| {
        let body = || {
            // Anew, since a C library may open it to signals of its own in a new thread.
            signals::block(READ_BY_LAUNCHER);
            let mut paused = drain.run(Some(stop.as_fd()));
            if paused == Ok(Pause::Interrupted) {
                // What the job itself has written is not lost by giving up.
                paused = Ok(drain.sweep());
            }
            let end = stream_end(paused);
            done.raise();
            (end, drain.tally())
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body)?;
        // And in the thread that makes one: glibc unblocks its two real-time signals here.
        signals::block(READ_BY_LAUNCHER);
        let mut draining = Some(thread);
        while !watch.is_over() {
            let ready = match draining {
                Some(_) => streams::first_readable([watch.signals.as_fd(), done.as_fd()]),
                None => streams::first_readable([watch.signals.as_fd()]),
            };
            // A wait that fails is tried again; there is always something to wait for.
            match (ready, draining.take_if(|_| ready == Ok(1))) {
                (_, Some(thread)) => {
                    // The thread is about to return; it has nothing to panic over.
                    let (end, tally) =
                        thread.join().unwrap_or((StreamEnd::Broken(Errno::EIO), Tally::default()));
                    watch.stream_ended(end, tally);
                }
                (_, None) => watch.take_signals(),
            }
            if watch.patience == Patience::Exhausted {
                stop.raise();
            }
        }
        Ok(())
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
            let _ = streams::first_readable([watch.signals.as_fd()]);
            watch.take_signals();
            continue;
        }
        let mut paused = drain.run(Some(watch.signals.as_fd()));
        watch.take_signals();
        if paused == Ok(Pause::Interrupted) {
            if watch.patience == Patience::Endless {
                continue;
            }
            paused = Ok(drain.sweep());
        }
        watch.stream_ended(stream_end(paused), drain.tally());
    }
}

/// The job, in the eyes of its parent.
enum Job {
    Running(Pid),
    Ended { end: End, at_ms: u64, usage: Usage },
}

/// Whether weir still waits for processes that hold the stream after the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Endless,
    Exhausted,
}

struct Watch<'a> {
    signals: &'a SignalReader,
    voice: &'a mut Voice,
    leads_session: bool,
    job: Job,
    stream: Option<(StreamEnd, Tally)>,
    patience: Patience,
}

impl Watch<'_> {
    fn is_over(&self) -> bool {
        matches!((&self.job, &self.stream), (Job::Ended { .. }, Some(_)))
    }

    fn stream_ended(&mut self, end: StreamEnd, tally: Tally) {
        self.voice.drained(tally.kept_bytes, tally.dropped_bytes);
        self.stream = Some((end, tally));
    }

    /// Takes the signals that have arrived, and reaps. In this order: a child that ends
    /// between the two is reaped now, and its signal finds nothing to do.
    fn take_signals(&mut self) {
        while let Some(arrived) = self.signals.next() {
            match self.job {
                Job::Running(pid) if is_for_job(arrived, self.leads_session) => {
                    // A job that has just ended is not reaped yet, so this is still it.
                    let _ = process::send(pid, arrived.signal);
                }
                Job::Ended { .. } if asks_to_end(arrived.signal) => {
                    self.patience = Patience::Exhausted;
                }
                Job::Running(_) | Job::Ended { .. } => {}
            }
        }
        while let Some(reaped) = process::reap() {
            match self.job {
                Job::Running(pid) if pid == reaped.pid => {
                    let (end, usage) = (reaped.end, reaped.usage);
                    self.job = Job::Ended { end, at_ms: now_ms(), usage };
                    self.voice.exited(reaped.end);
                }
                // A child that this process had before it became weir, or an orphan
                // that process 1 has adopted.
                Job::Running(_) | Job::Ended { .. } => {}
            }
        }
    }
}

/// Whether the job should get a signal that weir has got.
fn is_for_job(arrived: Arrived, leads_session: bool) -> bool {
    match (arrived.origin, arrived.signal) {
        (_, signals::CHLD) | (Origin::Ourselves, _) => false,
        // From a terminal, to its whole foreground group: the job has it already.
        (Origin::Kernel, signals::INT | signals::QUIT | signals::WINCH) => false,
        // A hang-up goes to the session's leader alone.
        (Origin::Kernel, signals::HUP | signals::CONT) => leads_session,
        (Origin::Kernel | Origin::Other, _) => true,
    }
}

/// Whether a signal that arrives after the job's end asks weir to end as well.
fn asks_to_end(signal: i32) -> bool {
    matches!(signal, signals::HUP | signals::INT | signals::QUIT | signals::TERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_gets_what_it_would_not_get_otherwise() {
        let arrived = |signal, origin| Arrived { signal, origin };
        for signal in 1..=64 {
            let from_other = is_for_job(arrived(signal, Origin::Other), false);
            assert_eq!(from_other, signal != signals::CHLD, "{signal}");
            assert!(!is_for_job(arrived(signal, Origin::Ourselves), true), "{signal}");
            let from_terminal = [signals::INT, signals::QUIT, signals::WINCH].contains(&signal);
            let hang_up = [signals::HUP, signals::CONT].contains(&signal);
            for leads_session in [false, true] {
                let expected = match (signal, hang_up) {
                    (signals::CHLD, _) => false,
                    (_, true) => leads_session,
                    _ => !from_terminal,
                };
                let from_kernel = is_for_job(arrived(signal, Origin::Kernel), leads_session);
                assert_eq!(from_kernel, expected, "{signal}, leader: {leads_session}");
            }
        }
    }
}
