//! `weir doctor`'s words: the directory, and the options of the runs that are meant for it.

use super::args::{Args, syntax};
use super::options::{Name, OPTIONS};
use super::{Request, help};
use crate::refusal::{Code, Refusal};
use lexopt::Arg;
use std::ffi::OsString;

/// The options of `weir run` that a directory can be good or bad for.
pub(super) const HEEDED: [Name; 8] = [
    Name::Root,
    Name::Quota,
    Name::MinFree,
    Name::Reserve,
    Name::Profile,
    Name::Receipt,
    Name::ReceiptRoot,
    Name::Sync,
];

const HINT: &str = "weir doctor --help lists the options";

/// What is to be examined, and how that is told.
pub(crate) struct Examination {
    /// The options of the runs that are meant for it.
    pub(crate) args: Args,
    /// The directory of their logs; `None` where they have a root.
    pub(crate) directory: Option<OsString>,
    pub(crate) form: Form,
}

/// How a report looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Table,
    Json,
}

/// Reads the words after `weir doctor`, then the environment.
pub(super) fn read(words: impl Iterator<Item = OsString>) -> Result<Request, Refusal> {
    let (mut args, mut directory, mut form) = (Args::none(), None, Form::Table);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(|error| syntax(error).hint(HINT))? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => return Ok(Request::Print(help::doctor())),
            Arg::Long("json") => form = Form::Json,
            Arg::Long(long) => {
                let spec = OPTIONS.iter().find(|one| one.long == long && is_heeded(one.name));
                let spec = spec.ok_or_else(|| unknown(&format!("--{long}")))?;
                args.take(spec, &mut parser).map_err(|refusal| refusal.hint(HINT))?;
            }
            Arg::Short(short) => return Err(unknown(&format!("-{short}"))),
            Arg::Value(word) if directory.is_none() => directory = Some(word),
            Arg::Value(word) => {
                let what = format!("a second directory {}", word.to_string_lossy());
                return Err(Refusal::new(Code::Usage, what).hint("one at a time"));
            }
        }
    }
    if directory.is_some() && args.value(Name::Root).is_some() {
        let refusal = args.refuse(Code::Usage, Name::Root);
        return Err(refusal.because("it excludes a directory of logs that are named by --log"));
    }
    args.add_environment(is_heeded);
    // A directory that was named wins over a root that a variable names.
    if directory.is_none() && args.value(Name::Root).is_none() {
        let refusal = Refusal::new(Code::Usage, "no directory given");
        return Err(refusal.hint("weir doctor DIR, or weir doctor --root DIR"));
    }
    Ok(Request::Doctor(Box::new(Examination { args, directory, form })))
}

fn is_heeded(name: Name) -> bool {
    HEEDED.contains(&name)
}

fn unknown(option: &str) -> Refusal {
    Refusal::new(Code::Usage, format!("unknown option {option}")).hint(HINT)
}
