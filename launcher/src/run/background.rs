//! Processes that hold the stream after the job and after weir's patience: a copy of
//! weir drains on to the true end, and weir itself leaves.

use super::relay::asks_to_end;
use super::watch::{Means, StreamEnd};
use crate::ending::Leave;
use crate::plan::Plan;
use crate::voice::Voice;
use std::os::fd::AsFd;
use weir_common::sys::descriptors;
use weir_common::sys::files::Standard;
use weir_common::sys::process::{self, Fork, News, Pid, Stops};
use weir_common::sys::signals::{self, SignalReader, SignalSet};
use weir_drainer::{Drain, Pause, Until};

/// Drains on in the background, and leaves in the foreground: returns in the copy, when
/// the stream has ended. Everything that weir has made is the copy's from then on, the
/// log's lock too.
///
/// Where there can be no copy, weir waits itself: nothing that it has begun is
/// abandoned.
#[cold]
#[inline(never)]
pub(super) fn settle<Source: AsFd, Log: AsFd>(
    plan: &Plan,
    leave: Leave,
    drain: &mut Drain<'_, Source, Log>,
    means: Means<'_>,
    voice: &mut Voice,
) -> (StreamEnd, Leave) {
    // Perhaps it ends at this very moment; and with process 1 everything does.
    let swept = drain.sweep();
    drain.end_tee();
    if swept == Pause::Ended || Pid::own().is_init() {
        return (StreamEnd::of(Ok(swept)), leave);
    }
    // Before there is a copy: a stop from the terminal in between would be for ever.
    let mask = signals::current_mask();
    signals::block(SignalSet::ALL);
    match process::fork() {
        Ok(Fork::Parent) => {
            if let Some(capture) = &plan.capture {
                voice.note(&format!(
                    "log {}: a background process still holds the output; what it writes is \
                     drained, and the fact comes when it ends",
                    capture.log_path().display()
                ));
            }
            // Not by returning: what would be removed then is the copy's.
            leave.now()
        }
        Ok(Fork::Child) => {
            // Whoever reads weir's output, events or terminal to its end must see the end.
            voice.hang_up();
            let standard = [Standard::Input, Standard::Output, Standard::Error];
            let standard = standard.map(Standard::borrow).into_iter();
            descriptors::let_go(standard.chain(means.terminal_copy));
            drop(means);
            (StreamEnd::of(drain.run(Until::the_end())), Leave::Code(0))
        }
        Err(errno) => {
            signals::set_mask(mask);
            voice.failure(&format!("cannot drain in the background, so weir waits: {errno}"));
            (wait(drain, means.relay.signals), leave)
        }
    }
}

/// Waits for the end of the stream, or for a signal that asks weir to end.
pub(super) fn wait<Source: AsFd, Log: AsFd>(
    drain: &mut Drain<'_, Source, Log>,
    signals: &SignalReader,
) -> StreamEnd {
    loop {
        let paused = drain.run(Until::interrupted_by(signals.as_fd()));
        if paused != Ok(Pause::Interrupted) {
            return StreamEnd::of(paused);
        }
        while let Some(arrived) = signals.next() {
            if asks_to_end(arrived.signal) {
                return StreamEnd::of(Ok(drain.sweep()));
            }
        }
        while let News::Ended(_) = process::news(Stops::Untold) {}
    }
}
