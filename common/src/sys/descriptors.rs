//! Letting go of descriptors that somebody else has opened: close_range(2).

use super::errno::Errno;
use super::files;
use super::limits::{self, DESCRIPTORS};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// The first descriptor behind the standard three.
const FIRST: RawFd = 3;

/// Closes every descriptor from 3 on except these.
///
/// To be called where everything that this process has opened for itself and still
/// needs is in the list; what is closed was inherited, and nobody here owns it.
pub fn keep_only<'a>(kept: impl IntoIterator<Item = BorrowedFd<'a>>) {
    let kept: Vec<RawFd> = kept.into_iter().map(|fd| fd.as_raw_fd()).collect();
    let mut from = FIRST;
    // There are a handful: looking for the next is less than sorting them.
    while let Some(next) = kept.iter().copied().filter(|kept| *kept >= from).min() {
        if next > from && close_range(from, next - 1).is_err() {
            return close_singly(&kept);
        }
        from = next + 1;
    }
    if close_range(from, RawFd::MAX).is_err() {
        close_singly(&kept);
    }
}

fn close_range(first: RawFd, last: RawFd) -> Result<(), Errno> {
    // SAFETY: see `keep_only`: nobody in this process owns a descriptor in between.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if answer < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Where close_range(2) is missing (before Linux 5.9) or forbidden: one at a time, those
/// that `/proc` lists, or without `/proc` all that there may be.
fn close_singly(kept: &[RawFd]) {
    let close = |fd: RawFd| {
        if fd >= FIRST && !kept.contains(&fd) {
            // SAFETY: see `keep_only`. The descriptor of the listing itself may be
            // among these, so the listing has ended before the first close.
            unsafe { libc::close(fd) };
        }
    };
    match listed() {
        Some(open) => open.into_iter().for_each(close),
        None => (FIRST..limit()).for_each(close),
    }
}

fn listed() -> Option<Vec<RawFd>> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn limit() -> RawFd {
    let soft = limits::get(DESCRIPTORS).map(limits::Values::soft);
    soft.ok().and_then(|soft| RawFd::try_from(soft).ok()).unwrap_or(RawFd::MAX)
}

/// Puts `/dev/null` in the place of these descriptors, whose numbers stay in use. Where
/// there is no such device, nothing is put in the place of standard ones, and others stay.
pub fn let_go<'a>(descriptors: impl IntoIterator<Item = BorrowedFd<'a>>) {
    let null = files::open_null();
    for descriptor in descriptors {
        replace(descriptor.as_raw_fd(), null.as_ref().ok());
    }
}

fn replace(number: RawFd, null: Option<&OwnedFd>) {
    // SAFETY: dup2(2) replaces what the number leads to, and its owner goes on owning
    // the number. Only the standard three, which nobody owns, are ever closed.
    unsafe {
        match null {
            Some(null) => {
                libc::dup3(
                    null.as_raw_fd(),
                    number,
                    if number < FIRST { 0 } else { libc::O_CLOEXEC },
                );
            }
            None if number < FIRST => {
                libc::close(number);
            }
            None => {}
        }
    }
}
