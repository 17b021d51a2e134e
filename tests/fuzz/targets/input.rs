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
        match what % 5 {
            0 => bytes.insert(at, *byte),
            1 => bytes.truncate(at),
            _ if bytes.is_empty() => {}
            2 => bytes[within] = *byte,
            3 => drop(bytes.remove(within)),
            _ => bytes.insert(within, bytes[within]),
        }
    }
    bytes
}

/// The same as text; what is not UTF-8 is replaced.
pub(crate) fn spoiled_text(data: &[u8], right: &[&str]) -> String {
    String::from_utf8_lossy(&spoiled(data, right)).into_owned()
}
