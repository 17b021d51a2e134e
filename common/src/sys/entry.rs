//! Where the program begins, in place of the Rust runtime.
//!
//! The runtime would poll the standard descriptors, give the thread a second stack for a
//! message about a stack overflow, and take the handlers of two signals for it: a dozen
//! system calls on the way to a job that none of them is for. What it does besides is done
//! here: closed standard descriptors lead to `/dev/null`, and SIGPIPE is ignored.

use super::inherited;
use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

/// The words that the program was called with, its own name first.
#[derive(Debug)]
pub struct Words {
    at: *const *const c_char,
    left: usize,
}

impl Iterator for Words {
    type Item = OsString;

    fn next(&mut self) -> Option<OsString> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: `begin` was promised so many strings, which stay for as long as the
        // program does.
        let word = unsafe {
            let word = CStr::from_ptr(*self.at);
            self.at = self.at.add(1);
            word
        };
        Some(OsStr::from_bytes(word.to_bytes()).to_owned())
    }
}

/// Notes what the program was started with, and begins it.
///
/// # Safety
///
/// To be called by the C library's start, once, with what it hands to `main`.
pub unsafe fn begin(count: c_int, words: *const *const c_char, main: fn(Words) -> !) -> ! {
    inherited::take_over();
    main(Words { at: words, left: usize::try_from(count).unwrap_or(0) })
}

/// Makes a function the beginning of the program; the crate is `#![no_main]`.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        const _: () = {
            // SAFETY: nothing else has the name: the crate has no main of the runtime's.
            #[unsafe(export_name = "main")]
            extern "C" fn enter(
                count: ::std::ffi::c_int,
                words: *const *const ::std::ffi::c_char,
            ) -> ::std::ffi::c_int {
                // SAFETY: the C library calls this, once, and these are its arguments.
                unsafe { $crate::sys::entry::begin(count, words, $main) }
            }
        };
    };
}
