//! Signals on their way from weir to its job.

use crate::plan::Scope;
use weir_common::sys::process::{self, Pid};
use weir_common::sys::signals::{self, Arrived, Origin, SignalReader};
use weir_common::sys::terminal::{Terminal, block_background_stops};

/// Passes signals on to a job.
pub(super) struct Relay<'a> {
    pub(super) signals: &'a SignalReader,
    scope: Scope,
    leads_session: bool,
    /// weir's terminal, which a job's own group gets whenever weir's has it.
    terminal: Option<Terminal>,
}

impl<'a> Relay<'a> {
    pub(super) fn new(signals: &'a SignalReader, scope: Scope) -> Relay<'a> {
        let terminal = match scope {
            Scope::Job => None,
            Scope::Group => Terminal::controlling(),
        };
        if terminal.is_some() {
            // weir takes the terminal back from the background.
            block_background_stops();
        }
        Relay { signals, scope, leads_session: process::leads_session(), terminal }
    }

    pub(super) fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    /// Passes on whatever has arrived by now: of a signal that is older than the job,
    /// or arrived while it was made, nobody but weir can know.
    pub(super) fn pass_on_early(&self, job: Pid) {
        while let Some(arrived) = self.signals.next() {
            if arrived.signal != signals::CHLD && arrived.origin != Origin::Ourselves {
                self.send(job, arrived.signal);
            }
        }
    }

    /// Passes on one signal to a job that has not been reaped.
    pub(super) fn pass_on(&self, job: Pid, arrived: Arrived) {
        if is_for_job(arrived, self.scope, self.leads_session) {
            self.send(job, arrived.signal);
        }
    }

    fn send(&self, job: Pid, signal: i32) {
        // A shell that continues weir in the foreground has given it the terminal.
        if let (signals::CONT, Some(terminal)) = (signal, &self.terminal) {
            if terminal.is_ours() {
                terminal.give_to(job);
            }
        }
        // A job that has ended is not reaped yet, so this is still it.
        if self.scope == Scope::Group {
            let _ = process::send_to_group(job, signal);
            if process::leads_its_group(job) {
                return;
            }
        }
        let _ = process::send(job, signal);
    }

    /// The job has been stopped by its terminal: weir stops with it, as it would in one
    /// group with it. A job that wants the terminal while weir has it gets it.
    pub(super) fn stop_with(&self, job: Pid, signal: i32) {
        let Some(terminal) = &self.terminal else { return };
        match signal {
            signals::TTIN | signals::TTOU if terminal.is_ours() => {
                self.send(job, signals::CONT);
                return;
            }
            signals::TSTP | signals::TTIN | signals::TTOU => {}
            // Somebody else's business, who will continue it too.
            _ => return,
        }
        if process::nobody_would_continue() {
            // As the kernel does: nobody stops a group that nobody would continue.
            self.send(job, signals::CONT);
            return;
        }
        self.take_terminal_back(job);
        process::stop_self();
    }

    /// Takes the terminal back from a job that has been stopped or has ended; not from a
    /// shell that has taken it meanwhile, and put weir and its job in the background.
    pub(super) fn take_terminal_back(&self, job: Pid) {
        if let Some(terminal) = self.terminal.as_ref().filter(|one| one.is_led_by(job)) {
            terminal.take_back();
        }
    }
}

/// Whether the job should get a signal that weir has got.
fn is_for_job(arrived: Arrived, scope: Scope, leads_session: bool) -> bool {
    match (arrived.origin, arrived.signal) {
        (_, signals::CHLD) | (Origin::Ourselves, _) => false,
        // A group of its own has got nothing that weir's has got.
        (Origin::Kernel, _) if scope == Scope::Group => true,
        // From a terminal, to its whole foreground group: the job has it already.
        (Origin::Kernel, signals::INT | signals::QUIT | signals::WINCH) => false,
        // A hang-up goes to the session's leader alone.
        (Origin::Kernel, signals::HUP | signals::CONT) => leads_session,
        (Origin::Kernel | Origin::Other, _) => true,
    }
}

/// Whether a signal that arrives after the job's end asks weir to end as well.
pub(super) fn asks_to_end(signal: i32) -> bool {
    matches!(signal, signals::HUP | signals::INT | signals::QUIT | signals::TERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_gets_what_it_would_not_get_otherwise() {
        let arrived = |signal, origin| Arrived { signal, origin };
        for signal in 1..=64 {
            let from_terminal = [signals::INT, signals::QUIT, signals::WINCH].contains(&signal);
            let hang_up = [signals::HUP, signals::CONT].contains(&signal);
            for leads_session in [false, true] {
                let gets =
                    |origin, scope| is_for_job(arrived(signal, origin), scope, leads_session);
                for scope in [Scope::Job, Scope::Group] {
                    assert_eq!(gets(Origin::Other, scope), signal != signals::CHLD, "{signal}");
                    assert!(!gets(Origin::Ourselves, scope), "{signal}");
                }
                assert_eq!(gets(Origin::Kernel, Scope::Group), signal != signals::CHLD);
                let expected = match signal {
                    signals::CHLD => false,
                    _ if hang_up => leads_session,
                    _ => !from_terminal,
                };
                assert_eq!(gets(Origin::Kernel, Scope::Job), expected, "{signal} {leads_session}");
            }
        }
    }
}
