//! Why weir does not start a job, in the words that it says so in.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use weir_common::Errno;

macro_rules! codes {
    ($($name:ident = $text:literal, $exit:literal;)*) => {
        /// The stable code of a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($name),* }

        impl Code {
            /// The code as it is printed.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text),* }
            }

            /// The exit status that goes with it.
            pub(crate) fn exit_code(self) -> u8 {
                match self { $(Code::$name => $exit),* }
            }
        }
    };
}

codes! {
    Usage = "usage", 125;
    CapacityUnavailable = "capacity-unavailable", 125;
    QuotaOutOfRange = "quota-out-of-range", 125;
    LogUnsafe = "log-unsafe", 125;
    LogOverQuota = "log-over-quota", 125;
    LogBusy = "log-busy", 125;
    LogSealed = "log-sealed", 125;
    DirectoryUnsafe = "directory-unsafe", 125;
    RecordsUnsupported = "records-unsupported", 125;
    FifoBlocked = "fifo-blocked", 125;
    FifoUnsupported = "fifo-unsupported", 125;
    NotFound = "not-found", 127;
    NotExecutable = "not-executable", 126;
    System = "system", 125;
}

/// One refusal: `weir: error[<code>]: <what> <path>: <reason>`, and perhaps a hint.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: Code,
    what: String,
    path: Option<PathBuf>,
    reason: Option<String>,
    hint: Option<String>,
}

impl Refusal {
    /// What was attempted, without the path that it is about.
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Refusal {
        Refusal { code, what: what.into(), path: None, reason: None, hint: None }
    }

    pub(crate) fn at(self, path: impl AsRef<Path>) -> Refusal {
        Refusal { path: Some(path.as_ref().to_owned()), ..self }
    }

    pub(crate) fn because(self, reason: impl Display) -> Refusal {
        Refusal { reason: Some(reason.to_string()), ..self }
    }

    /// What the reader can do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Refusal {
        Refusal { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// The line without its prefix, as status lines carry it.
    pub(crate) fn message(&self) -> String {
        let mut message = printable(&self.what);
        if let Some(path) = &self.path {
            message.push(' ');
            message.push_str(&printable(&path.to_string_lossy()));
        }
        if let Some(reason) = &self.reason {
            message.push_str(": ");
            message.push_str(&printable(reason));
        }
        message
    }

    /// The first line, as it is printed and told in the log.
    pub(crate) fn line(&self) -> String {
        format!("weir: error[{}]: {}\n", self.code.as_str(), self.message())
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A text on one line: control characters are shown as escapes.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, char| {
        match char.is_control() {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
        shown
    })
}

/// The code for a creation that the system refused: no room is told from the rest.
pub(crate) fn creation_code(errno: Errno, otherwise: Code) -> Code {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => Code::CapacityUnavailable,
        _ => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_and_a_hint() {
        let refusal = Refusal::new(Code::LogUnsafe, "cannot open log")
            .at("/v/a\nb")
            .because("it is\ta symbolic link")
            .hint("remove it");
        let expected = "weir: error[log-unsafe]: cannot open log /v/a\\nb: it is\\ta symbolic link\n\
                        hint: remove it\n";
        assert_eq!(refusal.to_string(), expected);
    }
}
