//! The controlling terminal and its foreground process group: tcsetpgrp(3).

use super::files::name_in_proc;
use super::process::{Pid, own_group};
use super::signals::{self, SignalSet};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The controlling terminal.
#[derive(Debug)]
pub struct Terminal(OwnedFd);

impl Terminal {
    /// The controlling terminal, if there is one.
    pub fn controlling() -> Option<Terminal> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        rustix::fs::open("/dev/tty", flags, Mode::empty()).ok().map(Terminal)
    }

    /// Whether this process's group is in the foreground.
    pub fn is_ours(&self) -> bool {
        self.is_of(own_group())
    }

    /// Whether the group that this process leads is in the foreground.
    pub fn is_led_by(&self, leader: Pid) -> bool {
        self.is_of(leader.raw())
    }

    fn is_of(&self, group: i32) -> bool {
        tcgetpgrp(&self.0).is_ok_and(|foreground| foreground.as_raw_nonzero().get() == group)
    }

    /// Puts another group in the foreground. The caller blocks SIGTTOU, which would
    /// stop a process that does this from the background.
    pub fn give_to(&self, leader: Pid) {
        self.set(leader.raw());
    }

    /// Puts this process's own group in the foreground again; likewise.
    pub fn take_back(&self) {
        self.set(own_group());
    }

    fn set(&self, group: i32) {
        if let Some(group) = rustix::process::Pid::from_raw(group) {
            let _ = tcsetpgrp(&self.0, group);
        }
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Another description of the terminal that a descriptor leads to, which takes what fits
/// and never blocks; `None` when it leads to no terminal, or none that can be reopened.
///
/// A terminal that is ready for writing may still block in a write of more than one byte.
pub fn never_blocking(terminal: impl AsFd) -> Option<OwnedFd> {
    let terminal = terminal.as_fd();
    if !rustix::termios::isatty(terminal) {
        return None;
    }
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(name_in_proc(terminal), flags, Mode::empty()).ok()
}

/// Blocks SIGTTOU, which the terminal sends to whoever changes it from the background.
pub fn block_background_stops() {
    signals::block(SignalSet::of(libc::SIGTTOU));
}
