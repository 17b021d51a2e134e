//! The receipt of version 1, which the QingLong 3 protocol wants.

use crate::canonical::Writer;
use crate::{AttemptId, IdError, RunId};
use std::fmt;
use std::str::FromStr;

/// The longest receipt of version 1, in bytes.
pub const RECEIPT_V1_BYTES_MAX: usize = 4096;

/// How one attempt's job ended, for a client that knows it by a secret token.
///
/// ```
/// use weir_common::ReceiptV1;
///
/// let receipt = ReceiptV1 {
///     run_id: "r1".parse()?,
///     attempt_id: "a1".parse()?,
///     callback_sequence: 1,
///     token: "0123456789abcdef0123456789abcdef".parse()?,
///     started_at_ms: 1_700_000_000_000,
///     finished_at_ms: 1_700_000_000_250,
///     exit_code: 143,
/// };
/// assert!(receipt.encode().ends_with(br#","finishedAtMs":1700000000250,"exitCode":143}"#));
/// # Ok::<(), weir_common::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptV1 {
    /// The client's run.
    pub run_id: RunId,
    /// The client's attempt.
    pub attempt_id: AttemptId,
    /// Which of the client's callbacks this is.
    pub callback_sequence: u64,
    /// What the client knows its own attempt by.
    pub token: CallbackToken,
    /// When the client started the attempt, by its clock, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// When the job ended, by the wall clock in milliseconds; never before the start.
    pub finished_at_ms: u64,
    /// The job's exit code; 128 + n where signal n ended it.
    pub exit_code: u8,
}

impl ReceiptV1 {
    /// The canonical bytes: one JSON object, no white space, no newline.
    pub fn encode(&self) -> Vec<u8> {
        let mut record = Writer::new();
        record.number("schemaVersion", 1u64);
        record.plain("runId", self.run_id.as_str());
        record.plain("attemptId", self.attempt_id.as_str());
        record.number("callbackSequence", self.callback_sequence);
        record.plain("token", &self.token.0);
        record.number("startedAtMs", self.started_at_ms);
        record.number("finishedAtMs", self.finished_at_ms);
        record.number("exitCode", u64::from(self.exit_code));
        record.finish()
    }
}

/// A client's secret: 32 to 128 of `A-Z a-z 0-9 _ -`. It is shown nowhere but in a receipt.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackToken(String);

impl FromStr for CallbackToken {
    type Err = IdError;

    fn from_str(text: &str) -> Result<CallbackToken, IdError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        match (32..=128).contains(&text.len()) && text.bytes().all(allowed) {
            true => Ok(CallbackToken(text.to_owned())),
            false => Err(IdError::secret("a token: 32 to 128 of A-Z a-z 0-9 _ -")),
        }
    }
}

impl fmt::Debug for CallbackToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallbackToken(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> ReceiptV1 {
        ReceiptV1 {
            run_id: "r".parse().expect("id"),
            attempt_id: "a".parse().expect("id"),
            callback_sequence: 7,
            token: "_0123456789-ABCDEFGHIJKLMNopqrst".parse().expect("token"),
            started_at_ms: 1,
            finished_at_ms: 2,
            exit_code: 255,
        }
    }

    #[test]
    fn the_bytes_are_these() {
        let expected = "{\"schemaVersion\":1,\"runId\":\"r\",\"attemptId\":\"a\",\
                        \"callbackSequence\":7,\"token\":\"_0123456789-ABCDEFGHIJKLMNopqrst\",\
                        \"startedAtMs\":1,\"finishedAtMs\":2,\"exitCode\":255}";
        assert_eq!(String::from_utf8(receipt().encode()).expect("ascii"), expected);
    }

    #[test]
    fn the_longest_fits() {
        let id = "x".repeat(128);
        let longest = ReceiptV1 {
            run_id: id.parse().expect("id"),
            attempt_id: id.parse().expect("id"),
            callback_sequence: u64::MAX,
            token: id.parse().expect("token"),
            started_at_ms: u64::MAX,
            finished_at_ms: u64::MAX,
            exit_code: u8::MAX,
        };
        assert!(longest.encode().len() <= RECEIPT_V1_BYTES_MAX);
    }

    #[test]
    fn a_token_keeps_to_its_grammar_and_is_never_shown() {
        for good in ["a".repeat(32), "-".repeat(128)] {
            assert!(good.parse::<CallbackToken>().is_ok(), "{good}");
        }
        let spoilt = |letter: &str| format!("{}{letter}", "secret".repeat(6));
        for bad in ["a".repeat(31), "a".repeat(129), spoilt("."), spoilt(" "), spoilt("ä")] {
            let why = bad.parse::<CallbackToken>().expect_err(&bad);
            assert_eq!(why.to_string(), "it is not a token: 32 to 128 of A-Z a-z 0-9 _ -");
        }
        assert!(!format!("{:?}", receipt()).contains("0123"));
    }
}
