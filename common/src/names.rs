//! The names that stand beside a log, and where a receipt lives under its root.

use crate::{ArtifactId, AttemptId};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// The longest name that Linux file systems hold, in bytes (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;

/// A log's file name, and the names of everything that stands beside it.
///
/// ```
/// use weir_common::LogName;
/// let log = LogName::new("job.log".as_ref())?;
/// assert_eq!(log.fact(), ".job.log.truncated.json");
/// assert_eq!(log.fifo(), ".job.log.fifo");
/// # Ok::<(), weir_common::LogNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogName(OsString);

/// Why a name cannot be a log's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogNameError {
    /// It is empty, `.`, `..`, or has a slash or a NUL byte.
    NotAName,
    /// The fact beside it would have a longer name than file systems hold.
    TooLong {
        /// How long the log's name may be, in bytes.
        bytes_max: usize,
    },
}

impl fmt::Display for LogNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogNameError::NotAName => f.write_str("it does not end in a file name"),
            LogNameError::TooLong { bytes_max } => {
                write!(
                    f,
                    "its name is longer than {bytes_max} bytes, which leaves no room for its fact's name"
                )
            }
        }
    }
}

impl std::error::Error for LogNameError {}

const FACT_SUFFIX: &str = ".truncated.json";

impl LogName {
    /// Takes a file name, without any directory.
    pub fn new(name: &OsStr) -> Result<LogName, LogNameError> {
        let bytes = name.as_bytes();
        let bytes_max = NAME_BYTES_MAX - ".".len() - FACT_SUFFIX.len();
        match bytes {
            b"" | b"." | b".." => Err(LogNameError::NotAName),
            _ if bytes.contains(&b'/') || bytes.contains(&0) => Err(LogNameError::NotAName),
            _ if bytes.len() > bytes_max => Err(LogNameError::TooLong { bytes_max }),
            _ => Ok(LogName(name.to_owned())),
        }
    }

    /// The name of an artifact's log.
    pub fn of(artifact: &ArtifactId) -> LogName {
        LogName(format!("{artifact}.log").into())
    }

    /// The log's own name.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// The name of its fact.
    pub fn fact(&self) -> OsString {
        self.beside(FACT_SUFFIX)
    }

    /// The name of its fact's draft, where the file system has no unnamed files.
    pub fn fact_draft(&self) -> OsString {
        self.beside(".truncated.tmp")
    }

    /// The name of the FIFO that the job writes to.
    pub fn fifo(&self) -> OsString {
        self.beside(".fifo")
    }

    fn beside(&self, suffix: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.0);
        name.push(suffix);
        name
    }
}

/// The folder under a receipt root: the first two characters of the attempt id.
pub fn receipt_shard(attempt: &AttemptId) -> &str {
    let id = attempt.as_str();
    &id[..id.len().min(2)]
}

/// The name of an attempt's receipt in its folder under a receipt root.
pub fn receipt_name(attempt: &AttemptId) -> String {
    format!("{attempt}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_beside_the_longest_log_still_fits() {
        let longest = LogName::new(OsStr::new(&"l".repeat(239))).expect("fits");
        for name in [longest.fact(), longest.fact_draft(), longest.fifo()] {
            assert!(name.len() <= NAME_BYTES_MAX, "{} bytes", name.len());
        }
        assert_eq!(longest.fact().len(), NAME_BYTES_MAX);
        let too_long = LogName::new(OsStr::new(&"l".repeat(240)));
        assert_eq!(too_long, Err(LogNameError::TooLong { bytes_max: 239 }));
    }

    #[test]
    fn a_name_is_one_component() {
        for bad in ["", ".", "..", "a/b", "/", "a\0"] {
            assert_eq!(LogName::new(OsStr::new(bad)), Err(LogNameError::NotAName), "{bad:?}");
        }
        assert!(LogName::new(OsStr::from_bytes(b"caf\xe9.log")).is_ok());
    }

    #[test]
    fn a_receipt_of_a_one_letter_attempt_has_a_folder_too() {
        let attempt: AttemptId = "a".parse().expect("id");
        assert_eq!((receipt_shard(&attempt), receipt_name(&attempt).as_str()), ("a", "a.json"));
    }
}
