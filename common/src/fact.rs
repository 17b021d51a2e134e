//! The truncation fact.

use crate::canonical::{Fields, RecordError, Writer, if_canonical};
use crate::reading::{ReadError, read_record};
use crate::sys::files;
use crate::{ArtifactId, AttemptId, Quota, RunId};
use std::os::fd::AsFd;
use std::path::Path;

/// The longest fact, in bytes.
pub const FACT_BYTES_MAX: usize = 1024;

/// What weir proves about one start's stream: whether its quota cut anything.
///
/// The log was `start_bytes` long when the start opened it and `start_bytes +
/// kept_bytes` at its end. A missing fact means unknown, and nothing else.
///
/// There are two versions: 2, which `weir run` writes, and 1, which has no counts.
///
/// ```
/// use weir_common::{ArtifactId, Counts, Fact, Quota};
///
/// let (run_id, attempt_id) = ("r1".parse()?, "a1".parse()?);
/// let log_artifact_id = ArtifactId::of(&run_id, &attempt_id);
/// let fact = Fact {
///     run_id,
///     attempt_id,
///     log_artifact_id,
///     quota: Quota::new(65536)?,
///     quota_reached: true,
///     observed_at_ms: 1_700_000_000_000,
///     counts: Some(Counts { start_bytes: 0, kept_bytes: 65536, dropped_bytes: 1 }),
/// };
/// let bytes = fact.encode();
/// assert!(bytes.starts_with(br#"{"schemaVersion":2,"runId":"r1","#));
/// assert_eq!(Fact::decode(&bytes), Ok(fact));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The caller's run.
    pub run_id: RunId,
    /// The caller's attempt.
    pub attempt_id: AttemptId,
    /// The artifact that the fact speaks for.
    pub log_artifact_id: ArtifactId,
    /// The quota in force (`maximumBytes`).
    pub quota: Quota,
    /// Whether at least one byte was dropped because of the quota.
    pub quota_reached: bool,
    /// The wall clock at the end of the stream, in milliseconds since 1970.
    pub observed_at_ms: u64,
    /// What became of the bytes; `None` in a fact of version 1, which does not tell.
    pub counts: Option<Counts>,
}

/// What became of the bytes of one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The log's length when this start opened it, in bytes.
    pub start_bytes: u64,
    /// Bytes of this start's stream that reached the log.
    pub kept_bytes: u64,
    /// Bytes of this start's stream that were counted and thrown away.
    pub dropped_bytes: u64,
}

impl Fact {
    /// The canonical bytes: one JSON object, no white space, no newline.
    pub fn encode(&self) -> Vec<u8> {
        let mut record = Writer::new();
        record.number("schemaVersion", if self.counts.is_some() { 2u64 } else { 1 });
        record.plain("runId", self.run_id.as_str());
        record.plain("attemptId", self.attempt_id.as_str());
        record.plain("logArtifactId", self.log_artifact_id.as_str());
        record.number("maximumBytes", self.quota.bytes());
        record.truth("quotaReached", self.quota_reached);
        record.number("observedAtMs", self.observed_at_ms);
        if let Some(counts) = &self.counts {
            record.number("startBytes", counts.start_bytes);
            record.number("keptBytes", counts.kept_bytes);
            record.number("droppedBytes", counts.dropped_bytes);
        }
        record.finish()
    }

    /// Reads canonical bytes of either version, and only those.
    pub fn decode(bytes: &[u8]) -> Result<Fact, RecordError> {
        let fields = Fields::parse(bytes, FACT_BYTES_MAX)?;
        let counts = match fields.number("schemaVersion")? {
            1 => None,
            2 => Some(Counts {
                start_bytes: fields.number("startBytes")?,
                kept_bytes: fields.number("keptBytes")?,
                dropped_bytes: fields.number("droppedBytes")?,
            }),
            _ => return Err(RecordError::Field("schemaVersion")),
        };
        let fact = Fact {
            run_id: fields.text("runId", |text| text.parse().ok())?,
            attempt_id: fields.text("attemptId", |text| text.parse().ok())?,
            log_artifact_id: fields.text("logArtifactId", |text| text.parse().ok())?,
            quota: Quota::new(fields.number("maximumBytes")?)
                .map_err(|_| RecordError::Field("maximumBytes"))?,
            quota_reached: fields.truth("quotaReached")?,
            observed_at_ms: fields.number("observedAtMs")?,
            counts,
        };
        let again = fact.encode();
        if_canonical(fact.if_consistent()?, &again, bytes)
    }

    /// No fact of weir's says that the log outgrew its quota, or that something was
    /// cut and nothing dropped.
    fn if_consistent(self) -> Result<Fact, RecordError> {
        let Some(counts) = self.counts else {
            return Ok(self);
        };
        let end_bytes = counts.start_bytes.checked_add(counts.kept_bytes);
        let Some(end_bytes) = end_bytes.filter(|bytes| *bytes <= self.quota.bytes()) else {
            return Err(RecordError::Field("keptBytes"));
        };
        let full = end_bytes == self.quota.bytes();
        match (self.quota_reached, counts.dropped_bytes) {
            (false, 0) => Ok(self),
            (true, 1..) if full => Ok(self),
            _ => Err(RecordError::Field("quotaReached")),
        }
    }

    /// Reads the fact at this path; `None` when there is none, which means unknown.
    ///
    /// Follows no symbolic link in the last component, never blocks, and accepts only
    /// a regular file of bounded size in canonical form.
    pub fn read(path: &Path) -> Result<Option<Fact>, ReadError> {
        Fact::read_at(files::here(), path)
    }

    /// The same, from an open directory where the path is relative.
    pub fn read_at(directory: impl AsFd, path: &Path) -> Result<Option<Fact>, ReadError> {
        read_record(directory, path, FACT_BYTES_MAX, Fact::decode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact() -> Fact {
        let (run_id, attempt_id) = ("r".parse().expect("id"), "a".parse().expect("id"));
        Fact {
            log_artifact_id: ArtifactId::of(&run_id, &attempt_id),
            run_id,
            attempt_id,
            quota: Quota::MIN,
            quota_reached: false,
            observed_at_ms: 1,
            counts: Some(Counts { start_bytes: 2, kept_bytes: 3, dropped_bytes: 0 }),
        }
    }

    fn decode(text: &str) -> Result<Fact, RecordError> {
        Fact::decode(text.as_bytes())
    }

    #[test]
    fn the_bytes_are_these() {
        let expected = format!(
            "{{\"schemaVersion\":2,\"runId\":\"r\",\"attemptId\":\"a\",\"logArtifactId\":\"{}\",\
             \"maximumBytes\":65536,\"quotaReached\":false,\"observedAtMs\":1,\"startBytes\":2,\
             \"keptBytes\":3,\"droppedBytes\":0}}",
            fact().log_artifact_id
        );
        assert_eq!(fact().encode(), expected.as_bytes());
    }

    #[test]
    fn version_1_ends_at_the_time() {
        let first = Fact { counts: None, ..fact() };
        let text = String::from_utf8(first.encode()).expect("ascii");
        assert!(text.starts_with("{\"schemaVersion\":1,"), "{text}");
        assert!(text.ends_with(",\"observedAtMs\":1}"), "{text}");
        assert_eq!(decode(&text), Ok(first));
        let mixed = text.replace("Version\":1", "Version\":2");
        assert_eq!(decode(&mixed), Err(RecordError::Field("startBytes")));
        let second = String::from_utf8(fact().encode()).expect("ascii");
        let mixed = second.replace("Version\":2", "Version\":1");
        assert_eq!(decode(&mixed), Err(RecordError::NotCanonical));
    }

    #[test]
    fn only_the_canonical_bytes_are_read_back() {
        let text = String::from_utf8(fact().encode()).expect("ascii");
        assert_eq!(decode(&text), Ok(fact()));
        let strangers = [
            format!("{text}\n"),
            format!(" {text}"),
            text.replace("\":2", "\": 2"),
            text.replace("\"keptBytes\":3", "\"keptBytes\":3,\"keptBytes\":3"),
            text.replace("\"keptBytes\":3", "\"keptBytes\":3,\"more\":0"),
            text.replace(
                "\"runId\":\"r\",\"attemptId\":\"a\"",
                "\"attemptId\":\"a\",\"runId\":\"r\"",
            ),
            text.replace("\"runId\":\"r\"", "\"runId\":\"\\u0072\""),
        ];
        for stranger in strangers {
            assert_eq!(decode(&stranger), Err(RecordError::NotCanonical), "{stranger}");
        }
    }

    #[test]
    fn what_no_weir_writes_is_not_read() {
        let text = String::from_utf8(fact().encode()).expect("ascii");
        let wrong = [
            ("schemaVersion\":2", "schemaVersion\":3", RecordError::Field("schemaVersion")),
            ("\"runId\":\"r\"", "\"runId\":\"/\"", RecordError::Field("runId")),
            ("\"attemptId\":\"a\"", "\"attemptId\":1", RecordError::Field("attemptId")),
            ("local-", "other-", RecordError::Field("logArtifactId")),
            (":65536", ":65535", RecordError::Field("maximumBytes")),
            (":false", ":true", RecordError::Field("quotaReached")),
            (":false", ":null", RecordError::Field("quotaReached")),
            ("droppedBytes\":0", "droppedBytes\":1", RecordError::Field("quotaReached")),
            ("keptBytes\":3", "keptBytes\":65535", RecordError::Field("keptBytes")),
            ("keptBytes\":3", "keptBytes\":-3", RecordError::Field("keptBytes")),
            ("keptBytes\":3", "keptBytes\":18446744073709551615", RecordError::Field("keptBytes")),
            (",\"droppedBytes\":0", "", RecordError::Field("droppedBytes")),
        ];
        for (from, to, error) in wrong {
            assert_eq!(decode(&text.replace(from, to)), Err(error), "{from} -> {to}");
        }
        for junk in ["", "{", "[]", "null", "{}x"] {
            assert_eq!(decode(junk), Err(RecordError::NotAnObject), "{junk}");
        }
        let long = " ".repeat(FACT_BYTES_MAX + 1);
        assert_eq!(decode(&long), Err(RecordError::TooLong { bytes_max: FACT_BYTES_MAX }));
    }

    #[test]
    fn the_longest_fact_fits() {
        let id = "x".repeat(128);
        let longest = Fact {
            run_id: id.parse().expect("id"),
            attempt_id: id.parse().expect("id"),
            quota: Quota::MAX,
            observed_at_ms: u64::MAX,
            counts: Some(Counts {
                start_bytes: u64::MAX,
                kept_bytes: u64::MAX,
                dropped_bytes: u64::MAX,
            }),
            ..fact()
        };
        assert!(longest.encode().len() <= FACT_BYTES_MAX, "{}", longest.encode().len());
    }
}
