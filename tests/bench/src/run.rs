//! Starting what is measured, cheaply, and waiting for it.
//!
//! `Command` starts a program by posix_spawn(3) as long as it is not asked for more than
//! descriptors and variables: what that costs does not grow with this process.

use crate::{Fallible, clock, processes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::Command;
use std::time::Duration;
use weir_common::sys::process::{self, End, News, Pid, Stops};
use weir_common::sys::signals;

/// How long anything that is measured may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(180);

/// A child that has been started and not yet been waited for.
pub(crate) struct Running {
    pub(crate) pid: Pid,
    pub(crate) started_ns: u64,
    what: String,
}

/// A child that has ended.
pub(crate) struct Ended {
    /// From just before its start until it was seen to have ended.
    pub(crate) wall_ns: u64,
    /// Its processor time, with that of those whom it has waited for.
    pub(crate) cpu_ns: u64,
    end: End,
    what: String,
}

impl Ended {
    /// It must have ended well, or what was measured is something else.
    pub(crate) fn expect_success(self) -> Fallible<Ended> {
        match self.end {
            End::Code(0) => Ok(self),
            end => Err(format!("{} has ended with {end:?}", self.what).into()),
        }
    }
}

/// Where a child may run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// On every processor that this process may use.
    Anywhere,
    /// On this one.
    On(usize),
}

pub(crate) fn start(command: &mut Command, place: Place) -> Fallible<Running> {
    let what = format!("{command:?}");
    let before = pin(place)?;
    let started_ns = clock::now_ns();
    let child = command.spawn();
    if let Some(before) = before {
        sched_setaffinity(None, &before)?;
    }
    let child = child.map_err(|why| format!("{what}: {why}"))?;
    // Reaped below, together with what it has used.
    let pid = Pid::from_raw(child.id() as i32).ok_or("a child without a number")?;
    Ok(Running { pid, started_ns, what })
}

/// Moves this thread, and says where it was allowed to be before.
pub(crate) fn pin(place: Place) -> Fallible<Option<CpuSet>> {
    let Place::On(cpu) = place else { return Ok(None) };
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)?;
    Ok(Some(before))
}

/// Undoes [`pin`].
pub(crate) fn unpin(before: Option<CpuSet>) -> Fallible<()> {
    Ok(before.map_or(Ok(()), |before| sched_setaffinity(None, &before))?)
}

/// Starts it, and waits for it to end well.
pub(crate) fn run(command: &mut Command, place: Place) -> Fallible<Ended> {
    finish(start(command, place)?)?.expect_success()
}

/// Waits for one child: there is no other.
pub(crate) fn finish(running: Running) -> Fallible<Ended> {
    finish_all(vec![running])?.pop().ok_or_else(|| "a child is missing".into())
}

/// Waits for all of them, which are all that there are, and gives them in the same order.
pub(crate) fn finish_all(running: Vec<Running>) -> Fallible<Vec<Ended>> {
    let mut ended: Vec<Option<Ended>> = running.iter().map(|_| None).collect();
    for at in 0..running.len() {
        while ended[at].is_none() {
            if !has_ended(&running[at])? {
                return Err(give_up(&running, &ended).into());
            }
            reap(&running, &mut ended);
        }
    }
    Ok(ended.into_iter().flatten().collect())
}

/// Waits until the child has ended; not for ever.
fn has_ended(child: &Running) -> Fallible<bool> {
    let pid = rustix::process::Pid::from_raw(child.pid.raw()).ok_or("no such number")?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let mut ready = [PollFd::new(&handle, PollFlags::IN)];
    Ok(rustix::io::retry_on_intr(|| poll(&mut ready, Some(&patience)))? == 1)
}

/// Takes in every child that has ended.
fn reap(running: &[Running], ended: &mut [Option<Ended>]) {
    let now_ns = clock::now_ns();
    while let News::Ended(reaped) = process::news(Stops::Untold) {
        let Some(at) = running.iter().position(|child| child.pid == reaped.pid) else { continue };
        let usage = reaped.usage;
        ended[at] = Some(Ended {
            wall_ns: now_ns - running[at].started_ns,
            cpu_ns: (usage.user + usage.system).as_nanos() as u64,
            end: reaped.end,
            what: running[at].what.clone(),
        });
    }
}

/// Ends those that are left, by their numbers, which are theirs until they are reaped.
fn give_up(running: &[Running], ended: &[Option<Ended>]) -> String {
    let left: Vec<&Running> =
        running.iter().zip(ended).filter(|(_, ended)| ended.is_none()).map(|(it, _)| it).collect();
    for child in &left {
        // One that has ended meanwhile is as good.
        let _ = process::send(child.pid, signals::KILL);
    }
    let names: Vec<&str> = left.iter().map(|child| child.what.as_str()).collect();
    format!("not ended within {} s: {}", PATIENCE.as_secs(), names.join(", "))
}

/// Ends everybody whom this process has started, and whom those have: after a measurement
/// that broke.
pub(crate) fn clear_away() {
    let own = Pid::own();
    for one in processes::tree(own.raw()) {
        if let Some(pid) = Pid::from_raw(one.pid).filter(|pid| *pid != own) {
            // One that has ended meanwhile is as good.
            let _ = process::send(pid, signals::KILL);
        }
    }
    while !matches!(process::news(Stops::Untold), News::NoChildren) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
