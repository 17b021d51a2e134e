//! A thread beside this one: pthread_create(3).
//!
//! The standard library's threads want memory for a handler of stack overflows, and end
//! the whole process when there is none.

use super::errno::Errno;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::ptr::null_mut;

/// Runs `body` on a thread of its own, with a stack of so many bytes, and `meanwhile` on
/// this one. Returns when both have ended.
///
/// An error means that there was no thread to be had, and neither has run. A panic of
/// `body` ends the process.
pub fn beside<B, R>(stack_bytes: usize, body: B, meanwhile: impl FnOnce() -> R) -> Result<R, Errno>
where
    B: FnOnce() + Send,
{
    let mut body = Some(body);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialized before they are used, and destroyed after.
    // `enter` gets a pointer to the body, which stays where it is until the thread has been
    // joined, and which this thread does not touch meanwhile.
    let answer = unsafe {
        let attributes = attributes.as_mut_ptr();
        match libc::pthread_attr_init(attributes) {
            0 => {
                let answer = match libc::pthread_attr_setstacksize(attributes, stack_bytes) {
                    0 => {
                        let given = (&raw mut body).cast();
                        libc::pthread_create(thread.as_mut_ptr(), attributes, enter::<B>, given)
                    }
                    answer => answer,
                };
                libc::pthread_attr_destroy(attributes);
                answer
            }
            answer => answer,
        }
    };
    if answer != 0 {
        return Err(Errno::from_raw(answer));
    }
    // SAFETY: it was written when the thread was made.
    let joined = Join(unsafe { thread.assume_init() });
    let result = meanwhile();
    drop(joined);
    Ok(result)
}

/// Makes this thread's waits end on time, to a microsecond; the kernel may be 50 late
/// otherwise, to wake for several reasons at once.
pub fn wake_on_time() {
    // Where that cannot be, it wakes late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
}

/// Waits for a thread when it is dropped: also where `meanwhile` panics, for the body may
/// borrow what would be gone then.
struct Join(libc::pthread_t);

impl Drop for Join {
    fn drop(&mut self) {
        // SAFETY: the thread was made by us, and is joined once.
        unsafe { libc::pthread_join(self.0, null_mut()) };
    }
}

extern "C" fn enter<B: FnOnce() + Send>(given: *mut c_void) -> *mut c_void {
    // SAFETY: it is the `Option<B>` of `beside`, which nobody else touches until this
    // thread has ended.
    let body = unsafe { &mut *given.cast::<Option<B>>() };
    if let Some(body) = body.take() {
        body();
    }
    null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, mpsc};

    #[test]
    fn both_run_at_once_and_are_over_when_it_returns() {
        let answer = Mutex::new(0);
        let (ask, asked) = mpsc::channel();
        let (reply, replied) = mpsc::channel();
        let body = {
            let answer = &answer;
            move || {
                ask.send(1).expect("the other is there");
                *answer.lock().expect("nobody has panicked") = replied.recv().expect("a reply");
            }
        };
        let result = beside(128 << 10, body, || {
            let question: i32 = asked.recv().expect("a question");
            reply.send(question + 1).expect("it waits");
            question
        });
        assert_eq!((result, answer.into_inner().expect("nobody has panicked")), (Ok(1), 2));
    }

    #[test]
    fn where_there_is_no_thread_neither_runs() {
        let mut ran = false;
        let result = beside(usize::MAX >> 2, || {}, || ran = true);
        assert!(result.is_err() && !ran, "{result:?}");
    }
}
