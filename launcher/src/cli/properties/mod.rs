//! Properties of the command line, held against an oracle on words that are made up: the
//! same words on every run.

mod command_line;
mod durations;
mod oracle;

use crate::cli::{self, Args, Request};
use crate::refusal::Refusal;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use std::ffi::OsString;

/// Holds a property against so many inputs. The smallest that breaks it is shown, and
/// nothing is kept in the tree.
fn for_all<S: Strategy>(
    cases: u32,
    input: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let seed = RngSeed::Fixed(0x7765_6972);
    let config = Config { cases, failure_persistence: None, rng_seed: seed, ..Config::default() };
    if let Err(broken) = TestRunner::new(config).run(&input, property) {
        panic!("{broken}");
    }
}

/// What `weir run` makes of these words; `None`: they ask for help.
fn run(words: &[OsString]) -> Result<Option<Box<Args>>, Refusal> {
    let words = std::iter::once(OsString::from("run")).chain(words.iter().cloned());
    match cli::understand(words)? {
        Request::Run(args) => Ok(Some(args)),
        Request::Print(_) => Ok(None),
        _ => panic!("it is neither a run nor help"),
    }
}
