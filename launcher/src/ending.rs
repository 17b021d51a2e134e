//! Leaving as the job did.

use crate::plan::Leaving;
use weir_common::sys::process::{self, End};

/// How weir leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// With this exit code.
    Code(u8),
    /// By this signal, or with 128 + its number where that cannot be.
    Signal(i32),
}

impl Leave {
    pub(crate) fn as_job(end: End, leaving: Leaving) -> Leave {
        match (end, leaving) {
            (End::Code(code), _) => Leave::Code(code),
            (End::Signal { number, .. }, Leaving::BySignal) => Leave::Signal(number),
            (End::Signal { number, .. }, Leaving::ByCode) => Leave::Code(code_of(number)),
        }
    }

    /// The exit code that says the same.
    pub(crate) fn code(self) -> u8 {
        match self {
            Leave::Code(code) => code,
            Leave::Signal(number) => code_of(number),
        }
    }

    /// Leaves. What must be removed or told is removed and told by now.
    pub(crate) fn now(self) -> ! {
        if let Leave::Signal(number) = self {
            process::die_by(number);
        }
        std::process::exit(i32::from(self.code()))
    }
}

/// The code for death by a signal, as shells have it: signals go to 64.
fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
