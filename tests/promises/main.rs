//! Every promise that weir makes, one file each, shown on the whole binary.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod admission;
mod background;
mod binary;
mod chaos;
mod command_line;
mod directories;
mod dispatchers;
mod doctor;
mod exit_status;
mod facts;
mod failing_disk;
mod fresh;
mod leftovers;
mod log_file;
mod memory;
mod pipe;
mod privacy;
mod process_one;
mod publication;
mod ql3;
mod ql3_log;
mod ql3_refusals;
mod quota;
mod receipts;
mod reserve;
mod signals;
mod start_up;
mod status_events;
mod tee;
mod terminal;
mod the_job;
mod tidy;
