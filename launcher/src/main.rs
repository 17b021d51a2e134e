//! weir runs one job, keeps its output inside an exact byte quota, and leaves proof of
//! whether anything was cut.
#![forbid(unsafe_code)]

mod cli;
mod ending;
mod place;
mod plan;
mod refusal;
mod run;
mod voice;

use cli::{Args, Request};
use ending::Leave;
use plan::Plan;
use refusal::Refusal;
use voice::Voice;
use weir_common::sys::inherited;

fn main() -> ! {
    let mut voice = Voice::new(inherited::inherited().standard_open[2]);
    let leave = match cli::understand(std::env::args_os().skip(1)) {
        Ok(Request::Print(text)) => voice.print(&text),
        Ok(Request::Run(args)) => run_job(&args, &mut voice),
        Err(refusal) => refuse(&refusal, &mut voice),
    };
    leave.now()
}

fn run_job(args: &Args, voice: &mut Voice) -> Leave {
    // First, so that whoever asked for events hears of a refusal too.
    if let Err(refusal) = plan::status_descriptor(args).map(|status| voice.speak_to(status)) {
        return refuse(&refusal, voice);
    }
    let outcome = Plan::of(args).and_then(|plan| run::run(&plan, voice));
    outcome.unwrap_or_else(|refusal| refuse(&refusal, voice))
}

fn refuse(refusal: &Refusal, voice: &mut Voice) -> Leave {
    voice.refused(refusal);
    Leave::Code(refusal.code().exit_code())
}
