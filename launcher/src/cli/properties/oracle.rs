//! What `weir run` takes, said again in the plainest way: word by word. It shares nothing
//! with what it judges; tests/fuzz has it too.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What the words after `weir run` say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Help,
    Refused,
    /// The options, each as it was given last, and the job's words.
    Job(Vec<(String, OsString)>, Vec<OsString>),
}

/// Reads the words, where these options take a value, and these none.
pub(crate) fn command_line(words: &[OsString], valued: &[&str], flags: &[&str]) -> Reading {
    let mut given: Vec<(String, OsString)> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_bytes();
        at += 1;
        if word == b"--" {
            break;
        }
        if word == b"-" || word.first() != Some(&b'-') {
            at -= 1;
            break;
        }
        let Some(long) = word.strip_prefix(b"--") else {
            // No short option but this one.
            return if word[1] == b'h' { Reading::Help } else { Reading::Refused };
        };
        let end = long.iter().position(|byte| *byte == b'=');
        let name = std::str::from_utf8(&long[..end.unwrap_or(long.len())]).unwrap_or("");
        let attached = end.map(|end| OsStr::from_bytes(&long[end + 1..]).to_owned());
        let value = match attached {
            _ if name == "help" => return Reading::Help,
            Some(value) if valued.contains(&name) || flags.contains(&name) => value,
            None if flags.contains(&name) => "true".into(),
            None if valued.contains(&name) && at < words.len() => {
                at += 1;
                words[at - 1].clone()
            }
            _ => return Reading::Refused,
        };
        given.retain(|(known, _)| known != name);
        given.push((name.to_owned(), value));
    }
    Reading::Job(given, words[at..].to_vec())
}

/// A whole number, then `ms`, `s`, `m`, `h`, or nothing for seconds: in milliseconds.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let digits = text.chars().take_while(char::is_ascii_digit);
    let digits: Vec<u128> = digits.map(|char| char as u128 - '0' as u128).collect();
    let units = [("", 1000), ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let unit = units.iter().find(|(unit, _)| *unit == &text[digits.len()..])?.1;
    let add = |sum: u128, digit: &u128| sum.saturating_mul(10).saturating_add(*digit);
    let ms = digits.iter().fold(0, add).saturating_mul(unit);
    u64::try_from(ms).ok().filter(|_| !digits.is_empty())
}

/// Whether this is how a refusal is printed: one line, perhaps a hint, and nothing that
/// moves a terminal's cursor.
pub(crate) fn is_refusal(text: &str) -> bool {
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    let (first, second) = (lines.first().copied().unwrap_or_default(), lines.get(1));
    let code = first.strip_prefix("weir: error[").and_then(|rest| rest.split_once("]: "));
    text.ends_with('\n')
        && lines.len() <= 2
        && lines.iter().all(|line| !line.chars().any(char::is_control))
        && second.is_none_or(|line| line.starts_with("hint: "))
        && code.is_some_and(|(code, message)| {
            let is_code = |char: char| char == '-' || char.is_ascii_lowercase();
            !code.is_empty() && code.chars().all(is_code) && !message.is_empty()
        })
}
