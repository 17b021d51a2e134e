//! Durations, as `--grace` takes them.

use super::{for_all, oracle, run};
use crate::plan::Plan;
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::OsString;

#[test]
fn a_duration_is_what_the_oracle_says() {
    let digits = prop_oneof![
        "[0-9]{0,4}".boxed(),
        "0{0,20}[0-9]{1,21}".boxed(),
        (0..4u128, select([1u128, 1000, 60_000, 3_600_000].as_slice()))
            .prop_map(|(step, unit)| ((u128::from(u64::MAX) / unit + step) - 1).to_string())
            .boxed(),
    ];
    let duration = (digits, "(ms|s|m|h)?").prop_map(|(digits, unit)| digits + &unit);
    let input = prop_oneof![
        4 => duration,
        1 => "[0-9]{0,3}[ .+smhSMHd-]{0,3}[0-9]{0,2}[smh]?",
        1 => "[0-9]{1,2}[msMSH]{1,2}",
        1 => any::<String>(),
    ];
    for_all(6000, input, |text| {
        let words = ["--log=f", "--grace", &text, "job"].map(OsString::from);
        let args = run(&words).ok().flatten();
        let args = args.ok_or_else(|| TestCaseError::fail("it is refused"))?;
        let grace = Plan::of_options(&args).map(|plan| plan.grace.as_millis()).ok();
        prop_assert_eq!(grace, oracle::duration_ms(&text).map(u128::from));
        Ok(())
    });
}
