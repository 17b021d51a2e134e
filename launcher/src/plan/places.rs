//! Where the log and the receipt go.

use crate::cli::{Args, Name};
use crate::place::{Place, Rule};
use crate::refusal::{Code, Refusal};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use weir_common::{ArtifactId, AttemptId, LogName, receipt_name, receipt_shard};

pub(super) fn log_place(args: &Args, artifact: &ArtifactId) -> Result<(Place, LogName), Refusal> {
    match (args.value(Name::Log), args.value(Name::Root)) {
        (Some(file), None) => {
            let refuse = || args.refuse(Code::Usage, Name::Log);
            let (directory, name) = split(Path::new(file)).map_err(|why| refuse().because(why))?;
            let log = LogName::new(name).map_err(|why| refuse().because(why))?;
            Ok((Place::plain(directory), log))
        }
        (None, Some(root)) if root.is_empty() => {
            Err(args.refuse(Code::Usage, Name::Root).because("it is empty"))
        }
        (None, Some(root)) => {
            Ok((Place::sharded(Path::new(root), artifact.shard()), LogName::of(artifact)))
        }
        (Some(_), Some(_)) => Err(both(args, Name::Log, Name::Root)),
        (None, None) => {
            let refusal = Refusal::new(Code::Usage, "no log given");
            Err(refusal.hint("--log FILE, or --root DIR with --run-id and --attempt-id"))
        }
    }
}

pub(super) fn receipt_place(
    args: &Args,
    attempt: &AttemptId,
) -> Result<Option<(Place, OsString)>, Refusal> {
    match (args.value(Name::Receipt), args.value(Name::ReceiptRoot)) {
        (None, None) => Ok(None),
        (Some(file), None) => {
            let refuse = || args.refuse(Code::Usage, Name::Receipt);
            let (directory, name) = split(Path::new(file)).map_err(|why| refuse().because(why))?;
            // A draft may stand beside it: `.` before, `.receipt.tmp~` behind.
            if name.len() > 241 {
                return Err(refuse().because("its name is longer than 241 bytes"));
            }
            Ok(Some((Place::plain(directory), name.to_owned())))
        }
        (None, Some(root)) if root.is_empty() => {
            Err(args.refuse(Code::Usage, Name::ReceiptRoot).because("it is empty"))
        }
        (None, Some(root)) => {
            let place = Place::sharded(Path::new(root), receipt_shard(attempt));
            Ok(Some((place, receipt_name(attempt).into())))
        }
        (Some(_), Some(_)) => Err(both(args, Name::Receipt, Name::ReceiptRoot)),
    }
}

/// A file's directory and name.
pub(super) fn split(path: &Path) -> Result<(&Path, &OsStr), &'static str> {
    // `file_name` overlooks what asks for a directory.
    let bytes = path.as_os_str().as_bytes();
    let names_directory = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !names_directory => {
            let here = parent.as_os_str().is_empty();
            Ok((if here { Path::new(".") } else { parent }, name))
        }
        _ => Err("it does not end in a file name"),
    }
}

fn both(args: &Args, one: Name, other: Name) -> Refusal {
    let reason = "the two exclude each other";
    let what = args.refuse(Code::Usage, one).message();
    args.refuse(Code::Usage, other).because(format!("{reason} ({what})"))
}

/// Directories under a root, or the directory of a file.
impl Place {
    pub(super) fn plain(directory: &Path) -> Place {
        Place { base: directory.to_owned(), rule: Rule::Shared, below: Vec::new() }
    }

    fn sharded(root: &Path, shard: &str) -> Place {
        match (root.parent(), root.file_name()) {
            (Some(parent), Some(name)) => {
                let here = parent.as_os_str().is_empty();
                let base = if here { Path::new(".") } else { parent }.to_owned();
                Place { base, rule: Rule::Unchecked, below: vec![name.to_owned(), shard.into()] }
            }
            // `/`, `.`, `..`: no name to look at or to create, only the directory itself.
            _ => Place { base: root.to_owned(), rule: Rule::Private, below: vec![shard.into()] },
        }
    }
}
