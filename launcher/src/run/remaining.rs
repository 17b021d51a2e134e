//! What remains of a job after its end, for `--after-exit kill`.

use crate::plan::{AfterExit, Orphans, Plan};
use crate::refusal::{Code, Refusal};
use weir_common::sys::process::{self, Pid};
use weir_common::sys::{descendants, signals};

/// Whose end weir waits for after the job's.
pub(super) enum Remaining {
    /// Nobody's: only the stream's end counts.
    Nobody,
    /// As process 1: every process.
    Everybody,
    /// Every descendant, except those that this process had before the job.
    Descendants { except: Vec<Pid> },
}

impl Remaining {
    /// Takes what the plan needs: the job's orphans, and a way to find them.
    pub(super) fn take_over(plan: &Plan) -> Result<Remaining, Refusal> {
        let kills = plan.after_exit == AfterExit::Kill;
        if Pid::own().is_init() {
            return Ok(if kills { Remaining::Everybody } else { Remaining::Nobody });
        }
        if kills || plan.orphans == Orphans::Adopted {
            process::adopt_orphans().map_err(|errno| {
                Refusal::new(Code::System, "cannot adopt the job's orphans").because(errno)
            })?;
        }
        if !kills {
            return Ok(Remaining::Nobody);
        }
        let before = match descendants::can_be_listed() {
            true => descendants::children(),
            false => Err(weir_common::Errno::ENOENT),
        };
        let except = before.map_err(|errno| {
            let refusal =
                Refusal::new(Code::System, "cannot list processes in /proc").because(errno);
            refusal.hint("--after-exit kill finds the job's descendants there")
        })?;
        Ok(Remaining::Descendants { except })
    }

    /// Sends a signal to all of them.
    pub(super) fn send(&self, signal: i32) {
        match self {
            Remaining::Nobody => {}
            Remaining::Everybody => process::send_to_everybody(signal),
            Remaining::Descendants { except } => {
                for pid in descendants::descendants(except).unwrap_or_default() {
                    let _ = process::send(pid, signal);
                }
            }
        }
    }

    /// Asks all of them to end. A stopped process would not hear it, so it is continued.
    pub(super) fn ask_to_end(&self) {
        self.send(signals::TERM);
        self.send(signals::CONT);
    }

    /// Whether none is left, after everything that has ended was reaped.
    pub(super) fn is_gone(&self, children: Children) -> bool {
        match (self, children) {
            (Remaining::Nobody, _) | (_, Children::None) => true,
            (Remaining::Everybody, Children::Some) => false,
            (Remaining::Descendants { except }, Children::Some) => {
                descendants::descendants(except).is_ok_and(|left| left.is_empty())
            }
        }
    }
}

/// Whether this process has children, as far as the last wait has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    Some,
    None,
}
