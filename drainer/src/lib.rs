//! Drains one stream into one log up to an exact byte quota, and counts the rest.
//!
//! The log gets the first bytes of the stream, byte for byte, and never one more than
//! its room; what comes after is read, counted and thrown away, so that the writer of
//! the stream never notices. After the first write that fails nothing is kept any
//! more, because what followed a hole would not be a prefix; draining goes on.
//!
//! A [`Drain`] knows no paths, no processes and no signals. Give it the read end of a
//! pipe, a log opened for appending, and the room; it gives a [`Tally`].
//!
//! ```
//! use std::fs::OpenOptions;
//! use std::io::Write;
//! use weir_drainer::{Drain, Pause, Until};
//!
//! let place = tempfile::tempdir()?;
//! let path = place.path().join("job.log");
//! let log = OpenOptions::new().append(true).create_new(true).open(&path)?;
//! let (source, mut job) = std::io::pipe()?;
//!
//! job.write_all(b"0123456789")?;
//! drop(job); // The stream ends when its last writer is gone.
//!
//! let mut drain = Drain::new(source, &log, 4)?;
//! assert_eq!(drain.run(Until::the_end())?, Pause::Ended);
//! assert_eq!(std::fs::read(&path)?, b"0123");
//! let tally = drain.tally();
//! assert_eq!((tally.kept_bytes, tally.dropped_bytes), (4, 6));
//! assert!(tally.quota_reached());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod capacity;
mod drain;
mod meter;
mod pace;
mod tee;
mod until;
mod void;

pub use drain::{Drain, Pause};
pub use meter::Tally;
pub use until::Until;
