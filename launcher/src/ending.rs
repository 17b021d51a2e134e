//! Leaving as the job did.

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
    pub(crate) fn as_job(end: End) -> Leave {
        match end {
            End::Code(code) => Leave::Code(code),
            End::Signal { number, .. } => Leave::Signal(number),
        }
    }

    /// Leaves. What must be removed or told is removed and told by now.
    pub(crate) fn now(self) -> ! {
        let code = match self {
            Leave::Code(code) => i32::from(code),
            Leave::Signal(number) => {
                process::die_by(number);
                128 + number
            }
        };
        std::process::exit(code)
    }
}
