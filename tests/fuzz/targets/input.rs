//! What a target makes of the engine's bytes.

/// One of these texts, with changes; or the bytes as they are. The first byte says which,
/// and every change is four: what, where, and a byte for it. So what is almost right is
/// there from the start, and needs no corpus.
pub(crate) fn spoiled(data: &[u8], right: &[&str]) -> Vec<u8> {
    let Some((which, rest)) = data.split_first() else {
        return Vec::new();
    };
    let Some(text) = right.get(usize::from(*which) % (right.len() + 1)) else {
        return rest.to_vec();
    };
    let mut bytes = text.as_bytes().to_vec();
    let (changes, _) = rest.as_chunks::<4>();
    for [what, high, low, byte] in changes {
        let at = usize::from(u16::from_be_bytes([*high, *low]));
        let (at, within) = (at % (bytes.len() + 1), at % bytes.len().max(1));
        match what % 8 {
            0 => bytes.insert(at, *byte),
            1 => bytes.truncate(at),
            2 => bytes.push(*byte),
            _ if bytes.is_empty() => {}
            3 => bytes[within] = *byte,
            4 => drop(bytes.remove(within)),
            5 => bytes.insert(within, bytes[within]),
            6 => bytes[within] ^= b'a' ^ b'A',
            _ => renumber(&mut bytes, within, *byte),
        }
    }
    bytes
}

/// Makes the first number from here on one more or less, or one of those about bounds.
fn renumber(bytes: &mut Vec<u8>, from: usize, how: u8) {
    let Some(skipped) = bytes[from..].iter().position(u8::is_ascii_digit) else { return };
    let start = from + skipped;
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit());
    let digits: String = digits.map(|byte| char::from(*byte)).collect();
    let number = digits.parse::<u128>().unwrap_or(u128::MAX);
    let other = match how % 4 {
        0 => number.saturating_add(1),
        1 => number.saturating_sub(1),
        2 => 1 << (how >> 2),
        _ => (1 << (how >> 2)) - 1,
    };
    bytes.splice(start..start + digits.len(), other.to_string().into_bytes());
}

/// The same as text; what is not UTF-8 is replaced.
pub(crate) fn spoiled_text(data: &[u8], right: &[&str]) -> String {
    String::from_utf8_lossy(&spoiled(data, right)).into_owned()
}
