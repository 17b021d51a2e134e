//! Sizes as people write them, and quotas.

use std::fmt;

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// It does not follow the grammar.
    Malformed,
    /// It is larger than 2^64−1 bytes.
    TooLarge,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SizeError::Malformed => "it is not a size such as 65536, 64K, 64KiB or 66kB",
            SizeError::TooLarge => "it is larger than any size can be",
        })
    }
}

impl std::error::Error for SizeError {}

/// Reads a size in the grammar of GNU coreutils, in bytes: a whole number, then
/// nothing, `b` (512), or a unit.
///
/// `K M G T P E Z Y R Q` and `KiB MiB …` are powers of 1024, `kB KB MB GB …` powers of 1000;
/// `k m g t` mean what their capitals do.
///
/// ```
/// use weir_common::{parse_size, SizeError};
/// assert_eq!(parse_size("64K"), Ok(65536));
/// assert_eq!(parse_size("64KiB"), Ok(65536));
/// assert_eq!(parse_size("64kB"), Ok(64000));
/// assert_eq!(parse_size("64 K"), Err(SizeError::Malformed));
/// assert_eq!(parse_size("16E"), Err(SizeError::TooLarge));
/// ```
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let digits_end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(SizeError::Malformed);
    }
    let (base, power) = unit_of(unit).ok_or(SizeError::Malformed)?;
    // Digits only, so the one thing that can go wrong is that they are too many.
    let count: u64 = digits.parse().map_err(|_| SizeError::TooLarge)?;
    let step = |bytes: u64, _| bytes.checked_mul(base);
    (0..power).try_fold(count, step).ok_or(SizeError::TooLarge)
}

/// A unit's base, and how often it is to be multiplied by it.
fn unit_of(unit: &str) -> Option<(u64, u32)> {
    if let "" | "b" = unit {
        return Some(if unit.is_empty() { (1, 0) } else { (512, 1) });
    }
    let (letter, base_mark) = unit.split_at_checked(1)?;
    let power = match letter {
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        "P" => 5,
        "E" => 6,
        "Z" => 7,
        "Y" => 8,
        "R" => 9,
        "Q" => 10,
        _ => return None,
    };
    match base_mark {
        "" | "iB" => Some((1024, power)),
        "B" => Some((1000, power)),
        _ => None,
    }
}

/// The exact number of bytes that a log may hold: 64 KiB to 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quota(u64);

/// A number of bytes that is no quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaError {
    /// What was asked for.
    pub bytes: u64,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes are not between 64 KiB (65536) and 1 GiB (1073741824)", self.bytes)
    }
}

impl std::error::Error for QuotaError {}

impl Quota {
    /// The smallest quota.
    pub const MIN: Quota = Quota(64 << 10);
    /// The largest quota.
    pub const MAX: Quota = Quota(1 << 30);

    /// A quota of so many bytes.
    ///
    /// ```
    /// use weir_common::Quota;
    /// assert_eq!(Quota::new(65536)?.bytes(), 65536);
    /// assert!(Quota::new(65535).is_err());
    /// # Ok::<(), weir_common::QuotaError>(())
    /// ```
    pub const fn new(bytes: u64) -> Result<Quota, QuotaError> {
        if bytes < Quota::MIN.0 || bytes > Quota::MAX.0 {
            return Err(QuotaError { bytes });
        }
        Ok(Quota(bytes))
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_means_what_coreutils_says() {
        for (power, letter) in (1..).zip(["K", "M", "G", "T", "P", "E"]) {
            assert_eq!(parse_size(&format!("3{letter}")), Ok(3 * 1024u64.pow(power)));
            assert_eq!(parse_size(&format!("3{letter}iB")), Ok(3 * 1024u64.pow(power)));
            assert_eq!(parse_size(&format!("3{letter}B")), Ok(3 * 1000u64.pow(power)));
        }
        assert_eq!(parse_size("0R"), Ok(0));
        assert_eq!(parse_size("65kB"), Ok(65_000));
        assert_eq!(parse_size("2b"), Ok(1024));
        assert_eq!(parse_size("007k"), Ok(7168));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for bad in [
            "", "K", "-1", "+1", " 1", "1 ", "1.5M", "0x10", "1ki", "1KIB", "1Bi", "1b2", "1é",
            "1X", "1KK",
        ] {
            assert_eq!(parse_size(bad), Err(SizeError::Malformed), "{bad:?}");
        }
        assert_eq!(parse_size("18446744073709551615"), Ok(u64::MAX));
        for large in ["18446744073709551616", "16E", "1Z", "1QB", "99999999999999999999999"] {
            assert_eq!(parse_size(large), Err(SizeError::TooLarge), "{large}");
        }
    }

    #[test]
    fn a_quota_has_both_bounds() {
        for bytes in [65_536, 65_537, 1 << 30] {
            assert_eq!(Quota::new(bytes).map(Quota::bytes), Ok(bytes));
        }
        for bytes in [0, 65_535, (1 << 30) + 1, u64::MAX] {
            assert_eq!(Quota::new(bytes), Err(QuotaError { bytes }));
        }
    }
}
