//! A process that shares this one's memory until it becomes another program: clone(2) with
//! `CLONE_VM`.
//!
//! fork(2) copies the tables of a memory that the child gives up at once, and both sides pay
//! a page fault for every page that they touch before it does: a fifth of a launcher's start.
//! vfork(2) copies nothing, but holds the parent until the child's execve(2) is through,
//! which on a file system that hangs is never; a launcher must pass signals on meanwhile.
//! This copies nothing and holds nobody. The price is that the two are like threads, without
//! anything of a C library's to tell them apart: see [`begin`].
//!
//! A signal that would dump the memory of one does not end the other: what is shut from view
//! ([`super::process::shut_from_view`]) is not dumped.

use super::errno::Errno;
use super::process::Pid;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Much more than the way to an execve(2) takes, also in a debug build. What is not touched
/// costs nothing.
const STACK_BYTES: usize = 64 << 10;

#[repr(C, align(16))]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);

// SAFETY: one child at a time is on it, see `IN_USE`.
unsafe impl Sync for Stack {}

static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));
static IN_USE: AtomicBool = AtomicBool::new(false);

/// A child that may share this process's memory still.
#[derive(Debug)]
pub(super) struct Twin {
    pub(super) pid: Pid,
    shares: bool,
}

/// Makes a process that calls `child`, and ends should that return; one with memory of its own where there can be none
/// with this one's, as under an emulator that knows of threads and forks only.
///
/// # Safety
///
/// This process has one thread. `child`, and all that it leads to, stays as it is until the
/// process has become another program or has ended; only then may the [`Twin`] be dropped.
/// Until then nobody but the child touches what it changes, and both sides count on `errno`
/// only where the other makes no call that sets it. `child` allocates nothing.
pub(super) unsafe fn begin<F: FnMut()>(child: &mut F) -> Result<Twin, Errno> {
    // Elsewhere rustix goes through the C library, and its `errno`.
    let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    if is_known && !IN_USE.swap(true, Ordering::Acquire) {
        // SAFETY: the stack is nobody else's, and grows downwards here. `enter` gets the
        // closure of its type, of which the caller promises what it takes.
        let answer = unsafe {
            let top = STACK.0.get().cast::<c_void>().byte_add(STACK_BYTES);
            let flags = libc::CLONE_VM | libc::SIGCHLD;
            libc::clone(enter::<F>, top, flags, (&raw mut *child).cast())
        };
        if answer > 0 {
            return Ok(Twin { pid: Pid::new(answer), shares: true });
        }
        IN_USE.store(false, Ordering::Release);
    }
    // SAFETY: this process has one thread, so the child may go on as it is.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::last()),
        0 => run(child),
        pid => Ok(Twin { pid: Pid::new(pid), shares: false }),
    }
}

extern "C" fn enter<F: FnMut()>(child: *mut c_void) -> c_int {
    // SAFETY: it is the closure that `begin` was given, and nobody else's meanwhile.
    let child = unsafe { &mut *child.cast::<F>() };
    run(child)
}

fn run<F: FnMut()>(child: &mut F) -> ! {
    child();
    // SAFETY: _exit(2) takes a number, and touches nothing of this process's.
    unsafe { libc::_exit(127) }
}

impl Drop for Twin {
    fn drop(&mut self) {
        if self.shares {
            IN_USE.store(false, Ordering::Release);
        }
    }
}
