//! The harness of the whole-binary tests: a place on disk, a weir to run there, and
//! what is left afterwards.
//!
//! ```no_run
//! use weir_tests::Place;
//! let place = Place::new();
//! let done = place.weir().sh("echo hi; exit 3").run();
//! done.exits(3).says("");
//! assert_eq!(place.read("l"), b"hi\n");
//! assert!(!place.fact().quota_reached);
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod binary;
mod disk;
mod place;
pub mod ql3;
mod tools;
mod weir;

pub use binary::{dispatcher_binary, weir_binary};
pub use disk::{Disk, FileSystem, on_small_disk, succeed};
pub use place::Place;
pub use tools::{
    PATIENCE, eventually, full_pipe, held_by, is_root, needs, needs_namespaces,
    needs_pid_namespaces, needs_root,
};
pub use weir::{Done, Running, Weir, collect, send};

/// The smallest quota, which the tests use unless they say otherwise, in bytes.
pub const QUOTA: usize = 65_536;

/// Bytes of every value, with no period that a buffer size could hide.
pub fn noise(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
