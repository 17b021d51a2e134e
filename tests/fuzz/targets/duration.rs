//! Durations, as `--grace` takes them. The launcher is no library: its modules are these.
#![no_main]

#[path = "../../../launcher/src/cli/mod.rs"]
mod cli;
mod input;
#[path = "../../../launcher/src/cli/properties/oracle.rs"]
mod oracle;
#[path = "../../../launcher/src/place/mod.rs"]
mod place;
#[path = "../../../launcher/src/plan/mod.rs"]
mod plan;
#[path = "../../../launcher/src/refusal.rs"]
mod refusal;

use cli::Request;
use libfuzzer_sys::fuzz_target;
use plan::Plan;
use std::ffi::OsString;

const DURATIONS: [&str; 6] =
    ["500ms", "5s", "2m", "5124095576030h", "307445734561825m", "18446744073709551"];

fuzz_target!(|data: &[u8]| {
    let text = input::spoiled_text(data, &DURATIONS);
    let words = ["run", "--log=f", "--grace", &text, "job"].map(OsString::from);
    let Ok(Request::Run(args)) = cli::understand(words.into_iter()) else {
        panic!("it is not read");
    };
    let grace = Plan::of_options(&args).map(|plan| plan.grace.as_millis());
    assert_eq!(
        grace.as_ref().ok(),
        oracle::duration_ms(&text).map(u128::from).as_ref(),
        "{text:?}"
    );
    if let Err(refusal) = grace {
        assert!(oracle::is_refusal(&refusal.to_string()), "{refusal}");
    }
});
