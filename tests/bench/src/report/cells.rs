//! A row as words: the columns that every table has.

use crate::results::Row;

pub(super) const HEAD: [&str; 8] =
    ["what", "unit", "weir", "peer", "its figure", "weir / peer", "target", "verdict"];

/// What a reader must know of the columns.
pub(super) const KEY: &str = "Figures are medians. \"weir / peer\" is always weir's figure \
    divided by the peer's, whatever the unit: a target with ≥ is for rates, where more is better, \
    one with ≤ for times, memory and sizes, where less is. A target without × is for weir's \
    figure itself.";

pub(super) fn of(row: &Row) -> [String; 8] {
    let peer = row.peer.as_ref();
    [
        row.what.clone(),
        row.unit.clone(),
        figure(row.weir.median),
        peer.map_or_else(nothing, |peer| peer.name.clone()),
        row.peer_figure().map_or_else(nothing, |peer| figure(peer.median)),
        row.ratio().map_or_else(nothing, ratio),
        row.target().to_string(),
        row.verdict().word().to_owned(),
    ]
}

/// Small ones with as many digits as their targets differ in.
fn ratio(ratio: f64) -> String {
    if ratio < 0.2 { format!("{ratio:.3}×") } else { format!("{ratio:.2}×") }
}

fn nothing() -> String {
    "–".to_owned()
}

/// A number with three digits, or all of those before its point, in groups of three.
pub(super) fn figure(value: f64) -> String {
    let size = value.abs();
    if size < 9.995 {
        return format!("{value:.2}");
    }
    if size < 99.95 {
        return format!("{value:.1}");
    }
    grouped(value)
}

/// A number without a fraction, in groups of three digits.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ratios_have_a_digit_more() {
        assert_eq!((ratio(0.1424), ratio(1.424)), ("0.142×".to_owned(), "1.42×".to_owned()));
    }

    #[test]
    fn figures_have_three_digits_or_groups() {
        let cases = [
            (0.0, "0.00"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (-1234.0, "-1,234"),
            (1_234_567.0, "1,234,567"),
        ];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }
}
