//! Sizes, and what of them is a quota.
#![no_main]

mod input;
mod oracles;

use libfuzzer_sys::fuzz_target;
use oracles::oracle::{self, Size};
use weir_common::{Quota, SizeError, parse_size};

const SIZES: [&str; 6] = ["65536", "64KiB", "15EiB", "18kB", "3b", "18446744073709551615"];

fuzz_target!(|data: &[u8]| {
    let text = input::spoiled_text(data, &SIZES);
    let read = parse_size(&text);
    let expected = match oracle::size(&text) {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Malformed => Err(SizeError::Malformed),
        Size::TooLarge => Err(SizeError::TooLarge),
    };
    assert_eq!(read, expected, "{text:?}");
    if let Ok(bytes) = read {
        assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        let is_quota = (65_536..=1_073_741_824).contains(&bytes);
        assert_eq!(Quota::new(bytes).map(Quota::bytes).ok(), Some(bytes).filter(|_| is_quota));
    }
});
