//! Hostile ground: systems that fail, disks that fill up, freeze, die or lose their power.
//!
//! As root, in a mount namespace of its own, in which whatever a test that is killed
//! leaves mounted is gone with it:
//!
//! ```text
//! cargo test --package weir-tests --test hostile --no-run
//! unshare --mount target/debug/deps/hostile-…
//! ```
//!
//! `WEIR_BIN` names the binary that is tested.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod attacks;
mod changed_logs;
mod dying_disks;
mod file_systems;
mod full_disks;
mod fuse;
mod fuse_answers;
mod overlay;
mod power;
mod quota_groups;
mod reserve;
mod stage;
mod sweep;
