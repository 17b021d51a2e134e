//! The completion receipt.

use crate::canonical::{Fields, RecordError, Writer, if_canonical};
use crate::reading::{ReadError, read_record};
use crate::sys::files;
use crate::sys::process::{End, Usage};
use crate::value::Value;
use crate::{ArtifactId, AttemptId, Counts, Errno, RunId};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// The longest receipt, in bytes.
pub const RECEIPT_BYTES_MAX: usize = 2048;

/// What became of the job's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// The log has every byte; the fact says `false`.
    Complete,
    /// The quota cut something; the fact says `true`.
    Truncated,
    /// Nothing is proven, and there is no fact. The errno says why, where one does.
    Failed(Option<Errno>),
}

/// How one attempt's job ended, and what became of its output.
///
/// ```
/// use std::time::Duration;
/// use weir_common::sys::process::{End, Usage};
/// use weir_common::{ArtifactId, Capture, Counts, JobEnd, Receipt};
///
/// let (run_id, attempt_id) = ("r1".parse()?, "a1".parse()?);
/// let log_artifact_id = ArtifactId::of(&run_id, &attempt_id);
/// let receipt = Receipt {
///     run_id,
///     attempt_id,
///     log_artifact_id,
///     started_at_ms: 1_700_000_000_000,
///     finished_at_ms: 1_700_000_000_250,
///     job: JobEnd::Ended(End::Code(3)),
///     capture: Capture::Complete,
///     counts: Counts { start_bytes: 0, kept_bytes: 12, dropped_bytes: 0 },
///     usage: Usage { user: Duration::from_millis(5), ..Usage::default() },
/// };
/// let bytes = receipt.encode();
/// assert!(std::str::from_utf8(&bytes)?.contains(r#""exitCode":3,"signal":null"#));
/// assert_eq!(Receipt::decode(&bytes), Ok(receipt));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The caller's run.
    pub run_id: RunId,
    /// The caller's attempt.
    pub attempt_id: AttemptId,
    /// The artifact that the output went to.
    pub log_artifact_id: ArtifactId,
    /// The wall clock at the job's start, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The wall clock at the job's end (not the drain's), in milliseconds since 1970;
    /// never before the start.
    pub finished_at_ms: u64,
    /// How the job ended.
    pub job: JobEnd,
    /// What became of its output.
    pub capture: Capture,
    /// What became of the bytes.
    pub counts: Counts,
    /// What the job used; whole milliseconds and bytes.
    pub usage: Usage,
}

/// How a job ended, or that it never began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It ran, and ended so.
    Ended(End),
    /// It could not be started: `startError`, with neither exit code nor signal. This
    /// tells weir's own 126 and 127 from a job's.
    NeverStarted(Errno),
}

impl Receipt {
    /// The canonical bytes: one JSON object, no white space, no newline.
    pub fn encode(&self) -> Vec<u8> {
        let (code, signal, core_dumped, start_error) = match self.job {
            JobEnd::Ended(End::Code(code)) => (Some(code), None, false, None),
            JobEnd::Ended(End::Signal { number, core_dumped }) => {
                (None, Some(number), core_dumped, None)
            }
            JobEnd::NeverStarted(errno) => (None, None, false, Some(errno.name())),
        };
        let (capture, capture_error) = match self.capture {
            Capture::Complete => ("complete", None),
            Capture::Truncated => ("truncated", None),
            Capture::Failed(errno) => ("failed", errno.map(Errno::name)),
        };
        let mut record = Writer::new();
        record.number("schemaVersion", 2u64);
        record.plain("runId", self.run_id.as_str());
        record.plain("attemptId", self.attempt_id.as_str());
        record.plain("logArtifactId", self.log_artifact_id.as_str());
        record.number("startedAtMs", self.started_at_ms);
        record.number("finishedAtMs", self.finished_at_ms);
        record.number_or_null("exitCode", code.map(u64::from));
        record.number_or_null("signal", signal.map(|number| number.unsigned_abs().into()));
        record.truth("coreDumped", core_dumped);
        record.plain_or_null("startError", start_error);
        record.plain("capture", capture);
        record.number("startBytes", self.counts.start_bytes);
        record.number("keptBytes", self.counts.kept_bytes);
        record.number("droppedBytes", self.counts.dropped_bytes);
        record.plain_or_null("captureError", capture_error);
        record.number("userMs", whole_ms(self.usage.user));
        record.number("systemMs", whole_ms(self.usage.system));
        record.number("maxRssBytes", self.usage.resident_bytes_max);
        record.finish()
    }

    /// Reads canonical bytes, and only those.
    pub fn decode(bytes: &[u8]) -> Result<Receipt, RecordError> {
        let fields = Fields::parse(bytes, RECEIPT_BYTES_MAX)?;
        if fields.number("schemaVersion")? != 2 {
            return Err(RecordError::Field("schemaVersion"));
        }
        let ms = |key| fields.number(key).map(Duration::from_millis);
        let receipt = Receipt {
            run_id: fields.text("runId", |text| text.parse().ok())?,
            attempt_id: fields.text("attemptId", |text| text.parse().ok())?,
            log_artifact_id: fields.text("logArtifactId", |text| text.parse().ok())?,
            started_at_ms: fields.number("startedAtMs")?,
            finished_at_ms: fields.number("finishedAtMs")?,
            job: read_job_end(&fields)?,
            capture: read_capture(&fields)?,
            counts: Counts {
                start_bytes: fields.number("startBytes")?,
                kept_bytes: fields.number("keptBytes")?,
                dropped_bytes: fields.number("droppedBytes")?,
            },
            usage: Usage {
                user: ms("userMs")?,
                system: ms("systemMs")?,
                resident_bytes_max: fields.number("maxRssBytes")?,
            },
        };
        if receipt.finished_at_ms < receipt.started_at_ms {
            return Err(RecordError::Field("finishedAtMs"));
        }
        let again = receipt.encode();
        if_canonical(receipt, &again, bytes)
    }

    /// Reads the receipt at this path; `None` when there is none.
    ///
    /// Follows no symbolic link in the last component, never blocks, and accepts only
    /// a regular file of bounded size in canonical form.
    pub fn read(path: &Path) -> Result<Option<Receipt>, ReadError> {
        Receipt::read_at(files::here(), path)
    }

    /// The same, from an open directory where the path is relative.
    pub fn read_at(directory: impl AsFd, path: &Path) -> Result<Option<Receipt>, ReadError> {
        read_record(directory, path, RECEIPT_BYTES_MAX, Receipt::decode)
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn errno(value: &Value) -> Option<Errno> {
    value.as_str().and_then(Errno::from_name)
}

fn read_job_end(fields: &Fields) -> Result<JobEnd, RecordError> {
    let code = fields.or_null("exitCode", |value| u8::try_from(value.as_u64()?).ok())?;
    let signal = fields.or_null("signal", |value| {
        i32::try_from(value.as_u64()?).ok().filter(|number| (1..=64).contains(number))
    })?;
    let core_dumped = fields.truth("coreDumped")?;
    match (code, signal, fields.or_null("startError", errno)?) {
        (Some(code), None, None) => Ok(JobEnd::Ended(End::Code(code))),
        (None, Some(number), None) => Ok(JobEnd::Ended(End::Signal { number, core_dumped })),
        (None, None, Some(errno)) => Ok(JobEnd::NeverStarted(errno)),
        _ => Err(RecordError::Field("exitCode")),
    }
}

fn read_capture(fields: &Fields) -> Result<Capture, RecordError> {
    let error = fields.or_null("captureError", errno)?;
    fields.text("capture", |text| match (text, error) {
        ("complete", None) => Some(Capture::Complete),
        ("truncated", None) => Some(Capture::Truncated),
        ("failed", error) => Some(Capture::Failed(error)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(job: JobEnd, capture: Capture) -> Receipt {
        let (run_id, attempt_id) = ("r".parse().expect("id"), "a".parse().expect("id"));
        Receipt {
            log_artifact_id: ArtifactId::of(&run_id, &attempt_id),
            run_id,
            attempt_id,
            started_at_ms: 10,
            finished_at_ms: 10,
            job,
            capture,
            counts: Counts { start_bytes: 1, kept_bytes: 2, dropped_bytes: 3 },
            usage: Usage {
                user: Duration::from_millis(4),
                system: Duration::from_millis(5),
                resident_bytes_max: 6,
            },
        }
    }

    fn text(receipt: &Receipt) -> String {
        String::from_utf8(receipt.encode()).expect("ascii")
    }

    #[test]
    fn the_bytes_are_these() {
        let end = JobEnd::Ended(End::Signal { number: 11, core_dumped: true });
        let receipt = receipt(end, Capture::Failed(Some(Errno::ENOSPC)));
        let expected = format!(
            "{{\"schemaVersion\":2,\"runId\":\"r\",\"attemptId\":\"a\",\"logArtifactId\":\"{}\",\
             \"startedAtMs\":10,\"finishedAtMs\":10,\"exitCode\":null,\"signal\":11,\"coreDumped\":true,\
             \"startError\":null,\"capture\":\"failed\",\"startBytes\":1,\"keptBytes\":2,\
             \"droppedBytes\":3,\"captureError\":\"ENOSPC\",\"userMs\":4,\"systemMs\":5,\"maxRssBytes\":6}}",
            receipt.log_artifact_id
        );
        assert_eq!(text(&receipt), expected);
    }

    #[test]
    fn every_end_and_every_capture_is_read_back() {
        let mut jobs: Vec<JobEnd> = (0..=255).map(|code| JobEnd::Ended(End::Code(code))).collect();
        for number in 1..=64 {
            jobs.push(JobEnd::Ended(End::Signal { number, core_dumped: number % 2 == 0 }));
        }
        jobs.push(JobEnd::NeverStarted(Errno::ENOENT));
        let captures = [
            Capture::Complete,
            Capture::Truncated,
            Capture::Failed(None),
            Capture::Failed(Some(Errno::EDQUOT)),
        ];
        for job in jobs {
            for capture in captures {
                let receipt = receipt(job, capture);
                assert_eq!(Receipt::decode(&receipt.encode()), Ok(receipt));
            }
        }
    }

    #[test]
    fn a_receipt_of_a_nameless_errno_is_read_back() {
        let nameless = Errno::from_raw(524);
        for receipt in [
            receipt(JobEnd::NeverStarted(nameless), Capture::Complete),
            receipt(JobEnd::Ended(End::Code(0)), Capture::Failed(Some(nameless))),
        ] {
            assert!(text(&receipt).contains("Error\":\"EUNKNOWN\""));
            let read = Receipt::decode(&receipt.encode());
            assert_eq!(read.as_ref().map(Receipt::encode), Ok(receipt.encode()));
        }
    }

    #[test]
    fn what_no_weir_writes_is_not_read() {
        let good = text(&receipt(JobEnd::Ended(End::Code(0)), Capture::Complete));
        let wrong = [
            ("Version\":2", "Version\":1", RecordError::Field("schemaVersion")),
            ("finishedAtMs\":10", "finishedAtMs\":9", RecordError::Field("finishedAtMs")),
            ("exitCode\":0", "exitCode\":256", RecordError::Field("exitCode")),
            ("exitCode\":0", "exitCode\":null", RecordError::Field("exitCode")),
            ("signal\":null", "signal\":9", RecordError::Field("exitCode")),
            ("signal\":null", "signal\":65", RecordError::Field("signal")),
            ("startError\":null", "startError\":\"ENOPE\"", RecordError::Field("startError")),
            ("captureError\":null", "captureError\":\"EIO\"", RecordError::Field("capture")),
            ("coreDumped\":false", "coreDumped\":true", RecordError::NotCanonical),
            (",\"userMs", ", \"userMs", RecordError::NotCanonical),
        ];
        for (from, to, error) in wrong {
            let text = good.replace(from, to);
            assert_eq!(Receipt::decode(text.as_bytes()), Err(error), "{from} -> {to}");
        }
    }

    #[test]
    fn the_longest_receipt_fits() {
        let id = "x".repeat(128);
        let job = JobEnd::Ended(End::Signal { number: 64, core_dumped: false });
        let longest = Receipt {
            run_id: id.parse().expect("id"),
            attempt_id: id.parse().expect("id"),
            started_at_ms: u64::MAX,
            finished_at_ms: u64::MAX,
            counts: Counts { start_bytes: u64::MAX, kept_bytes: u64::MAX, dropped_bytes: u64::MAX },
            usage: Usage {
                user: Duration::MAX,
                system: Duration::MAX,
                resident_bytes_max: u64::MAX,
            },
            ..receipt(job, Capture::Failed(Some(Errno::EPROTONOSUPPORT)))
        };
        assert!(longest.encode().len() <= RECEIPT_BYTES_MAX, "{}", longest.encode().len());
    }
}
