//! Sizes, ids and names: taken if and only if the oracle takes them.

use super::oracle::{self, Size};
use super::{edited_text, for_all};
use crate::{
    ArtifactId, AttemptId, CallbackToken, LogName, Quota, RunId, SizeError, parse_size,
    receipt_name, receipt_shard,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Texts of this grammar, such with changes, and any others.
fn texts_around(regex: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![3 => regex, 3 => edited_text(regex), 1 => any::<String>()]
}

#[test]
fn a_size_is_what_the_oracle_says() {
    // Around the largest numbers as well.
    let digits = prop_oneof![
        "[0-9]{1,4}".boxed(),
        "0{0,24}[0-9]{1,22}".boxed(),
        (0..40u128).prop_map(|step| (u128::from(u64::MAX) - 20 + step).to_string()).boxed(),
        (0..4u64, select(&[10, 20, 30, 40, 50, 60]))
            .prop_map(|(step, shift)| ((u64::MAX >> shift) - 1 + step.min(1)).to_string())
            .boxed(),
    ];
    let sizes = (digits, "([kKmMgGtTPEZYRQ](iB|B)?|b|[A-Za-z]{1,3})?")
        .prop_map(|(digits, unit)| digits + &unit);
    let sizes = sizes.boxed();
    let input = prop_oneof![3 => sizes.clone(), 3 => edited_text(sizes), 1 => any::<String>()];
    for_all(10_000, input, |text| {
        let expected = match oracle::size(&text) {
            Size::Bytes(bytes) => Ok(bytes),
            Size::Malformed => Err(SizeError::Malformed),
            Size::TooLarge => Err(SizeError::TooLarge),
        };
        prop_assert_eq!(parse_size(&text), expected);
        Ok(())
    });
}

#[test]
fn every_number_is_the_size_that_it_says() {
    for_all(1000, (any::<u64>(), 0..64u32), |(number, shift)| {
        let bytes = number >> shift;
        prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        let is_quota = (65_536..=1_073_741_824).contains(&bytes);
        prop_assert_eq!(Quota::new(bytes).map(Quota::bytes).ok(), Some(bytes).filter(|_| is_quota));
        Ok(())
    });
}

#[test]
fn ids_are_taken_by_their_grammar_alone_and_kept_as_they_are() {
    for_all(3000, texts_around("[A-Za-z0-9][A-Za-z0-9._:-]{0,130}"), |text| {
        let (run, attempt) = (text.parse::<RunId>(), text.parse::<AttemptId>());
        let expected = oracle::is_caller_id(&text).then_some(text.as_str());
        prop_assert_eq!(run.as_ref().ok().map(RunId::as_str), expected);
        prop_assert_eq!(attempt.as_ref().ok().map(AttemptId::as_str), expected);
        Ok(())
    });
    for_all(3000, texts_around("(local|wlog)-[0-9a-f]{29,31}"), |text| {
        let artifact = text.parse::<ArtifactId>();
        let expected = oracle::is_artifact_id(&text).then_some(text.as_str());
        prop_assert_eq!(artifact.as_ref().ok().map(ArtifactId::as_str), expected);
        Ok(())
    });
}

#[test]
fn a_token_is_taken_by_its_grammar_alone_and_never_shown() {
    for_all(2000, texts_around("[A-Za-z0-9_-]{30,130}"), |text| {
        let token = text.parse::<CallbackToken>();
        prop_assert_eq!(token.is_ok(), oracle::is_token(&text));
        let shown = format!(
            "{token:?}{}",
            token.as_ref().err().map(|why| why.to_string()).unwrap_or_default()
        );
        prop_assert!(text.len() < 8 || !shown.contains(&text));
        Ok(())
    });
}

#[test]
fn what_stands_beside_a_log_is_in_its_directory_and_has_room() {
    let names = prop_oneof![
        vec(any::<u8>(), 0..8),
        vec(any::<u8>(), 230..250),
        "[./a]{0,4}".prop_map(String::into_bytes)
    ];
    for_all(2000, names, |bytes| {
        let log = LogName::new(OsStr::from_bytes(&bytes));
        prop_assert_eq!(log.is_ok(), oracle::is_log_name(&bytes));
        let Ok(log) = log else { return Ok(()) };
        prop_assert_eq!(log.as_os_str().as_bytes(), &bytes);
        let beside = [log.fact(), log.fact_draft(), log.fifo()];
        for name in &beside {
            let name = name.as_bytes();
            prop_assert!(name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0));
            prop_assert!(name.len() > bytes.len() && name[1..].starts_with(&bytes));
        }
        prop_assert!(beside[0] != beside[1] && beside[0] != beside[2] && beside[1] != beside[2]);
        Ok(())
    });
}

#[test]
fn what_follows_from_ids_keeps_to_the_grammars() {
    let ids = ["[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"; 2];
    for_all(1000, ids, |[run, attempt]| {
        let (run, attempt): (RunId, AttemptId) =
            (run.parse().expect("id"), attempt.parse().expect("id"));
        let artifact = ArtifactId::of(&run, &attempt);
        prop_assert!(oracle::is_artifact_id(artifact.as_str()));
        prop_assert_eq!(artifact.shard(), &artifact.as_str()[6..8]);
        prop_assert!(oracle::is_log_name(LogName::of(&artifact).as_os_str().as_bytes()));
        // Below a receipt root: one folder, one file, neither `.` nor `..`.
        let (shard, name) = (receipt_shard(&attempt), receipt_name(&attempt));
        prop_assert!(attempt.as_str().starts_with(shard) && (1..=2).contains(&shard.len()));
        prop_assert!(!shard.starts_with('.') && !shard.contains('/'));
        prop_assert_eq!(name, format!("{attempt}.json"));
        Ok(())
    });
}
