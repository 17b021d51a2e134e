//! Process ids, signals to them, reaping, and dying.

use super::errno::Errno;
use super::signals::{self, Disposition};
use std::mem::MaybeUninit;
use std::time::Duration;

/// The id of one process: positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pid(i32);

impl Pid {
    pub(crate) const fn new(raw: i32) -> Pid {
        assert!(raw > 0);
        Pid(raw)
    }

    /// The process with this number, if that can be one.
    pub const fn from_raw(raw: i32) -> Option<Pid> {
        if raw > 0 { Some(Pid(raw)) } else { None }
    }

    /// This process.
    pub fn own() -> Pid {
        Pid(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// The same for rustix, which tells the kernel without the C library and its `errno`.
    fn for_rustix(self) -> rustix::process::Pid {
        // SAFETY: it is positive.
        unsafe { rustix::process::Pid::from_raw_unchecked(self.0) }
    }

    /// Whether it is the first of its pid namespace, which no signal kills by default.
    pub const fn is_init(self) -> bool {
        self.0 == 1
    }
}

/// A process's session, as the number of its leader; 0 is a leader outside of this pid
/// namespace, and 0 asks for this process.
///
/// Not through rustix, for which no process id is 0.
fn session_of(pid: i32) -> i32 {
    // SAFETY: getsid(2) takes a number.
    unsafe { libc::getsid(pid) }
}

/// This process's group, likewise.
pub(crate) fn own_group() -> i32 {
    // SAFETY: getpgrp(2) takes nothing, and cannot fail.
    unsafe { libc::getpgrp() }
}

/// Whether this process leads its session: a hang-up of the terminal reaches it alone.
pub fn leads_session() -> bool {
    session_of(0) == Pid::own().raw()
}

/// Whether a stop of this process's group would be for ever: its parent, who would
/// continue it, is in another session.
pub fn nobody_would_continue() -> bool {
    // SAFETY: getppid(2) takes nothing. A parent outside of this pid namespace is 0.
    let parent = unsafe { libc::getppid() };
    parent == 0 || leads_session() || session_of(parent) != session_of(0)
}

/// This process's effective user id, which weir never changes: as the kernel has told it at
/// the start, getauxval(3).
pub fn effective_user() -> u32 {
    // SAFETY: getauxval(3) takes a number, and reads what stays as it is.
    let told = unsafe { libc::getauxval(libc::AT_EUID) };
    // The kernel tells it on every architecture, as the 32 bits that it is.
    told as u32
}

/// Replaces the file mode creation mask and says what it was. For the whole process.
pub fn replace_umask(mask: u32) -> u32 {
    let mask = rustix::fs::Mode::from_raw_mode(mask);
    rustix::process::umask(mask).as_raw_mode()
}

/// Fills a buffer from the kernel's random source: getrandom(2).
pub fn random<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    let mut done = 0;
    while done < N {
        let flags = rustix::rand::GetRandomFlags::empty();
        done += rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes[done..], flags))?;
    }
    Ok(bytes)
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Code(u8),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
        /// Whether the kernel wrote a core dump.
        core_dumped: bool,
    },
}

/// What a process, and those of its descendants that it waited for, have used: getrusage(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in its own code.
    pub user: Duration,
    /// Time in the kernel for it.
    pub system: Duration,
    /// The largest resident set of one process, in bytes.
    pub resident_bytes_max: u64,
}

/// What waiting for a child has brought.
#[derive(Clone, Copy, Debug)]
pub enum News {
    /// A child has ended.
    Ended(Reaped),
    /// A child has been stopped by this signal, and is still there.
    Stopped(Pid, i32),
    /// There are children, and nothing new of them.
    Nothing,
    /// There are no children at all.
    NoChildren,
}

/// A child that has ended and is now forgotten by the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Reaped {
    /// Which child.
    pub pid: Pid,
    /// How it ended.
    pub end: End,
    /// What it used.
    pub usage: Usage,
}

/// Whether waiting also tells of children that stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// Only of those that end.
    Untold,
    /// Of both.
    Told,
}

/// Asks for news of any one child, and reaps it if it has ended. Never waits: wait4(2)
/// with `WNOHANG`.
pub fn news(stops: Stops) -> News {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let flags = match stops {
        Stops::Untold => libc::WNOHANG,
        Stops::Told => libc::WNOHANG | libc::WUNTRACED,
    };
    // SAFETY: both out-pointers are alive and of the types that wait4(2) fills; an
    // all-zero rusage is valid where it fills nothing.
    let (answer, usage) = unsafe {
        let answer = libc::wait4(-1, &mut status, flags, usage.as_mut_ptr());
        (answer, usage.assume_init())
    };
    match answer {
        // With WNOHANG there is no EINTR, so this is ECHILD.
        ..0 => News::NoChildren,
        0 => News::Nothing,
        pid if libc::WIFSTOPPED(status) => News::Stopped(Pid::new(pid), libc::WSTOPSIG(status)),
        pid => {
            let (pid, end) = (Pid::new(pid), end_of(status));
            News::Ended(Reaped { pid, end, usage: usage_of(&usage) })
        }
    }
}

fn end_of(status: i32) -> End {
    match libc::WIFSIGNALED(status) {
        true => {
            End::Signal { number: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) }
        }
        false => End::Code(libc::WEXITSTATUS(status) as u8),
    }
}

fn usage_of(raw: &libc::rusage) -> Usage {
    let duration = |time: libc::timeval| {
        Duration::new(time.tv_sec.max(0) as u64, (time.tv_usec.max(0) as u32).saturating_mul(1000))
    };
    Usage {
        user: duration(raw.ru_utime),
        system: duration(raw.ru_stime),
        resident_bytes_max: (raw.ru_maxrss.max(0) as u64).saturating_mul(1024),
    }
}

/// Any signal for rustix, which would have the C library's own ones left alone.
fn signal_of(number: i32) -> Option<rustix::process::Signal> {
    // SAFETY: weir sends these only, and handles none of them.
    (1..=64)
        .contains(&number)
        .then(|| unsafe { rustix::process::Signal::from_raw_unchecked(number) })
}

/// Sends a signal, real-time ones too: kill(2).
pub fn send(to: Pid, signal: i32) -> Result<(), Errno> {
    let signal = signal_of(signal).ok_or(Errno::EINVAL)?;
    Ok(rustix::process::kill_process(to.for_rustix(), signal)?)
}

/// Sends a signal to every process of a group: kill(2) with a negative number.
pub fn send_to_group(leader: Pid, signal: i32) -> Result<(), Errno> {
    let signal = signal_of(signal).ok_or(Errno::EINVAL)?;
    Ok(rustix::process::kill_process_group(leader.for_rustix(), signal)?)
}

/// Whether a process leads the group that it is in.
pub fn leads_its_group(pid: Pid) -> bool {
    let pid = pid.for_rustix();
    rustix::process::getpgid(Some(pid)) == Ok(pid)
}

/// Makes a child that has not become another program yet lead a group of its own.
pub(super) fn lead_group(child: Pid) {
    let child = child.for_rustix();
    let _ = rustix::process::setpgid(Some(child), Some(child));
}

/// Sends a signal to every process that this one may send to, except itself and
/// process 1. As process 1 that is every other process of the pid namespace.
pub fn send_to_everybody(signal: i32) {
    // SAFETY: kill(2) takes two numbers.
    unsafe { libc::kill(-1, signal) };
}

/// Adopts the orphans among this process's descendants: `PR_SET_CHILD_SUBREAPER`.
pub fn adopt_orphans() -> Result<(), Errno> {
    // Any id turns it on.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Keeps other users' processes, and this user's without privileges, from looking into
/// this process through `/proc`: `PR_SET_DUMPABLE` off. The next execve(2) turns it on.
pub fn shut_from_view() -> Result<(), Errno> {
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?)
}

/// Gives up the working directory for `/`, which is always there and never unmounted.
pub fn leave_working_directory() {
    // `/` can always be entered, unless a filter says otherwise; then it stays.
    let _ = rustix::process::chdir("/");
}

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The process that there was before.
    Parent,
    /// The new one.
    Child,
}

/// Makes a copy of this process that goes on on its own: fork(2).
///
/// To be called while the process has one thread.
pub fn fork() -> Result<Fork, Errno> {
    // SAFETY: with one thread no lock is held by anybody who does not exist in the
    // child, so the child may go on like any process.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::last()),
        0 => Ok(Fork::Child),
        _ => Ok(Fork::Parent),
    }
}

/// Stops this process, as the terminal's stop would: returns when it is continued.
pub fn stop_self() {
    let _ = send(Pid::own(), libc::SIGSTOP);
}

/// Ends this process by the signal that ended its job, without a core dump of its own.
///
/// Returns where that cannot be: the signal does not kill, or this is process 1.
pub fn die_by(signal: i32) {
    if Pid::own().is_init() {
        return;
    }
    // Not RLIMIT_CORE: a piped core_pattern dumps whatever the limit says.
    if shut_from_view().is_err() {
        return;
    }
    signals::dispose(signal, Disposition::Default);
    if send(Pid::own(), signal).is_ok() {
        signals::unblock(signal);
    }
}
