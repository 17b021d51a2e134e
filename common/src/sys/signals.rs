//! Signal sets, and the descriptor that signals are read from.
//!
//! Sets are the kernel's own 64 bits and go to it directly: the C libraries keep
//! some real-time signals to themselves, a launcher must pass them all.

use super::errno::Errno;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A set of signals as the kernel keeps it: signal n is bit n−1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    /// The set with these bits.
    pub const fn from_bits(bits: u64) -> SignalSet {
        SignalSet(bits)
    }

    /// Every signal.
    pub const ALL: SignalSet = SignalSet(u64::MAX);

    /// The bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether the signal is in the set.
    pub const fn contains(self, signal: i32) -> bool {
        self.0 & SignalSet::bit(signal) != 0
    }

    /// The set of this signal alone.
    pub const fn of(signal: i32) -> SignalSet {
        SignalSet(SignalSet::bit(signal))
    }

    const fn bit(signal: i32) -> u64 {
        1 << (signal - 1)
    }

    const fn all_but(left_out: &[i32]) -> SignalSet {
        let mut bits = u64::MAX;
        let mut at = 0;
        while at < left_out.len() {
            bits &= !SignalSet::bit(left_out[at]);
            at += 1;
        }
        SignalSet(bits)
    }
}

/// SIGCHLD: a child has ended.
pub const CHLD: i32 = libc::SIGCHLD;
/// SIGCONT: go on.
pub const CONT: i32 = libc::SIGCONT;
/// SIGHUP: the terminal is gone, or whatever else a program takes it for.
pub const HUP: i32 = libc::SIGHUP;
/// SIGINT: Ctrl-C.
pub const INT: i32 = libc::SIGINT;
/// SIGKILL: end at once.
pub const KILL: i32 = libc::SIGKILL;
/// SIGQUIT: Ctrl-\\.
pub const QUIT: i32 = libc::SIGQUIT;
/// SIGTERM: end.
pub const TERM: i32 = libc::SIGTERM;
/// SIGTSTP: Ctrl-Z.
pub const TSTP: i32 = libc::SIGTSTP;
/// SIGTTIN: a read of the terminal from the background.
pub const TTIN: i32 = libc::SIGTTIN;
/// SIGTTOU: a change of the terminal from the background.
pub const TTOU: i32 = libc::SIGTTOU;
/// SIGWINCH: the terminal has another size.
pub const WINCH: i32 = libc::SIGWINCH;

/// The signals that a launcher reads instead of suffering them: every one except
/// those that cannot be caught, the synchronous faults, and the terminal's stops
/// (which are meant for the launcher itself as much as for its job).
pub const READ_BY_LAUNCHER: SignalSet = SignalSet::all_but(&[
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
]);

const SET_BYTES: usize = size_of::<u64>();

fn change_mask(how: i32, set: Option<&u64>) -> u64 {
    let mut old = 0u64;
    let new = set.map_or(std::ptr::null(), |set| set as *const u64);
    // SAFETY: rt_sigprocmask(2) reads one kernel set and writes another, both of
    // SET_BYTES bytes and both alive here; it cannot fail with these arguments.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new, &mut old as *mut u64, SET_BYTES) };
    old
}

/// The calling thread's blocked signals.
pub fn current_mask() -> SignalSet {
    SignalSet(change_mask(libc::SIG_BLOCK, None))
}

/// Blocks signals in this thread and in the threads that it starts.
pub fn block(set: SignalSet) {
    change_mask(libc::SIG_BLOCK, Some(&set.0));
}

/// Replaces the calling thread's blocked signals. Async-signal-safe.
pub fn set_mask(set: SignalSet) {
    change_mask(libc::SIG_SETMASK, Some(&set.0));
}

/// Unblocks one signal.
pub(crate) fn unblock(signal: i32) {
    change_mask(libc::SIG_UNBLOCK, Some(&SignalSet::bit(signal)));
}

/// What a signal does when nobody catches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Default,
    Ignored,
}

/// The kernel's sigaction, as far as it matters here: the handler comes first, and
/// flags, restorer and mask behind it may all be zero for a signal without one. Larger
/// than it is on any architecture.
type KernelAction = [usize; 8];

/// Exchanges what a signal does, by rt_sigaction(2) itself: the C libraries refuse to
/// touch the real-time signals that they keep to themselves.
fn exchange(signal: i32, new: Option<KernelAction>) -> KernelAction {
    let mut old: KernelAction = [0; 8];
    let new = new.as_ref().map_or(std::ptr::null(), |new| new.as_ptr());
    // SAFETY: both pointers are null or lead to more bytes than the kernel's structure
    // has, and SIG_DFL and SIG_IGN run no code of this process.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old.as_mut_ptr(), SET_BYTES) };
    old
}

/// Whether the process ignores the signal. Async-signal-safe.
pub(crate) fn is_ignored(signal: i32) -> bool {
    exchange(signal, None)[0] == libc::SIG_IGN
}

/// Sets what a signal does. Async-signal-safe.
pub(crate) fn dispose(signal: i32, how: Disposition) {
    replace(signal, how);
}

/// Makes a write to a closed pipe an error and nothing worse. Says whether it was so before.
pub(super) fn ignore_pipe() -> bool {
    replace(libc::SIGPIPE, Disposition::Ignored) == libc::SIG_IGN
}

/// Sets what a signal does, and says what handled it before.
fn replace(signal: i32, how: Disposition) -> usize {
    let handler = match how {
        Disposition::Default => libc::SIG_DFL,
        Disposition::Ignored => libc::SIG_IGN,
    };
    let mut action: KernelAction = [0; 8];
    action[0] = handler;
    exchange(signal, Some(action))[0]
}

/// Makes ended children wait to be reaped, whatever was inherited for SIGCHLD.
/// Says whether it had been ignored, which a job must then inherit again.
pub fn keep_ended_children() -> bool {
    let ignored = is_ignored(libc::SIGCHLD);
    if ignored {
        dispose(libc::SIGCHLD, Disposition::Default);
    }
    ignored
}

/// One signal that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// Where it came from.
    pub origin: Origin,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The kernel: a terminal, an alarm, a limit.
    Kernel,
    /// This process itself, by a write to a closed pipe or past a limit.
    Ourselves,
    /// Another process.
    Other,
}

/// The descriptor that blocked signals are read from: signalfd(2).
#[derive(Debug)]
pub struct SignalReader(OwnedFd);

impl SignalReader {
    /// Blocks the set and reads it from now on. A blocked signal waits here even when
    /// its disposition is to be ignored.
    pub fn new(set: SignalSet) -> Result<SignalReader, Errno> {
        block(set);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the kernel reads one set of SET_BYTES bytes, alive here, and
        // answers a new descriptor or -1.
        let answer = unsafe {
            libc::syscall(libc::SYS_signalfd4, -1, &set.0 as *const u64, SET_BYTES, flags)
        };
        if answer < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor is new, and nobody else owns it.
        Ok(SignalReader(unsafe { OwnedFd::from_raw_fd(answer as i32) }))
    }

    /// The next signal that has arrived, if any. Never waits.
    pub fn next(&self) -> Option<Arrived> {
        // signalfd_siginfo: signo u32, errno i32, code i32, pid u32, …, 128 bytes in all.
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut info)) {
            Ok(got) if got == info.len() => {}
            _ => return None,
        }
        let word = |at: usize| [info[at], info[at + 1], info[at + 2], info[at + 3]];
        let (signal, code) = (i32::from_ne_bytes(word(0)), i32::from_ne_bytes(word(8)));
        let sender = i32::from_ne_bytes(word(12));
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let origin = match code {
            libc::SI_KERNEL => Origin::Kernel,
            _ if sender == own => Origin::Ourselves,
            _ => Origin::Other,
        };
        Some(Arrived { signal, origin })
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_leaves_faults_and_terminal_stops_alone() {
        let left: Vec<i32> = (1..=64).filter(|n| !READ_BY_LAUNCHER.contains(*n)).collect();
        let mut expected = vec![
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGKILL,
            libc::SIGSEGV,
            libc::SIGSTOP,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
            libc::SIGSYS,
        ];
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}
