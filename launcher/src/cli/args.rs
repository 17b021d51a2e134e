//! `weir run`'s words and variables, gathered.

use super::options::{Name, OPTIONS, Spec, spec};
use super::{Request, help};
use crate::refusal::{Code, Refusal};
use lexopt::Arg;
use std::ffi::{OsStr, OsString};

/// Where a value was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    CommandLine,
    Environment,
}

/// What was typed for one option.
#[derive(Clone, Debug)]
struct Typed {
    value: OsString,
    origin: Origin,
}

/// What was typed.
pub(crate) struct Args {
    given: [Option<Typed>; OPTIONS.len()],
    command: Vec<OsString>,
}

const FLAG_ON: &str = "true";

impl Args {
    /// Nothing yet.
    pub(super) fn none() -> Args {
        Args { given: [const { None }; OPTIONS.len()], command: Vec::new() }
    }

    /// Takes an option from the command line, with its value.
    pub(super) fn take(&mut self, spec: &Spec, parser: &mut lexopt::Parser) -> Result<(), Refusal> {
        let value = match spec.value {
            Some(_) => parser.value().map_err(syntax)?,
            None => parser.optional_value().unwrap_or_else(|| FLAG_ON.into()),
        };
        self.given[spec.name as usize] = Some(Typed { value, origin: Origin::CommandLine });
        Ok(())
    }

    /// Fills in what the command line leaves open, as far as it is wanted. An empty variable
    /// is as good as none.
    pub(super) fn add_environment(&mut self, wanted: impl Fn(Name) -> bool) {
        let typed = |name: Name| self.origin(name) == Some(Origin::CommandLine);
        let settled = |one: &Spec| typed(one.name) || one.rival.is_some_and(typed);
        let open = OPTIONS.iter().filter(|one| wanted(one.name) && !settled(one));
        for spec in open.collect::<Vec<_>>() {
            let value = std::env::var_os(spec.variable()).filter(|value| !value.is_empty());
            if let Some(value) = value {
                self.given[spec.name as usize] = Some(Typed { value, origin: Origin::Environment });
            }
        }
    }

    /// The value of an option, if it was given.
    pub(crate) fn value(&self, name: Name) -> Option<&OsStr> {
        self.given[name as usize].as_ref().map(|typed| typed.value.as_os_str())
    }

    /// Where an option was given, if it was.
    fn origin(&self, name: Name) -> Option<Origin> {
        self.given[name as usize].as_ref().map(|typed| typed.origin)
    }

    /// The command and its arguments; empty when none was given.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// The beginning of a refusal about an option, as the user wrote it.
    pub(crate) fn refuse(&self, code: Code, name: Name) -> Refusal {
        let value = self.value(name).unwrap_or_default().to_string_lossy();
        Refusal::new(
            code,
            match self.origin(name) {
                Some(Origin::Environment) => format!("{}={value}", spec(name).variable()),
                _ => format!("--{} {value}", spec(name).long),
            },
        )
    }

    /// Whether a flag is on.
    pub(crate) fn flag(&self, name: Name) -> Result<bool, Refusal> {
        match self.value(name).map(OsStr::to_str) {
            None => Ok(false),
            Some(Some(FLAG_ON | "1" | "yes" | "on")) => Ok(true),
            Some(Some("false" | "0" | "no" | "off")) => Ok(false),
            Some(_) => Err(self.refuse(Code::Usage, name).because("it is neither true nor false")),
        }
    }
}

/// Reads the words after `weir run`, then the environment.
pub(super) fn read(words: impl Iterator<Item = OsString>) -> Result<Request, Refusal> {
    let mut args = Args::none();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(syntax)? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => return Ok(Request::Print(help::run())),
            Arg::Long(long) => {
                let spec = OPTIONS
                    .iter()
                    .find(|spec| spec.long == long)
                    .ok_or_else(|| unknown(&format!("--{long}")))?;
                args.take(spec, &mut parser)?;
            }
            Arg::Short(short) => return Err(unknown(&format!("-{short}"))),
            Arg::Value(command) => {
                // The rest is the job's, whatever it looks like.
                args.command.push(command);
                args.command.extend(parser.raw_args().map_err(syntax)?);
                break;
            }
        }
    }
    let is_given = !args.command.is_empty();
    args.add_environment(|name| name != Name::Shell || !is_given);
    Ok(Request::Run(Box::new(args)))
}

pub(super) fn syntax(error: lexopt::Error) -> Refusal {
    Refusal::new(Code::Usage, error.to_string()).hint("weir run --help lists the options")
}

fn unknown(option: &str) -> Refusal {
    let refusal = Refusal::new(Code::Usage, format!("unknown option {option}"));
    refusal.hint("weir run --help lists the options; the job's own options go behind COMMAND")
}
