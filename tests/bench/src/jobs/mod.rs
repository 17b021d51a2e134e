//! What runs under weir and its peers, and readers to be measured beside it: this program
//! itself, as `weir-bench job NAME [ARG]...`.

mod report;
mod splice;
mod stamps;
mod write;

use crate::Fallible;
use std::ffi::OsString;

pub(crate) use report::Report;
pub(crate) use write::{LINE_BYTES, pattern};

pub(crate) fn run(words: &[OsString]) -> Fallible<()> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let words = words.ok_or("not UTF-8")?;
    match words.as_slice() {
        ["write", size, total, report, cpu] => write::write(size, total, report, cpu),
        ["write-and-stay", size, total, report, cpu] => {
            write::write_and_stay(size, total, report, cpu)
        }
        ["splice"] => splice::discard(),
        ["stamp", file] => stamps::stamp(file),
        ["ticks", count, gap_us] => stamps::ticks(count, gap_us),
        ["signals", count, fifo] => stamps::signals(count, fifo),
        _ => Err(format!("no such job: {words:?}").into()),
    }
}
