//! Results for people and for programs.

mod cells;
mod files;
mod markdown;
mod plots;
mod scale;
mod svg;
mod table;

pub(crate) use files::{earlier, leave};
pub(crate) use table::{summary, table};

/// A number without a fraction, in groups of three digits.
pub(crate) fn whole(value: f64) -> String {
    cells::grouped(value)
}
