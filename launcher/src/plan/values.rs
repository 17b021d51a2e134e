//! The values of single options.

use super::{AfterExit, Stdin, Sync};
use crate::cli::{Args, Name};
use crate::refusal::{Code, Refusal};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;
use std::time::Duration;
use weir_common::sys::process::Pid;
use weir_common::sys::{files, inherited};
use weir_common::{Errno, Quota, SizeError, parse_size};

/// How long weir waits for what remains after the job, unless told otherwise.
const GRACE: Duration = Duration::from_secs(5);

/// The most that an attempt can be asked to leave free: 1 TiB.
const MIN_FREE_BYTES_MAX: u64 = 1 << 40;

/// The descriptors that the caller has handed down by their numbers.
#[derive(Default)]
pub(crate) struct Handed {
    /// `--log-fd`.
    pub(crate) log: Option<OwnedFd>,
    /// `--status-fd`.
    pub(crate) status: Option<OwnedFd>,
}

/// Takes over what the caller has handed down. To be called before anything is opened.
pub(crate) fn take_handed(args: &Args) -> Result<Handed, Refusal> {
    let (log, status) = (descriptor(args, Name::LogFd)?, descriptor(args, Name::StatusFd)?);
    if log.is_some() && log == status {
        let refusal = args.refuse(Code::Usage, Name::StatusFd);
        return Err(refusal.because("it is the log, by --log-fd"));
    }
    let take = |number: Option<RawFd>, name| {
        let taken = number.map(files::take_inherited).transpose();
        taken.map_err(|errno| args.refuse(Code::Usage, name).because(errno))
    };
    let handed = Handed { log: take(log, Name::LogFd)?, status: take(status, Name::StatusFd)? };
    if let Some(status) = &handed.status {
        let refuse = |errno: Errno| args.refuse(Code::Usage, Name::StatusFd).because(errno);
        if !files::opened(status).map_err(refuse)?.writable {
            let refusal = args.refuse(Code::Usage, Name::StatusFd);
            return Err(refusal.because("it is not open for writing"));
        }
    }
    Ok(handed)
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

pub(super) fn after_exit(args: &Args) -> Result<AfterExit, Refusal> {
    let (linger, wait, kill) =
        (("linger", AfterExit::Linger), ("wait", AfterExit::Wait), ("kill", AfterExit::Kill));
    if !Pid::own().is_init() {
        return choice(args, Name::AfterExit, [linger, wait, kill]);
    }
    // When process 1 leaves, nothing is left that could drain.
    match text(args, Name::AfterExit)? {
        Some("linger") => {
            let refusal = args.refuse(Code::Usage, Name::AfterExit);
            let reason = "process 1 cannot leave anything behind";
            Err(refusal.because(reason).hint("in a container: kill (the default) or wait"))
        }
        _ => choice(args, Name::AfterExit, [kill, wait]),
    }
}

pub(super) fn grace(args: &Args) -> Result<Duration, Refusal> {
    let Some(given) = text(args, Name::Grace)? else {
        return Ok(GRACE);
    };
    parse_duration(given).ok_or_else(|| {
        let reason = "it is not a duration such as 500ms, 5s or 2m";
        args.refuse(Code::Usage, Name::Grace).because(reason)
    })
}

/// A whole number, then `ms`, `s`, `m`, `h`, or nothing for seconds.
fn parse_duration(text: &str) -> Option<Duration> {
    let digits_end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let ms = digits.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    Some(Duration::from_millis(ms))
}

/// The one of these that the user named, or else the first.
pub(super) fn choice<T: Copy, const N: usize>(
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

/// The number of a descriptor that is open, and not the job's standard input.
fn descriptor(args: &Args, name: Name) -> Result<Option<RawFd>, Refusal> {
    let Some(given) = text(args, name)? else {
        return Ok(None);
    };
    let refuse = |why: &str| Err(args.refuse(Code::Usage, name).because(why));
    match given.parse::<RawFd>() {
        Ok(0) => refuse("descriptor 0 is the job's standard input"),
        Ok(number) if number > 0 && was_open(number) => Ok(Some(number)),
        Ok(number) if number > 0 => refuse("it is not open"),
        _ => refuse("it is not the number of a descriptor"),
    }
}

/// Whether the caller had it open: where a standard one was closed, the runtime has put
/// `/dev/null`.
fn was_open(number: RawFd) -> bool {
    let standard = usize::try_from(number).ok().filter(|number| *number < 3);
    match standard {
        Some(number) => inherited::inherited().standard_open[number],
        None => files::is_open(number),
    }
}

pub(super) fn words(args: &Args) -> Result<Vec<CString>, Refusal> {
    match (args.value(Name::Shell), args.command()) {
        (None, []) => {
            let refusal = Refusal::new(Code::Usage, "no command given");
            Err(refusal.hint("weir run [OPTIONS] [--] COMMAND [ARG]..., or --shell STRING"))
        }
        (Some(_), [command, ..]) => {
            let what = format!("--shell and the command {}", command.to_string_lossy());
            Err(Refusal::new(Code::Usage, what).because("the two exclude each other"))
        }
        (Some(script), []) => c_words([OsStr::new("/bin/sh"), OsStr::new("-c"), script]),
        (None, words) => c_words(words.iter().map(OsString::as_os_str)),
    }
}

/// The words of a command, as execve(2) takes them.
pub(super) fn c_words<'a>(
    words: impl IntoIterator<Item = &'a OsStr>,
) -> Result<Vec<CString>, Refusal> {
    let word = |word: &OsStr| CString::new(word.as_bytes());
    let words: Result<Vec<CString>, _> = words.into_iter().map(word).collect();
    words.map_err(|_| Refusal::new(Code::Usage, "a word of the command has a NUL byte in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        let ms = |text| parse_duration(text).map(|duration| duration.as_millis());
        for (text, expected) in [
            ("500ms", 500),
            ("5s", 5000),
            ("5", 5000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("0", 0),
        ] {
            assert_eq!(ms(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "-1",
            "+1s",
            "1.5s",
            "1 s",
            "1d",
            "1S",
            "1sm",
            "99999999999999999999",
            "18446744073709551615h",
        ] {
            assert_eq!(ms(text), None, "{text}");
        }
    }
}
