//! Reading a record from disk without trusting what stands under its name.

use crate::canonical::RecordError;
use crate::sys::errno::Errno;
use crate::sys::files::{self, Kind};
use crate::sys::streams;
use std::fmt;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Why a record could not be read. Its state is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    System(Errno),
    Kind(Kind),
    Record(RecordError),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::System(errno) => write!(f, "{errno}"),
            Reason::Kind(kind) => write!(f, "it is {kind}"),
            Reason::Record(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read record {}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for ReadError {}

impl ReadError {
    /// Why, without saying again what was attempted and where.
    pub fn reason(&self) -> String {
        self.reason.to_string()
    }

    /// What is wrong with the content, when the file itself could be read.
    pub fn record(&self) -> Option<&RecordError> {
        match &self.reason {
            Reason::Record(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads and decodes the record at `path`, from `directory` where it is relative; `None`
/// when nothing has that name.
pub(crate) fn read_record<T>(
    directory: impl AsFd,
    path: &Path,
    bytes_max: usize,
    decode: impl FnOnce(&[u8]) -> Result<T, RecordError>,
) -> Result<Option<T>, ReadError> {
    let fail = |reason| ReadError { path: path.to_owned(), reason };
    let file = match files::open_record_at(directory, path) {
        Ok(file) => file,
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP) => return Err(fail(Reason::Kind(Kind::Symlink))),
        Err(errno) => return Err(fail(Reason::System(errno))),
    };
    let status = files::status(&file).map_err(|errno| fail(Reason::System(errno)))?;
    if status.kind != Kind::Regular {
        return Err(fail(Reason::Kind(status.kind)));
    }
    // One byte more than allowed, so that a longer record is seen to be longer.
    let mut bytes = vec![0; bytes_max + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        match streams::read(&file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(errno) => return Err(fail(Reason::System(errno))),
        }
    }
    decode(&bytes[..filled]).map(Some).map_err(|error| fail(Reason::Record(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
        let whole = |bytes: &[u8]| match bytes.len() {
            0..=4 => Ok(bytes.to_vec()),
            _ => Err(RecordError::TooLong { bytes_max: 4 }),
        };
        read_record(files::here(), path, 4, whole).map_err(|error| error.reason())
    }

    #[test]
    fn only_a_small_regular_file_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("good"), b"four").expect("write");
        std::fs::write(at("long"), b"fives").expect("write");
        symlink(at("good"), at("link")).expect("symlink");
        let open = files::open_directory(directory.path()).expect("open");
        crate::sys::fifo::create_at(&open, "fifo".as_ref()).expect("mkfifo");

        assert_eq!(read(&at("good")), Ok(Some(b"four".to_vec())));
        assert_eq!(read(&at("missing")), Ok(None));
        assert_eq!(read(&at("long")), Err("it is longer than 4 bytes".into()));
        assert_eq!(read(&at("link")), Err("it is a symbolic link".into()));
        assert_eq!(read(&at("fifo")), Err("it is a FIFO".into()));
        assert_eq!(read(directory.path()), Err("it is a directory".into()));
        assert_eq!(read(&at("good").join("below")), Err("Not a directory".into()));
    }
}
