//! weir runs one job, keeps its output inside an exact byte quota, and leaves proof of
//! whether anything was cut.
#![forbid(unsafe_code)]
// It begins at `program!`, without the Rust runtime.
#![cfg_attr(not(test), no_main)]

mod cli;
mod doctor;
mod ending;
mod place;
mod plan;
mod refusal;
mod run;
mod voice;

use cli::{Args, Launch, Request};
use ending::Leave;
use plan::Plan;
use refusal::Refusal;
use std::ffi::OsString;
use voice::Voice;
use weir_common::sys::entry::Words;
use weir_common::sys::files::{self, Kind, Standard};
use weir_common::sys::heap::Heap;
use weir_common::sys::inherited;

/// Once the job runs, memory that the system cannot give ends nothing.
#[global_allocator]
static HEAP: Heap = Heap::new();

#[cfg(not(test))]
weir_common::program!(main);

fn main(words: Words) -> ! {
    let mut voice = Voice::new(inherited::inherited().standard_open[2]);
    let leave = match cli::understand(words.skip(1)) {
        Ok(Request::Print(text)) => voice.print(&text),
        Ok(Request::Doctor(examination)) => doctor::report(&examination, &mut voice)
            .unwrap_or_else(|refusal| refuse(&refusal, &mut voice)),
        Ok(Request::Run(args)) => run_job(&args, &mut voice),
        Ok(Request::Ql3(words)) => run_for_ql3(&words, &mut voice),
        Err(refusal) => refuse(&refusal, &mut voice),
    };
    leave.now()
}

fn run_job(args: &Args, voice: &mut Voice) -> Leave {
    if is_standard_error_of(args) {
        voice.fall_silent();
    }
    // Before anything is opened; and whoever asked for events hears of a refusal too.
    let outcome = plan::take_handed(args).and_then(|handed| {
        voice.speak_to(handed.status);
        Plan::of_options(args).and_then(|plan| run::run(&plan, handed.log, voice))
    });
    outcome.unwrap_or_else(|refusal| refuse(&refusal, voice))
}

fn run_for_ql3(words: &[OsString], voice: &mut Voice) -> Leave {
    let log = plan::take_log();
    if !is_heard_by_nobodys_log() {
        voice.fall_silent();
    }
    let plan = Launch::of(words).and_then(|launch| Plan::of_variables(&launch));
    let outcome = plan.and_then(|plan| run::run(&plan, log, voice));
    outcome.unwrap_or_else(|refusal| refuse(&refusal, voice))
}

/// Whether standard error is certainly not the client's log: a line there would be beyond
/// the quota. Any file may be it. So may what standard output is, but for a device, such
/// as a terminal, which has no quota.
fn is_heard_by_nobodys_log() -> bool {
    let output = files::status_of_standard(Standard::Output);
    let error = files::status_of_standard(Standard::Error);
    error.is_some_and(|error| match error.kind {
        Kind::Regular => false,
        Kind::Device => true,
        _ => output.is_some_and(|output| output.identity != error.identity),
    })
}

/// Whether the log is also what weir's own lines go to: there they would be beyond its
/// quota, or change it after it was sealed.
fn is_standard_error_of(args: &Args) -> bool {
    let error = files::status_of_standard(Standard::Error);
    let Some(error) = error.filter(|error| error.kind == Kind::Regular) else { return false };
    plan::log_path(args).is_some_and(|log| {
        let named = files::status_at(files::here(), log.as_os_str());
        named.is_ok_and(|named| named.identity == error.identity)
    })
}

#[cold]
#[inline(never)]
fn refuse(refusal: &Refusal, voice: &mut Voice) -> Leave {
    voice.refused(refusal);
    Leave::Code(refusal.code().exit_code())
}
