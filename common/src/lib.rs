//! The words that every part of weir shares: ids, quotas, names on disk, facts,
//! receipts, and the one way in which a record gets its name.
//!
//! A dispatcher that spawns `weir run` needs three things from here: it can name an
//! artifact before the attempt starts, and read the [`Fact`] and the [`Receipt`]
//! after it has ended.
//!
//! ```
//! use weir_common::{ArtifactId, AttemptId, Fact, LogName, RunId};
//!
//! let run: RunId = "nightly".parse()?;
//! let attempt: AttemptId = "nightly-1".parse()?;
//! let artifact = ArtifactId::of(&run, &attempt);
//! let log = LogName::of(&artifact);
//!
//! // Where `weir run --root ROOT` puts the log and its fact.
//! let root = std::path::Path::new("/var/lib/weir");
//! let log_path = root.join(artifact.shard()).join(log.as_os_str());
//! let fact_path = root.join(artifact.shard()).join(log.fact());
//! assert!(fact_path.ends_with(format!(".{artifact}.log.truncated.json")));
//!
//! match Fact::read(&fact_path) {
//!     Ok(Some(fact)) if fact.quota_reached => println!("cut at {} bytes", fact.quota.bytes()),
//!     Ok(Some(_)) => println!("complete"),
//!     Ok(None) => println!("unknown: no fact beside {}", log_path.display()),
//!     Err(why) => println!("unknown: {why}"),
//! }
//! # Ok::<(), weir_common::IdError>(())
//! ```
//!
//! Errors keep the system's errno ([`Errno`]) and say which path they are about.

mod canonical;
mod fact;
mod ids;
mod names;
#[cfg(test)]
mod properties;
mod publication;
mod reading;
mod receipt;
mod receipt_v1;
mod size;
mod value;

/// The only door to the kernel, and the only module with `unsafe` code.
///
/// Everything here takes borrowed descriptors and returns owned ones; a descriptor
/// that it makes is close-on-exec from the start. Sources: the Linux man pages named
/// beside each function.
#[allow(unsafe_code)]
pub mod sys;

pub use canonical::RecordError;
pub use fact::{Counts, FACT_BYTES_MAX, Fact};
pub use ids::{ArtifactId, AttemptId, IdError, RunId};
pub use names::{LogName, LogNameError, receipt_name, receipt_shard};
pub use publication::{Draft, DraftName, Durability, Links, PublishError, Published, ReserveError};
pub use reading::ReadError;
pub use receipt::{Capture, JobEnd, RECEIPT_BYTES_MAX, Receipt};
pub use receipt_v1::{CallbackToken, RECEIPT_V1_BYTES_MAX, ReceiptV1};
pub use size::{Quota, QuotaError, SizeError, parse_size};
pub use sys::errno::Errno;
