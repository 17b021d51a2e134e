//! Memory: what weir needs it has before the job starts, or there is no job.

use weir_tests::{Place, weir_binary};

/// Runs a job under a limit of address space, and says what was left.
fn names_left(limit_kib: u32) -> Vec<String> {
    let place = Place::new();
    let limit = format!("ulimit -c 0; ulimit -v {limit_kib}; exec \"$@\"");
    let weir = place.weir().option("receipt", "r.json").option("sync", "none");
    // A job that needs as little as weir does.
    let job = [weir_binary().to_str().unwrap(), "--version"];
    weir.under(&["sh", "-c", &limit, "sh"]).job(&job).run();
    place.names()
}

#[test]
fn a_limit_of_address_space_is_met_before_the_job_or_not_at_all() {
    let whole = [".l.truncated.json", "l", "r.json"];
    let check = |limit_kib| {
        let left = names_left(limit_kib);
        assert!(left.is_empty() || left == whole, "{limit_kib} KiB: {left:?}");
        !left.is_empty()
    };
    // From far too little up to where it is enough, and on from there.
    let enough_kib = (1024..65_536).step_by(12).find(|limit_kib| check(*limit_kib));
    let enough_kib = enough_kib.expect("weir needs less than 64 MiB");
    for limit_kib in (enough_kib..enough_kib + 400).step_by(4) {
        check(limit_kib);
    }
}
