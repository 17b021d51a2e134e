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

    /// This process.
    pub fn own() -> Pid {
        Pid(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Whether it is the first of its pid namespace, which no signal kills by default.
    pub const fn is_init(self) -> bool {
        self.0 == 1
    }
}

/// Whether this process leads its session: a hang-up of the terminal reaches it alone.
pub fn leads_session() -> bool {
    rustix::process::getsid(None).is_ok_and(|session| session == rustix::process::getpid())
}

/// This process's effective user id.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
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

/// Reaps one ended child, any that there is. Never waits: wait4(2) with `WNOHANG`.
pub fn reap() -> Option<Reaped> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both out-pointers are alive and of the types that wait4(2) fills; an
    // all-zero rusage is valid where it fills nothing.
    let (answer, usage) = unsafe {
        let answer = libc::wait4(-1, &mut status, libc::WNOHANG, usage.as_mut_ptr());
        (answer, usage.assume_init())
    };
    // With WNOHANG there is no EINTR; ECHILD and "none yet" are both nothing to reap.
    if answer <= 0 {
        return None;
    }
    let end = if libc::WIFSIGNALED(status) {
        End::Signal { number: libc::WTERMSIG(status), core_dumped: libc::WCOREDUMP(status) }
    } else {
        End::Code(libc::WEXITSTATUS(status) as u8)
    };
    Some(Reaped { pid: Pid::new(answer), end, usage: usage_of(&usage) })
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

/// Sends a signal, real-time ones too: kill(2).
pub fn send(to: Pid, signal: i32) -> Result<(), Errno> {
    // SAFETY: kill(2) takes two numbers; a `Pid` is positive, so it is one process.
    match unsafe { libc::kill(to.raw(), signal) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// Ends this process by the signal that ended its job, without a core dump of its own.
///
/// Returns where that cannot be: the signal does not kill, or this is process 1.
pub fn die_by(signal: i32) {
    if Pid::own().is_init() {
        return;
    }
    // Not RLIMIT_CORE: a piped core_pattern dumps whatever the limit says.
    let quiet = rustix::process::DumpableBehavior::NotDumpable;
    if rustix::process::set_dumpable_behavior(quiet).is_err() {
        return;
    }
    signals::dispose(signal, Disposition::Default);
    if send(Pid::own(), signal).is_ok() {
        signals::unblock(signal);
    }
}
