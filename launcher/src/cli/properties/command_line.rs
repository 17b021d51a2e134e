//! Options before, the job's words behind, and refusals of one line.

use super::oracle::{self, Reading, is_refusal};
use super::{for_all, run};
use crate::cli::Launch;
use crate::cli::options::OPTIONS;
use crate::plan::Plan;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

fn long_names(valued: bool) -> Vec<&'static str> {
    OPTIONS.iter().filter(|one| one.value.is_some() == valued).map(|one| one.long).collect()
}

/// Any word that a program can be given.
fn word() -> impl Strategy<Value = OsString> {
    let byte = prop_oneof![select(b"-=ha\n\x1b\xff".as_slice()), 1..=u8::MAX];
    const MEANT: [&str; 10] =
        ["--", "-", "", "--help", "-h", "--log", "--log=", "--tee=no", "--nosuch", "cat"];
    prop_oneof![
        vec(byte, 0..8).prop_map(OsString::from_vec),
        select(MEANT.as_slice()).prop_map(OsString::from),
    ]
}

/// A word where options stand: one of them, with and without a value, or anything.
fn option_word() -> impl Strategy<Value = OsString> {
    let longs: Vec<&str> = OPTIONS.iter().map(|one| one.long).collect();
    let attached = prop_oneof![Just(None), word().prop_map(Some)];
    let option =
        (select(longs), attached).prop_map(|(long, value)| joined(long, value.as_deref())).boxed();
    // A name that is not whole is none, however clear what it would be.
    let part = option.clone().prop_map(|word| {
        let bytes = word.as_bytes();
        OsStr::from_bytes(&bytes[..bytes.len().saturating_sub(1)]).to_owned()
    });
    prop_oneof![8 => option, 1 => part, 3 => word()]
}

fn joined(long: &str, value: Option<&OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{long}"));
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

#[test]
fn words_are_read_as_the_oracle_reads_them() {
    for_all(6000, vec(option_word(), 0..7), |words| {
        let expected = oracle::command_line(&words, &long_names(true), &long_names(false));
        match run(&words) {
            Ok(None) => prop_assert_eq!(expected, Reading::Help),
            Err(refusal) => {
                prop_assert_eq!(expected, Reading::Refused);
                prop_assert!(is_refusal(&refusal.to_string()), "{}", refusal);
            }
            Ok(Some(args)) => {
                let Reading::Job(options, command) = expected else {
                    return Err(TestCaseError::fail("it is not refused"));
                };
                prop_assert_eq!(args.command(), command);
                for one in &OPTIONS {
                    let given = options.iter().find(|(long, _)| long == one.long);
                    let value = given.map(|(_, value)| value.as_os_str());
                    prop_assert_eq!(args.value(one.name), value, "--{}", one.long);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn the_jobs_words_are_its_own_whatever_they_look_like() {
    let before = (vec((select(long_names(true)), word()), 0..4), any::<bool>());
    for_all(2000, (before, vec(word(), 1..6)), |((options, is_apart), job)| {
        let looks_like_one = job[0].as_bytes().starts_with(b"-") && job[0] != "-";
        let mut words = Vec::new();
        for (long, value) in &options {
            match is_apart {
                true => words.extend([joined(long, None), value.clone()]),
                false => words.push(joined(long, Some(value))),
            }
        }
        let mut marked = words.clone();
        marked.push("--".into());
        for (mut words, is_heard) in [(marked, true), (words, !looks_like_one)] {
            words.extend(job.iter().cloned());
            let args = run(&words).ok().flatten().filter(|_| is_heard);
            prop_assert_eq!(args.is_some(), is_heard);
            prop_assert!(args.is_none_or(|args| args.command() == job));
        }
        Ok(())
    });
}

#[test]
fn options_mean_the_same_in_any_order_and_in_either_form() {
    let one = (select((0..OPTIONS.len()).collect::<Vec<_>>()), word(), any::<bool>());
    for_all(2000, (vec(one, 1..8), any::<prop::sample::Index>()), |(mut given, turn)| {
        given.sort_by_key(|(at, ..)| *at);
        given.dedup_by_key(|(at, ..)| *at);
        let expected = given.clone();
        given.rotate_left(turn.index(expected.len()));
        let mut words = Vec::new();
        for (at, value, is_apart) in given {
            let spec = &OPTIONS[at];
            match is_apart && spec.value.is_some() {
                true => words.extend([joined(spec.long, None), value]),
                false => words.push(joined(spec.long, Some(&value))),
            }
        }
        words.push("job".into());
        let args = run(&words).ok().flatten();
        let args = args.ok_or_else(|| TestCaseError::fail("it is refused"))?;
        for (at, value, _) in expected {
            prop_assert_eq!(args.value(OPTIONS[at].name), Some(value.as_os_str()));
        }
        Ok(())
    });
}

#[test]
fn a_plan_has_the_jobs_words_or_is_refused_in_a_line() {
    let value = prop_oneof![
        4 => select(["1M", "64K", "f", "2s", "full", "null", "kill", "job", "edge", "a/b", "/", "1"].as_slice())
            .prop_map(OsString::from),
        1 => word(),
    ];
    let option = (select(long_names(true)), value);
    for_all(3000, (vec(option, 0..4), vec(word(), 1..4)), |(options, job)| {
        let mut words = vec![OsString::from("--log=f")];
        words.extend(options.iter().map(|(long, value)| joined(long, Some(value))));
        words.push("--".into());
        words.extend(job.iter().cloned());
        let args = run(&words).ok().flatten();
        let args = args.ok_or_else(|| TestCaseError::fail("it is refused"))?;
        match Plan::of_options(&args) {
            Ok(plan) => {
                let words = plan.words.iter().map(|word| word.as_bytes());
                prop_assert!(words.eq(job.iter().map(|word| word.as_bytes())));
            }
            Err(refusal) => prop_assert!(is_refusal(&refusal.to_string()), "{}", refusal),
        }
        Ok(())
    });
}

#[test]
fn whatever_is_refused_is_refused_in_a_line() {
    let first =
        prop_oneof![select(["doctor", "ql3", "run"].as_slice()).prop_map(OsString::from), word(),];
    for_all(3000, (first, vec(option_word(), 0..5)), |(first, rest)| {
        if let Err(refusal) = Launch::of(&rest) {
            prop_assert!(is_refusal(&refusal.to_string()), "{}", refusal);
        }
        if let Err(refusal) = crate::cli::understand(std::iter::once(first).chain(rest)) {
            prop_assert!(is_refusal(&refusal.to_string()), "{}", refusal);
        }
        Ok(())
    });
}
