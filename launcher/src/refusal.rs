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
///
/// It is the seldom way out of nearly every function, and each of them has room for it where
/// it returns: so it is a pointer, and what makes one is kept apart from what runs.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Words>);

#[derive(Debug)]
struct Words {
    code: Code,
    what: String,
    path: Option<PathBuf>,
    reason: Option<String>,
    hint: Option<String>,
}

impl Refusal {
    /// What was attempted, without the path that it is about.
    #[cold]
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Refusal {
        let what = what.into();
        Refusal(Box::new(Words { code, what, path: None, reason: None, hint: None }))
    }

    #[cold]
    pub(crate) fn at(mut self, path: impl AsRef<Path>) -> Refusal {
        self.0.path = Some(path.as_ref().to_owned());
        self
    }

    #[cold]
    pub(crate) fn because(mut self, reason: impl Display) -> Refusal {
        self.0.reason = Some(reason.to_string());
        self
    }

    /// What the reader can do about it.
    #[cold]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.0.code
    }

    /// The line without its prefix, as status lines carry it.
    #[cold]
    pub(crate) fn message(&self) -> String {
        let mut message = printable(&self.0.what);
        if let Some(path) = &self.0.path {
            message.push(' ');
            message.push_str(&printable(&path.to_string_lossy()));
        }
        if let Some(reason) = &self.0.reason {
            message.push_str(": ");
            message.push_str(&printable(reason));
        }
        message
    }

    /// The first line, as it is printed and told in the log.
    #[cold]
    pub(crate) fn line(&self) -> String {
        format!("weir: error[{}]: {}\n", self.0.code.as_str(), self.message())
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        match &self.0.hint {
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
