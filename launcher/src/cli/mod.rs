//! The command line: what was typed, not yet what it means.

mod args;
mod doctor;
mod help;
mod options;
#[cfg(test)]
mod properties;
mod ql3;

pub(crate) use args::Args;
pub(crate) use doctor::{Examination, Form};
pub(crate) use options::{Name, VARIABLE_PREFIX};
pub(crate) use ql3::{Launch, VARIABLES, Variable};

use crate::refusal::{Code, Refusal};
use std::ffi::OsString;

/// What the user wants.
pub(crate) enum Request {
    /// A text on standard output.
    Print(String),
    /// A job to be run.
    Run(Box<Args>),
    /// A directory to be examined.
    Doctor(Box<Examination>),
    /// A job to be run by the QingLong 3 protocol, with these words.
    Ql3(Vec<OsString>),
}

/// Reads the words after `weir`.
pub(crate) fn understand(words: impl Iterator<Item = OsString>) -> Result<Request, Refusal> {
    let mut words = words.peekable();
    let Some(command) = words.next() else {
        let refusal = Refusal::new(Code::Usage, "no command given");
        return Err(refusal.hint("weir run --log FILE -- COMMAND, or weir --help"));
    };
    match command.to_str() {
        Some("run") => args::read(words),
        Some("doctor") => doctor::read(words),
        Some("ql3") => Ok(match words.peek().and_then(|word| word.to_str()) {
            Some("--help" | "-h") => Request::Print(help::ql3()),
            // What is wrong with them is said when it is known where that may be said.
            _ => Request::Ql3(words.collect()),
        }),
        Some("--help" | "-h" | "help") => Ok(Request::Print(help::overview())),
        Some("--version" | "-V") => Ok(Request::Print(help::version())),
        _ => {
            let what = format!("unknown command {}", command.to_string_lossy());
            Err(Refusal::new(Code::Usage, what).hint("weir --help lists the commands"))
        }
    }
}
