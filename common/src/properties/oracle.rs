//! What texts the parsers take, said again in the plainest way: character by character
//! and in wide numbers. It shares nothing with what it judges; tests/fuzz has it too.

/// What a text is as a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Bytes(u64),
    Malformed,
    TooLarge,
}

/// The grammar of GNU coreutils: every unit there is, written out by its letter.
pub(crate) fn size(text: &str) -> Size {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let unit = &text[digits.len()..];
    if digits.is_empty() {
        return Size::Malformed;
    }
    let mut factor = match unit {
        "" => Some(1),
        "b" => Some(512),
        _ => None,
    };
    let letters = ["kK", "mM", "gG", "tT", "P", "E", "Z", "Y", "R", "Q"];
    for (power, letters) in (1..).zip(letters) {
        for letter in letters.chars() {
            if unit == format!("{letter}") || unit == format!("{letter}iB") {
                factor = Some(1024u128.pow(power));
            }
            if unit == format!("{letter}B") {
                factor = Some(1000u128.pow(power));
            }
        }
    }
    match factor.map(|factor| u64::try_from(number(&digits).saturating_mul(factor))) {
        None => Size::Malformed,
        Some(Ok(bytes)) => Size::Bytes(bytes),
        Some(Err(_)) => Size::TooLarge,
    }
}

/// Digits as a number; as much as fits.
pub(crate) fn number(digits: &str) -> u128 {
    let value = |char: char| u128::from(char.to_digit(10).expect("a digit"));
    digits.chars().fold(0, |sum, char| sum.saturating_mul(10).saturating_add(value(char)))
}

const LETTERS_AND_DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A letter or digit, then up to 127 of `A-Z a-z 0-9 . _ : -`.
pub(crate) fn is_caller_id(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| LETTERS_AND_DIGITS.contains(first))
        && chars.all(|char| LETTERS_AND_DIGITS.contains(char) || "._:-".contains(char))
        && text.chars().count() <= 128
}

/// `local-` or `wlog-`, then 30 lower-case hex digits.
pub(crate) fn is_artifact_id(text: &str) -> bool {
    ["local-", "wlog-"].iter().any(|prefix| {
        text.strip_prefix(prefix).is_some_and(|digits| {
            digits.chars().count() == 30
                && digits.chars().all(|char| "0123456789abcdef".contains(char))
        })
    })
}

/// 32 to 128 of `A-Z a-z 0-9 _ -`.
pub(crate) fn is_token(text: &str) -> bool {
    let length = text.chars().count();
    text.chars().all(|char| LETTERS_AND_DIGITS.contains(char) || "_-".contains(char))
        && (32..=128).contains(&length)
}

/// One component of a path that leaves room for `.` and `.truncated.json` in 255 bytes.
pub(crate) fn is_log_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.iter().all(|byte| *byte != b'/' && *byte != 0)
        && 1 + name.len() + 15 <= 255
}
