//! The values of single options.

use super::{Stdin, Sync};
use crate::cli::{Args, Name};
use crate::refusal::{Code, Refusal};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;
use weir_common::sys::files;
use weir_common::{Errno, Quota, SizeError, parse_size};

/// The most that an attempt can be asked to leave free: 1 TiB.
const MIN_FREE_BYTES_MAX: u64 = 1 << 40;

/// The status descriptor, taken over from the caller.
pub(crate) fn status_descriptor(args: &Args) -> Result<Option<OwnedFd>, Refusal> {
    let Some(number) = descriptor(args, Name::StatusFd)? else {
        return Ok(None);
    };
    let refuse = |errno: Errno| args.refuse(Code::Usage, Name::StatusFd).because(errno);
    if number == 0 {
        let refusal = args.refuse(Code::Usage, Name::StatusFd);
        return Err(refusal.because("descriptor 0 is the job's standard input"));
    }
    if descriptor(args, Name::LogFd)? == Some(number) {
        let refusal = args.refuse(Code::Usage, Name::StatusFd);
        return Err(refusal.because("it is the log, by --log-fd"));
    }
    let status = files::take_inherited(number).map_err(refuse)?;
    match files::opened(&status).map_err(refuse)?.writable {
        true => Ok(Some(status)),
        false => {
            Err(args.refuse(Code::Usage, Name::StatusFd).because("it is not open for writing"))
        }
    }
}

pub(super) fn text(args: &Args, name: Name) -> Result<Option<&str>, Refusal> {
    let Some(value) = args.value(name) else {
        return Ok(None);
    };
    let value = value.to_str();
    value.map(Some).ok_or_else(|| args.refuse(Code::Usage, name).because("it is not UTF-8"))
}

pub(super) fn id<T: FromStr<Err: std::fmt::Display>>(
    args: &Args,
    name: Name,
    made_up: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Refusal> {
    match text(args, name)? {
        Some(given) => given.parse().map_err(|why| args.refuse(Code::Usage, name).because(why)),
        None => made_up()
            .map_err(|errno| Refusal::new(Code::System, "cannot make up an id").because(errno)),
    }
}

#[derive(Clone, Copy)]
pub(super) struct Profile {
    quota: Quota,
    min_free_bytes: u64,
}

pub(super) fn profile(args: &Args) -> Result<Profile, Refusal> {
    let profile = |quota_mib: u64, min_free_mib: u64| {
        let quota = Quota::new(quota_mib << 20).unwrap_or(Quota::MAX);
        Profile { quota, min_free_bytes: min_free_mib << 20 }
    };
    let choices = [("standalone", profile(64, 256)), ("edge", profile(4, 32))];
    choice(args, Name::Profile, choices)
}

fn size(args: &Args, name: Name, too_large: Code) -> Result<Option<u64>, Refusal> {
    let Some(given) = text(args, name)? else {
        return Ok(None);
    };
    match parse_size(given) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(why @ SizeError::TooLarge) => Err(args.refuse(too_large, name).because(why)),
        Err(why) => Err(args.refuse(Code::Usage, name).because(why)),
    }
}

pub(super) fn quota(args: &Args, profile: Profile) -> Result<Quota, Refusal> {
    let out_of_range = Code::QuotaOutOfRange;
    match size(args, Name::Quota, out_of_range)? {
        None => Ok(profile.quota),
        Some(bytes) => {
            Quota::new(bytes).map_err(|why| args.refuse(out_of_range, Name::Quota).because(why))
        }
    }
}

pub(super) fn min_free(args: &Args, profile: Profile) -> Result<u64, Refusal> {
    match size(args, Name::MinFree, Code::Usage)? {
        None => Ok(profile.min_free_bytes),
        Some(bytes) if bytes <= MIN_FREE_BYTES_MAX => Ok(bytes),
        Some(_) => Err(args.refuse(Code::Usage, Name::MinFree).because("it is more than 1 TiB")),
    }
}

pub(super) fn sync(args: &Args) -> Result<Sync, Refusal> {
    let choices = [("full", Sync::Full), ("records", Sync::Records), ("none", Sync::None)];
    choice(args, Name::Sync, choices)
}

pub(super) fn stdin(args: &Args) -> Result<Stdin, Refusal> {
    choice(args, Name::Stdin, [("inherit", Stdin::Inherited), ("null", Stdin::Null)])
}

/// The one of these that the user named, or else the first.
fn choice<T: Copy, const N: usize>(
    args: &Args,
    name: Name,
    choices: [(&str, T); N],
) -> Result<T, Refusal> {
    let given = text(args, name)?;
    let chosen = choices.iter().find(|(word, _)| given.is_none_or(|given| given == *word));
    chosen.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let words = choices.map(|(word, _)| word).join(", ");
        args.refuse(Code::Usage, name).because(format_args!("it is not one of {words}"))
    })
}

pub(super) fn descriptor(args: &Args, name: Name) -> Result<Option<RawFd>, Refusal> {
    let Some(given) = text(args, name)? else {
        return Ok(None);
    };
    match given.parse::<RawFd>() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        _ => Err(args.refuse(Code::Usage, name).because("it is not the number of a descriptor")),
    }
}

pub(super) fn words(args: &Args) -> Result<Vec<CString>, Refusal> {
    let given: Vec<&OsStr> = match (args.value(Name::Shell), args.command()) {
        (None, []) => {
            let refusal = Refusal::new(Code::Usage, "no command given");
            return Err(refusal.hint("weir run [OPTIONS] [--] COMMAND [ARG]..., or --shell STRING"));
        }
        (Some(_), [command, ..]) => {
            let what = format!("--shell and the command {}", command.to_string_lossy());
            return Err(Refusal::new(Code::Usage, what).because("the two exclude each other"));
        }
        (Some(script), []) => vec![OsStr::new("/bin/sh"), OsStr::new("-c"), script],
        (None, words) => words.iter().map(OsString::as_os_str).collect(),
    };
    let word = |word: &OsStr| CString::new(word.as_bytes());
    let words: Result<Vec<CString>, _> = given.into_iter().map(word).collect();
    words.map_err(|_| Refusal::new(Code::Usage, "a word of the command has a NUL byte in it"))
}
