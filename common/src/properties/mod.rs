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
    Before(u8),
    Behind(u8),
    /// Another number, where one is.
    Number(Index, Number),
}

/// What becomes of a number: the next, the one before, or one of these.
#[derive(Clone, Debug)]
enum Number {
    Next,
    Before,
    This(&'static str),
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let behind = bytes.len() + 1;
        match self {
            Edit::Insert(at, byte) => bytes.insert(at.index(behind), *byte),
            Edit::Truncate(at) => bytes.truncate(at.index(behind)),
            Edit::Before(byte) => bytes.insert(0, *byte),
            Edit::Behind(byte) => bytes.push(*byte),
            _ if bytes.is_empty() => {}
            Edit::Replace(at, byte) => *at.get_mut(bytes) = *byte,
            Edit::Delete(at) => drop(bytes.remove(at.index(bytes.len()))),
            Edit::Double(at) => bytes.insert(at.index(bytes.len()), *at.get(bytes)),
            Edit::Number(at, number) => renumber(bytes, at.index(bytes.len()), number),
        }
    }
}

/// Changes the first number from here on.
fn renumber(bytes: &mut Vec<u8>, from: usize, number: &Number) {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let Some(start) = bytes[from..].iter().position(is_digit).map(|skipped| from + skipped) else {
        return;
    };
    let end = bytes[start..].iter().position(|byte| !is_digit(byte)).unwrap_or(bytes.len() - start);
    let digits: String = bytes[start..start + end].iter().map(|byte| char::from(*byte)).collect();
    let value = oracle::number(&digits);
    let other = match number {
        Number::Next => value.saturating_add(1).to_string(),
        Number::Before => value.saturating_sub(1).to_string(),
        Number::This(other) => (*other).to_owned(),
    };
    bytes.splice(start..start + end, other.into_bytes());
}

/// Numbers on both sides of every bound that a record has.
const BOUNDS: [&str; 16] = [
    "0",
    "1",
    "2",
    "3",
    "64",
    "65",
    "255",
    "256",
    "65535",
    "65536",
    "65537",
    "1073741824",
    "1073741825",
    "18446744073709551614",
    "18446744073709551615",
    "18446744073709551616",
];

/// One to three changes, with bytes that mean something more often than others.
fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let meant = select(b"{}[]\",:\\ \n\t\0+-.019aAfFgbBkKmMuiE_/\xc3".as_slice());
    let byte = prop_oneof![4 => meant, 1 => any::<u8>()];
    let number = prop_oneof![
        2 => Just(Number::Next),
        2 => Just(Number::Before),
        3 => select(BOUNDS.as_slice()).prop_map(Number::This),
    ];
    let edit =
        (0..9, any::<Index>(), byte, number).prop_map(|(kind, at, byte, number)| match kind {
            0 => Edit::Replace(at, byte),
            1 => Edit::Insert(at, byte),
            2 => Edit::Delete(at),
            3 => Edit::Double(at),
            4 => Edit::Truncate(at),
            5 => Edit::Before(byte),
            6 => Edit::Behind(byte),
            _ => Edit::Number(at, number),
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
