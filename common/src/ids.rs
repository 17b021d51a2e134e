//! The caller's ids, and the artifact id that follows from them.

use crate::sys::process;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// The longest run or attempt id, in bytes.
const CALLER_ID_BYTES_MAX: usize = 128;

/// Hex digits of an artifact id.
const ARTIFACT_DIGITS: usize = 30;

/// Why a text is no id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdError {
    /// `None` where it may be a secret.
    text: Option<String>,
    expected: &'static str,
}

impl IdError {
    /// An error that does not show the text.
    pub(crate) fn secret(expected: &'static str) -> IdError {
        IdError { text: None, expected }
    }
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => write!(f, "{text:?} is not {}", self.expected),
            None => write!(f, "it is not {}", self.expected),
        }
    }
}

impl std::error::Error for IdError {}

fn is_caller_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    text.len() <= CALLER_ID_BYTES_MAX
        && text.bytes().all(allowed)
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

macro_rules! caller_id {
    ($(#[$doc:meta])* $name:ident, $expected:literal) => {
        $(#[$doc])*
        ///
        /// A letter or digit, then up to 127 of `A-Z a-z 0-9 . _ : -`.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Makes one up: a UUID of version 7, so that ids sort by time. Fails only
            /// when the kernel has no random source to give.
            pub fn random() -> Result<$name, crate::Errno> {
                uuid_v7().map($name)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$name, IdError> {
                match is_caller_id(text) {
                    true => Ok($name(text.to_owned())),
                    false => Err(IdError { text: Some(text.to_owned()), expected: $expected }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

caller_id! {
    /// The caller's id of a run.
    RunId,
    "a run id: a letter or digit, then up to 127 of A-Z a-z 0-9 . _ : -"
}

caller_id! {
    /// The caller's id of an attempt: one execution of a run.
    AttemptId,
    "an attempt id: a letter or digit, then up to 127 of A-Z a-z 0-9 . _ : -"
}

fn uuid_v7() -> Result<String, crate::Errno> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let random = process::random::<10>()?;
    let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
    Ok(uuid.hyphenated().to_string())
}

/// The id of one attempt's log: `local-` or `wlog-`, then 30 lower-case hex digits.
///
/// ```
/// use weir_common::ArtifactId;
/// let artifact = ArtifactId::of(&"r1".parse()?, &"a1".parse()?);
/// assert_eq!(artifact.as_str(), "local-dda1f107bf886c0711a682f236ea72");
/// assert_eq!(artifact.shard(), "dd");
/// # Ok::<(), weir_common::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId(String);

impl ArtifactId {
    /// The artifact of an attempt: `local-` and the first 30 hex digits of the SHA-256
    /// of run id, one NUL byte, attempt id.
    pub fn of(run: &RunId, attempt: &AttemptId) -> ArtifactId {
        let mut hash = Sha256::new();
        hash.update(run.as_str());
        hash.update([0]);
        hash.update(attempt.as_str());
        let mut id = String::from("local-");
        for byte in &hash.finalize()[..ARTIFACT_DIGITS / 2] {
            id.push(hex_digit(byte >> 4));
            id.push(hex_digit(byte & 0xf));
        }
        ArtifactId(id)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The two-digit folder under a root that the artifact lives in.
    pub fn shard(&self) -> &str {
        let digits = self.0.len() - ARTIFACT_DIGITS;
        &self.0[digits..digits + 2]
    }
}

fn hex_digit(value: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(value & 0xf)])
}

impl FromStr for ArtifactId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<ArtifactId, IdError> {
        let digits = text.strip_prefix("local-").or_else(|| text.strip_prefix("wlog-"));
        let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match digits {
            Some(digits) if digits.len() == ARTIFACT_DIGITS && digits.bytes().all(lower_hex) => {
                Ok(ArtifactId(text.to_owned()))
            }
            _ => Err(IdError {
                text: Some(text.to_owned()),
                expected: "an artifact id: local- or wlog-, then 30 of 0-9 a-f",
            }),
        }
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_to_their_grammar() {
        let longest = "a".repeat(CALLER_ID_BYTES_MAX);
        for good in ["a", "0", "A.b_c:d-9", &longest] {
            assert_eq!(good.parse::<RunId>().map(|id| id.to_string()), Ok(good.to_owned()));
        }
        let too_long = "a".repeat(CALLER_ID_BYTES_MAX + 1);
        for bad in ["", ".a", "-a", "_a", ":a", "a/b", "a b", "a\n", "ä", "a\0", &too_long] {
            assert!(bad.parse::<AttemptId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn artifact_ids_keep_to_their_grammar() {
        let digits = "0123456789abcdef0123456789abcd";
        for good in [format!("local-{digits}"), format!("wlog-{digits}")] {
            let artifact: ArtifactId = good.parse().expect(&good);
            assert_eq!((artifact.as_str(), artifact.shard()), (good.as_str(), "01"));
        }
        let upper = digits.to_uppercase();
        for bad in [
            format!("local-{digits}0"),
            format!("local-{upper}"),
            format!("log-{digits}"),
            digits.into(),
        ] {
            assert!(bad.parse::<ArtifactId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_that_are_made_up_differ_sort_by_time_and_keep_to_the_grammar() {
        let one = RunId::random().expect("random");
        let other = RunId::random().expect("random");
        assert_ne!(one, other);
        assert_eq!(one.as_str().len(), 36);
        assert_eq!(&one.as_str()[14..15], "7");
        assert!(one.as_str()[..13] <= other.as_str()[..13]);
        assert!(is_caller_id(one.as_str()));
    }
}
