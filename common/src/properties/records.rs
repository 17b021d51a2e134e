//! Facts and receipts: what is written is read, and nothing else is.

use super::record_oracle::{is_fact, is_receipt};
use super::{edited, for_all};
use crate::sys::process::{End, Usage};
use crate::{
    ArtifactId, Capture, Counts, Errno, FACT_BYTES_MAX, Fact, JobEnd, Quota, RECEIPT_BYTES_MAX,
    RECEIPT_V1_BYTES_MAX, Receipt, ReceiptV1,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

fn parsed<T: FromStr<Err: Debug> + Debug>(regex: &'static str) -> impl Strategy<Value = T> {
    regex.prop_map(|text| text.parse().expect("it keeps to the grammar"))
}

fn id<T: FromStr<Err: Debug> + Debug>() -> impl Strategy<Value = T> {
    prop_oneof![
        parsed("[A-Za-z0-9][A-Za-z0-9._:-]{0,8}"),
        parsed("[A-Za-z0-9][A-Za-z0-9._:-]{100,127}"),
    ]
}

fn artifact() -> impl Strategy<Value = ArtifactId> {
    parsed("(local|wlog)-[0-9a-f]{30}")
}

/// Numbers of every length.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
}

/// A quota, whether it was reached, and counts that go together.
fn counts() -> impl Strategy<Value = (Quota, bool, Counts)> {
    let quota = prop_oneof![Just(65_536u64), Just(1 << 30), 65_536u64..=1 << 30];
    let full = any::<[bool; 2]>();
    (quota, full, number(), number(), number()).prop_map(
        |(quota, [reached, is_full], start, end, dropped)| {
            let end = if reached || is_full { quota } else { end % (quota + 1) };
            let start_bytes = start % (end + 1);
            let dropped_bytes = if reached { dropped.max(1) } else { 0 };
            let counts = Counts { start_bytes, kept_bytes: end - start_bytes, dropped_bytes };
            (Quota::new(quota).expect("in range"), reached, counts)
        },
    )
}

fn fact() -> impl Strategy<Value = Fact> {
    (id(), id(), artifact(), number(), counts(), any::<bool>()).prop_map(
        |(run_id, attempt_id, log_artifact_id, observed_at_ms, of_bytes, is_first)| {
            let (quota, quota_reached, counts) = of_bytes;
            let counts = Some(counts).filter(|_| !is_first);
            Fact {
                run_id,
                attempt_id,
                log_artifact_id,
                quota,
                quota_reached,
                observed_at_ms,
                counts,
            }
        },
    )
}

/// Every number that a system call can fail with, also what Linux has no name for.
fn errno() -> impl Strategy<Value = Errno> {
    (1..4096).prop_map(Errno::from_raw)
}

fn job_end() -> impl Strategy<Value = JobEnd> {
    prop_oneof![
        any::<u8>().prop_map(|code| JobEnd::Ended(End::Code(code))),
        (1..=64, any::<bool>())
            .prop_map(|(number, core_dumped)| JobEnd::Ended(End::Signal { number, core_dumped })),
        errno().prop_map(JobEnd::NeverStarted),
    ]
}

fn capture() -> impl Strategy<Value = Capture> {
    prop_oneof![
        Just(Capture::Complete),
        Just(Capture::Truncated),
        option::of(errno()).prop_map(Capture::Failed),
    ]
}

fn receipt() -> impl Strategy<Value = Receipt> {
    let times = [number(), number()];
    let counts = [number(), number(), number()];
    let used = [number(), number(), number()];
    (id(), id(), artifact(), times, (job_end(), capture()), counts, used).prop_map(
        |(run_id, attempt_id, log_artifact_id, times, (job, capture), counts, used)| Receipt {
            run_id,
            attempt_id,
            log_artifact_id,
            started_at_ms: times[0].min(times[1]),
            finished_at_ms: times[0].max(times[1]),
            job,
            capture,
            counts: Counts {
                start_bytes: counts[0],
                kept_bytes: counts[1],
                dropped_bytes: counts[2],
            },
            usage: Usage {
                user: Duration::from_millis(used[0]),
                system: Duration::from_millis(used[1]),
                resident_bytes_max: used[2],
            },
        },
    )
}

fn is_errno(name: &str) -> bool {
    Errno::from_name(name).is_some()
}

#[test]
fn every_fact_is_read_back() {
    for_all(1000, fact(), |fact| {
        let bytes = fact.encode();
        prop_assert!(bytes.len() <= FACT_BYTES_MAX && is_fact(&bytes));
        prop_assert_eq!(Fact::decode(&bytes), Ok(fact));
        Ok(())
    });
}

#[test]
fn every_receipt_is_read_back_an_errno_by_its_name() {
    for_all(1000, receipt(), |receipt| {
        let bytes = receipt.encode();
        prop_assert!(bytes.len() <= RECEIPT_BYTES_MAX && is_receipt(&bytes, is_errno));
        let read = Receipt::decode(&bytes);
        prop_assert_eq!(read.as_ref().map(Receipt::encode), Ok(bytes));
        let has_name = |errno: Errno| errno.name() != "EUNKNOWN";
        let nameless = match (receipt.job, receipt.capture) {
            (JobEnd::NeverStarted(errno), _) if !has_name(errno) => true,
            (_, Capture::Failed(Some(errno))) => !has_name(errno),
            _ => false,
        };
        prop_assert!(nameless || read == Ok(receipt));
        Ok(())
    });
}

#[test]
fn what_is_read_as_a_fact_is_one_to_the_byte() {
    let input = prop_oneof![
        8 => edited(fact().prop_map(|fact| fact.encode())),
        1 => vec(any::<u8>(), 0..64),
    ];
    for_all(3000, input, |bytes| {
        let read = Fact::decode(&bytes);
        prop_assert_eq!(read.is_ok(), is_fact(&bytes), "{:?}", read);
        prop_assert!(read.is_err() || read.map(|fact| fact.encode()) == Ok(bytes));
        Ok(())
    });
}

#[test]
fn what_is_read_as_a_receipt_is_one_to_the_byte() {
    let input = prop_oneof![
        8 => edited(receipt().prop_map(|receipt| receipt.encode())),
        1 => vec(any::<u8>(), 0..64),
    ];
    for_all(3000, input, |bytes| {
        let read = Receipt::decode(&bytes);
        prop_assert_eq!(read.is_ok(), is_receipt(&bytes, is_errno), "{:?}", read);
        prop_assert!(read.is_err() || read.map(|receipt| receipt.encode()) == Ok(bytes));
        Ok(())
    });
}

#[test]
fn a_receipt_of_version_1_says_what_it_was_given() {
    let numbers = [number(), number(), number()];
    let input = (id(), id(), "[A-Za-z0-9_-]{32,128}", numbers, any::<u8>());
    for_all(500, input, |(run_id, attempt_id, token, numbers, exit_code)| {
        let expected = format!(
            "{{\"schemaVersion\":1,\"runId\":\"{run_id}\",\"attemptId\":\"{attempt_id}\",\
             \"callbackSequence\":{},\"token\":\"{token}\",\"startedAtMs\":{},\
             \"finishedAtMs\":{},\"exitCode\":{exit_code}}}",
            numbers[0], numbers[1], numbers[2]
        );
        let [callback_sequence, started_at_ms, finished_at_ms] = numbers;
        let token = token.parse().expect("token");
        let receipt = ReceiptV1 {
            run_id,
            attempt_id,
            callback_sequence,
            token,
            started_at_ms,
            finished_at_ms,
            exit_code,
        };
        prop_assert!(expected.len() <= RECEIPT_V1_BYTES_MAX);
        prop_assert_eq!(receipt.encode(), expected.into_bytes());
        Ok(())
    });
}
