//! What is checked, each in a container of its own.

mod confined;
mod ends;
mod forbidden;
mod records;

use crate::container::Cell;

/// One thing that the images promise.
pub(crate) struct Check {
    /// In a few words.
    pub(crate) name: &'static str,
    /// Shows it, or panics.
    pub(crate) show: fn(Cell),
    /// Whether it can be shown there.
    pub(crate) is_for: fn(Cell) -> bool,
}

impl Check {
    const fn new(name: &'static str, show: fn(Cell)) -> Check {
        Check { name, show, is_for: |_| true }
    }

    /// One that an emulator is in the way of.
    const fn native(name: &'static str, show: fn(Cell)) -> Check {
        Check { name, show, is_for: |cell| !cell.is_emulated() }
    }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    [records::CHECKS, ends::CHECKS, confined::CHECKS, forbidden::CHECKS].into_iter().flatten()
}
