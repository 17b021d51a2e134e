//! Ids of every kind, the names that follow from them, and names of logs.
#![no_main]

mod input;
mod oracles;

use libfuzzer_sys::fuzz_target;
use oracles::oracle;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use weir_common::{
    ArtifactId, AttemptId, CallbackToken, LogName, RunId, receipt_name, receipt_shard,
};

const TEXTS: [&str; 6] = [
    "A.b_c:d-9",
    "local-dda1f107bf886c0711a682f236ea72",
    "wlog-0123456789abcdef0123456789abcd",
    "0123456789abcdefABCDEF_-XYZxyz32",
    // 128 bytes, the longest id and token.
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\
     bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    // 239 bytes, the longest name of a log.
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\
     0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\
     012345678901234567890123456789012345678901234567890123456789.lo",
];

fuzz_target!(|data: &[u8]| {
    let bytes = input::spoiled(data, &TEXTS);
    let text = String::from_utf8_lossy(&bytes);
    let (run, attempt) = (text.parse::<RunId>(), text.parse::<AttemptId>());
    let expected = oracle::is_caller_id(&text).then_some(&*text);
    assert_eq!(run.as_ref().ok().map(RunId::as_str), expected);
    assert_eq!(attempt.as_ref().ok().map(AttemptId::as_str), expected);
    let artifact = text.parse::<ArtifactId>();
    let expected = oracle::is_artifact_id(&text).then_some(&*text);
    assert_eq!(artifact.as_ref().ok().map(ArtifactId::as_str), expected);
    assert_eq!(text.parse::<CallbackToken>().is_ok(), oracle::is_token(&text));
    if let (Ok(run), Ok(attempt)) = (&run, &attempt) {
        follow(run, attempt);
    }
    let log = LogName::new(OsStr::from_bytes(&bytes));
    assert_eq!(log.is_ok(), oracle::is_log_name(&bytes));
    if let Ok(log) = log {
        for name in [log.fact(), log.fact_draft(), log.fifo()] {
            let name = name.as_bytes();
            assert!(name.len() <= 255 && name[1..].starts_with(&bytes));
            assert!(!name.contains(&b'/') && !name.contains(&0));
        }
    }
});

/// What follows from an attempt's ids is one component of a path each.
fn follow(run: &RunId, attempt: &AttemptId) {
    let artifact = ArtifactId::of(run, attempt);
    assert!(oracle::is_artifact_id(artifact.as_str()));
    let log = LogName::of(&artifact);
    let receipt = receipt_name(attempt);
    for name in [artifact.shard(), receipt_shard(attempt), &receipt] {
        assert!(!name.is_empty() && name.len() <= 255);
        assert!(!name.starts_with('.') && !name.contains('/'));
    }
    assert!(oracle::is_log_name(log.as_os_str().as_bytes()));
}
