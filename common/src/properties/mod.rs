//! Properties of the parsers, held against oracles on input that is made up: the same
//! input on every run.

mod oracle;
mod record_oracle;
mod records;
mod texts;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

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

/// One change to bytes that were right.
#[derive(Clone, Debug)]
enum Edit {
    Replace(Index, u8),
    Insert(Index, u8),
    Delete(Index),
    Double(Index),
    Truncate(Index),
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let behind = bytes.len() + 1;
        match self {
            Edit::Insert(at, byte) => bytes.insert(at.index(behind), *byte),
            Edit::Truncate(at) => bytes.truncate(at.index(behind)),
            _ if bytes.is_empty() => {}
            Edit::Replace(at, byte) => *at.get_mut(bytes) = *byte,
            Edit::Delete(at) => drop(bytes.remove(at.index(bytes.len()))),
            Edit::Double(at) => bytes.insert(at.index(bytes.len()), *at.get(bytes)),
        }
    }
}

/// One to three changes, with bytes that mean something more often than others.
fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let meant = select(b"{}[]\",:\\ \n\t\0+-.019aAfFgbBkKmMuiE_/\xc3".as_slice());
    let byte = prop_oneof![4 => meant, 1 => any::<u8>()];
    let edit = (0..5, any::<Index>(), byte).prop_map(|(kind, at, byte)| match kind {
        0 => Edit::Replace(at, byte),
        1 => Edit::Insert(at, byte),
        2 => Edit::Delete(at),
        3 => Edit::Double(at),
        _ => Edit::Truncate(at),
    });
    vec(edit, 1..4)
}

/// What is right, with changes.
fn edited(right: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    (right, edits()).prop_map(|(mut bytes, edits)| {
        edits.iter().for_each(|edit| edit.apply(&mut bytes));
        bytes
    })
}

/// The same for texts.
fn edited_text(right: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    edited(right.prop_map(String::into_bytes))
        .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
