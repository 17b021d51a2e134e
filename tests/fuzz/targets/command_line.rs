//! The command line: read as the oracle reads it, or refused in a line. The launcher is no
//! library: its modules are these.
#![no_main]

#[path = "../../../launcher/src/cli/mod.rs"]
mod cli;
mod input;
#[path = "../../../launcher/src/cli/properties/oracle.rs"]
mod oracle;
#[path = "../../../launcher/src/place/mod.rs"]
mod place;
#[path = "../../../launcher/src/plan/mod.rs"]
mod plan;
#[path = "../../../launcher/src/refusal.rs"]
mod refusal;

use cli::{Args, Launch, Name, Request};
use libfuzzer_sys::fuzz_target;
use oracle::Reading;
use plan::Plan;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::LazyLock;

/// The options of `weir run` by its help text: those with a value, and the flags.
static OPTIONS: LazyLock<[Vec<String>; 2]> = LazyLock::new(|| {
    let Ok(Request::Print(help)) = cli::understand(["run", "-h"].map(OsString::from).into_iter())
    else {
        panic!("there is no help");
    };
    let options = help.lines().filter_map(|line| line.strip_prefix("  --"));
    let (flags, valued) = options
        .filter_map(|line| line.split_once(' '))
        .partition::<Vec<_>, _>(|(_, rest)| rest.starts_with(' '));
    [valued, flags].map(|all| all.into_iter().map(|(name, _)| name.to_owned()).collect())
});

/// Words, one after the other with NUL bytes between, which no word can have.
const LINES: [&str; 8] = [
    "run\0--log=f\0--quota\x0064K\0--\0sh\0-c\0echo \"$0\"\0--\0-h",
    "run\0--root\0d\0--run-id=r\0--attempt-id=a\0--profile=edge\0--tee\0cat\0-",
    "run\0--log\0-\0--grace\x002s\0--after-exit=kill\0--signal-scope=group\0--quiet=no\0a\0--b",
    "run\0--log=f\0--shell\0exit 3\0--sync=none\0--stdin=null\0--receipt=r\0--min-free=0",
    "run\0--tee\0--quota=1M\0--log=f\0--quota\x0064K\0--tee=no\0--log\0g\0true",
    "doctor\0--json\0--quota=1M\0--reserve\0d",
    "ql3\0argv\0cat\0-",
    "ql3\0shell",
];

fuzz_target!(|data: &[u8]| {
    let line = input::spoiled(data, &LINES);
    let mut words = line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
    let words: Vec<OsString> = words.by_ref().collect();
    if words[0] == "run" {
        check_run(&words[1..]);
    }
    match cli::understand(words.into_iter()) {
        Ok(Request::Doctor(examination)) => {
            let _ = Plan::of_examination(&examination).map_err(check_refusal);
        }
        Ok(Request::Ql3(words)) => {
            let launch = Launch::of(&words).map_err(check_refusal);
            if let Ok(Launch::Argv(job)) = launch {
                assert_eq!(job, words[1..]);
            }
        }
        Ok(Request::Run(_) | Request::Print(_)) => {}
        Err(refusal) => check_refusal(refusal),
    }
});

fn check_refusal(refusal: refusal::Refusal) {
    assert!(oracle::is_refusal(&refusal.to_string()), "{refusal}");
}

fn check_run(words: &[OsString]) {
    let [valued, flags] = &*OPTIONS;
    let [valued, flags] =
        [valued, flags].map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
    let expected = oracle::command_line(words, &valued, &flags);
    let words = std::iter::once(OsString::from("run")).chain(words.iter().cloned());
    match (cli::understand(words), expected) {
        (Ok(Request::Print(_)), Reading::Help) => {}
        (Ok(Request::Run(args)), Reading::Job(options, job)) => check_args(&args, &options, &job),
        (Err(refusal), Reading::Refused) => check_refusal(refusal),
        (_, expected) => panic!("expected {expected:?}"),
    }
}

fn check_args(args: &Args, options: &[(String, OsString)], job: &[OsString]) {
    assert_eq!(args.command(), job);
    // Of every kind one: what a value or flag is read as does not depend on its name.
    for (name, long) in [
        (Name::Log, "log"),
        (Name::Quota, "quota"),
        (Name::Grace, "grace"),
        (Name::Shell, "shell"),
        (Name::Tee, "tee"),
        (Name::Quiet, "quiet"),
    ] {
        let given = options.iter().find(|(known, _)| known == long);
        assert_eq!(args.value(name), given.map(|(_, value)| value.as_os_str()), "--{long}");
    }
    match Plan::of_options(args) {
        Ok(plan) if job.is_empty() => assert_eq!(plan.words[0].as_bytes(), b"/bin/sh"),
        Ok(plan) => {
            let words = plan.words.iter().map(|word| OsStr::from_bytes(word.as_bytes()));
            assert!(words.eq(job));
        }
        Err(refusal) => check_refusal(refusal),
    }
}
