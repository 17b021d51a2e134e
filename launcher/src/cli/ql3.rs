//! `weir ql3`'s words and variables, gathered.

use crate::refusal::{Code, Refusal};
use std::ffi::OsString;

/// How the job is told.
pub(crate) enum Launch {
    /// `argv FILE [ARG]...`.
    Argv(Vec<OsString>),
    /// `shell`: by two variables.
    Shell,
}

/// Which variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    RunId,
    AttemptId,
    CallbackSequence,
    CallbackToken,
    StartedAtMs,
    ReceiptTarget,
    ReceiptTemporary,
    Shell,
    ShellCommand,
    Fifo,
    RemainingBytes,
    MaximumBytes,
    LogArtifactId,
    FactTarget,
    FactTemporary,
}

/// The variables of the protocol, in the order of `Variable`. None reaches the job.
pub(crate) const VARIABLES: [&str; 15] = [
    "QL3_RECEIPT_RUN_ID",
    "QL3_RECEIPT_ATTEMPT_ID",
    "QL3_RECEIPT_CALLBACK_SEQUENCE",
    "QL3_RECEIPT_CALLBACK_TOKEN",
    "QL3_RECEIPT_STARTED_AT_MS",
    "QL3_RECEIPT_TARGET",
    "QL3_RECEIPT_TEMPORARY",
    "QL3_LAUNCH_SHELL",
    "QL3_LAUNCH_SHELL_COMMAND",
    "QL3_OUTPUT_QUOTA_FIFO",
    "QL3_OUTPUT_QUOTA_REMAINING_BYTES",
    "QL3_OUTPUT_MAXIMUM_BYTES",
    "QL3_OUTPUT_ARTIFACT_ID",
    "QL3_OUTPUT_TRUNCATION_TARGET",
    "QL3_OUTPUT_TRUNCATION_TEMPORARY",
];

impl Variable {
    pub(crate) fn name(self) -> &'static str {
        VARIABLES[self as usize]
    }

    /// Its value, if it is set.
    pub(crate) fn value(self) -> Option<OsString> {
        std::env::var_os(self.name())
    }

    /// The beginning of a refusal about it. A secret's value is not shown.
    pub(crate) fn refuse(self, code: Code) -> Refusal {
        let what = match (self, self.value()) {
            (Variable::CallbackToken, _) | (_, None) => self.name().to_owned(),
            (_, Some(value)) => format!("{}={}", self.name(), value.to_string_lossy()),
        };
        Refusal::new(code, what)
    }
}

impl Launch {
    /// Reads the words after `weir ql3`.
    pub(crate) fn of(words: &[OsString]) -> Result<Launch, Refusal> {
        let Some((mode, rest)) = words.split_first() else {
            return Err(usage("no mode given"));
        };
        match (mode.to_str(), rest) {
            (Some("argv"), []) => Err(usage("no command given")),
            (Some("argv"), _) => Ok(Launch::Argv(rest.to_vec())),
            (Some("shell"), []) => Ok(Launch::Shell),
            (Some("shell"), [word, ..]) => {
                Err(usage(&format!("unexpected word {}", word.to_string_lossy())))
            }
            _ => Err(usage(&format!("unknown mode {}", mode.to_string_lossy()))),
        }
    }
}

fn usage(what: &str) -> Refusal {
    Refusal::new(Code::Usage, what).hint("weir ql3 argv COMMAND [ARG]..., or weir ql3 shell")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_stands_where_its_name_says() {
        assert_eq!(Variable::RunId.name(), "QL3_RECEIPT_RUN_ID");
        assert_eq!(Variable::Shell.name(), "QL3_LAUNCH_SHELL");
        assert_eq!(Variable::Fifo.name(), "QL3_OUTPUT_QUOTA_FIFO");
        assert_eq!(Variable::FactTemporary.name(), "QL3_OUTPUT_TRUNCATION_TEMPORARY");
        assert_eq!(Variable::FactTemporary as usize + 1, VARIABLES.len());
    }
}
