//! What was typed, understood: everything that a run needs to know, checked as far as
//! that goes without touching anything.

use crate::cli::{Args, Name};
use crate::refusal::{Code, Refusal};
use crate::run::place::{self, Place, Rule};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use weir_common::sys::files;
use weir_common::{
    ArtifactId, AttemptId, Errno, LogName, Quota, RunId, parse_size, receipt_name, receipt_shard,
};

/// The most that an attempt can be asked to leave free: 1 TiB.
const MIN_FREE_BYTES_MAX: u64 = 1 << 40;

/// A job to be run.
pub(crate) struct Plan {
    pub(crate) run_id: RunId,
    pub(crate) attempt_id: AttemptId,
    pub(crate) artifact_id: ArtifactId,
    pub(crate) place: Place,
    pub(crate) log: LogName,
    /// Whether the caller can know where the log is without being told.
    pub(crate) whereabouts: Whereabouts,
    pub(crate) given_log: Option<RawFd>,
    pub(crate) quota: Quota,
    pub(crate) min_free_bytes: u64,
    pub(crate) receipt: Option<ReceiptPlan>,
    pub(crate) beginning: Beginning,
    pub(crate) sync: Sync,
    pub(crate) output: Output,
    pub(crate) words: Vec<CString>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) stdin: Stdin,
    pub(crate) chatter: Chatter,
}

/// Where a receipt goes.
pub(crate) struct ReceiptPlan {
    pub(crate) place: Place,
    pub(crate) name: OsString,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    Known,
    MadeUp,
}

/// What becomes of an earlier start's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It is continued, within the quota.
    Replay,
    /// `--fresh`: it is removed, with its records.
    Fresh,
}

/// What is put on disk before weir leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    Full,
    Records,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Log,
    LogAndTee,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    Inherited,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chatter {
    Notes,
    ErrorsOnly,
}

impl Plan {
    pub(crate) fn of(args: &Args) -> Result<Plan, Refusal> {
        let run_id = id(args, Name::RunId, RunId::random)?;
        let attempt_id = id(args, Name::AttemptId, AttemptId::random)?;
        let artifact_id = ArtifactId::of(&run_id, &attempt_id);
        let (place, log) = log_place(args, &artifact_id)?;
        let profile = profile(args)?;
        let made_up = args.value(Name::RunId).is_none() || args.value(Name::AttemptId).is_none();
        let by_ids = args.value(Name::Root).is_some();
        let plan = Plan {
            receipt: receipt_plan(args, &attempt_id)?,
            whereabouts: if by_ids && made_up { Whereabouts::MadeUp } else { Whereabouts::Known },
            given_log: descriptor(args, Name::LogFd)?,
            quota: quota(args, profile)?,
            min_free_bytes: min_free(args, profile)?,
            beginning: if args.flag(Name::Fresh)? { Beginning::Fresh } else { Beginning::Replay },
            sync: sync(args)?,
            output: if args.flag(Name::Tee)? { Output::LogAndTee } else { Output::Log },
            words: words(args)?,
            directory: args.value(Name::Chdir).map(PathBuf::from),
            stdin: stdin(args)?,
            chatter: if args.flag(Name::Quiet)? { Chatter::ErrorsOnly } else { Chatter::Notes },
            run_id,
            attempt_id,
            artifact_id,
            place,
            log,
        };
        check_combinations(args, &plan)?;
        Ok(plan)
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        place::join(&self.place.path(), self.log.as_os_str())
    }

    /// How much of the quota is left to a log of this length.
    pub(crate) fn remaining_bytes(&self, log_bytes: u64) -> u64 {
        self.quota.bytes().saturating_sub(log_bytes)
    }
}

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

fn text(args: &Args, name: Name) -> Result<Option<&str>, Refusal> {
    let Some(value) = args.value(name) else {
        return Ok(None);
    };
    let value = value.to_str();
    value.map(Some).ok_or_else(|| args.refuse(Code::Usage, name).because("it is not UTF-8"))
}

fn id<T: FromStr<Err: std::fmt::Display>>(
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

fn log_place(args: &Args, artifact: &ArtifactId) -> Result<(Place, LogName), Refusal> {
    match (args.value(Name::Log), args.value(Name::Root)) {
        (Some(file), None) => {
            let refuse = || args.refuse(Code::Usage, Name::Log);
            let (directory, name) = split(Path::new(file)).map_err(|why| refuse().because(why))?;
            let log = LogName::new(name).map_err(|why| refuse().because(why))?;
            Ok((Place::plain(directory), log))
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

fn receipt_plan(args: &Args, attempt: &AttemptId) -> Result<Option<ReceiptPlan>, Refusal> {
    match (args.value(Name::Receipt), args.value(Name::ReceiptRoot)) {
        (None, None) => Ok(None),
        (Some(file), None) => {
            let refuse = || args.refuse(Code::Usage, Name::Receipt);
            let (directory, name) = split(Path::new(file)).map_err(|why| refuse().because(why))?;
            // A draft may stand beside it: `.` before, `.tmp~` behind.
            if name.len() > 249 {
                return Err(refuse().because("its name is longer than 249 bytes"));
            }
            Ok(Some(ReceiptPlan { place: Place::plain(directory), name: name.to_owned() }))
        }
        (None, Some(root)) => Ok(Some(ReceiptPlan {
            place: Place::sharded(Path::new(root), receipt_shard(attempt)),
            name: receipt_name(attempt).into(),
        })),
        (Some(_), Some(_)) => Err(both(args, Name::Receipt, Name::ReceiptRoot)),
    }
}

/// A file's directory and name.
fn split(path: &Path) -> Result<(&Path, &OsStr), &'static str> {
    // `file_name` overlooks a slash at the end, which asks for a directory.
    let names_directory = path.as_os_str().as_bytes().ends_with(b"/");
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

#[derive(Clone, Copy)]
struct Profile {
    quota: Quota,
    min_free_bytes: u64,
}

fn profile(args: &Args) -> Result<Profile, Refusal> {
    let megabytes = |quota: u64, min_free: u64| {
        let quota = Quota::new(quota << 20).unwrap_or(Quota::MAX);
        Profile { quota, min_free_bytes: min_free << 20 }
    };
    match text(args, Name::Profile)? {
        None | Some("standalone") => Ok(megabytes(64, 256)),
        Some("edge") => Ok(megabytes(4, 32)),
        Some(_) => Err(args
            .refuse(Code::Usage, Name::Profile)
            .because("it is neither edge nor standalone")),
    }
}

fn size(args: &Args, name: Name, too_large: Code) -> Result<Option<u64>, Refusal> {
    let Some(given) = text(args, name)? else {
        return Ok(None);
    };
    match parse_size(given) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(why @ weir_common::SizeError::TooLarge) => {
            Err(args.refuse(too_large, name).because(why))
        }
        Err(why) => Err(args.refuse(Code::Usage, name).because(why)),
    }
}

fn quota(args: &Args, profile: Profile) -> Result<Quota, Refusal> {
    let out_of_range = Code::QuotaOutOfRange;
    match size(args, Name::Quota, out_of_range)? {
        None => Ok(profile.quota),
        Some(bytes) => {
            Quota::new(bytes).map_err(|why| args.refuse(out_of_range, Name::Quota).because(why))
        }
    }
}

fn min_free(args: &Args, profile: Profile) -> Result<u64, Refusal> {
    match size(args, Name::MinFree, Code::Usage)? {
        None => Ok(profile.min_free_bytes),
        Some(bytes) if bytes <= MIN_FREE_BYTES_MAX => Ok(bytes),
        Some(_) => Err(args.refuse(Code::Usage, Name::MinFree).because("it is more than 1 TiB")),
    }
}

fn sync(args: &Args) -> Result<Sync, Refusal> {
    match text(args, Name::Sync)? {
        None | Some("full") => Ok(Sync::Full),
        Some("records") => Ok(Sync::Records),
        Some("none") => Ok(Sync::None),
        Some(_) => {
            Err(args.refuse(Code::Usage, Name::Sync).because("it is none of full, records, none"))
        }
    }
}

fn stdin(args: &Args) -> Result<Stdin, Refusal> {
    match text(args, Name::Stdin)? {
        None | Some("inherit") => Ok(Stdin::Inherited),
        Some("null") => Ok(Stdin::Null),
        Some(_) => {
            Err(args.refuse(Code::Usage, Name::Stdin).because("it is neither inherit nor null"))
        }
    }
}

fn descriptor(args: &Args, name: Name) -> Result<Option<RawFd>, Refusal> {
    let Some(given) = text(args, name)? else {
        return Ok(None);
    };
    match given.parse::<RawFd>() {
        Ok(number) if number >= 0 => Ok(Some(number)),
        _ => Err(args.refuse(Code::Usage, name).because("it is not the number of a descriptor")),
    }
}

fn words(args: &Args) -> Result<Vec<CString>, Refusal> {
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

fn check_combinations(args: &Args, plan: &Plan) -> Result<(), Refusal> {
    let standard_output = Some("1");
    if plan.given_log == Some(0) {
        let refusal = args.refuse(Code::Usage, Name::LogFd);
        return Err(refusal.because("descriptor 0 is the job's standard input"));
    }
    if plan.given_log.is_some() && plan.beginning == Beginning::Fresh {
        let refusal = args.refuse(Code::Usage, Name::LogFd);
        return Err(
            refusal.because("a log that is open already cannot be started over with --fresh")
        );
    }
    if plan.output == Output::LogAndTee && text(args, Name::StatusFd)? == standard_output {
        let refusal = args.refuse(Code::Usage, Name::StatusFd);
        return Err(refusal.because("standard output has the copy of --tee"));
    }
    if let Some(receipt) = &plan.receipt {
        let beside =
            [plan.log.fact(), plan.log.fact_draft(), plan.log.fifo(), plan.log.as_os_str().into()];
        if receipt.place.path() == plan.place.path() && beside.contains(&receipt.name) {
            let refusal = Refusal::new(Code::Usage, "the receipt cannot be at");
            let path = place::join(&receipt.place.path(), &receipt.name);
            return Err(refusal.at(path).because("that name is the log's, or of its records"));
        }
    }
    Ok(())
}

/// Directories under a root, or the directory of a file.
impl Place {
    fn plain(directory: &Path) -> Place {
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
