//! Memory: what weir needs it has before the job starts, or there is no job.

use weir_tests::{Done, Place, needs, weir_binary};

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

/// A weir whose n-th call for memory, and every later one, fails: in the copy of it that
/// drains on too, which has ended by then. Says whether one has failed.
fn without_more_memory(place: &Place, n: usize) -> (Done, bool) {
    let fault = format!("inject=mmap,brk:error=ENOMEM:when={n}+");
    let calls = "trace=mmap,brk";
    let under = ["strace", "-f", "-b", "execve", "-qq", "-o", "trace", "-e", calls, "-e", &fault];
    // Lines, records and a copy of weir are still to come when the job runs.
    let job =
        "echo begin; (while kill -0 $PPID; do sleep 0.01; done 2>/dev/null; echo end) & exit 7";
    let weir = place.weir().option("receipt", "r.json").option("grace", "0");
    let done = weir.under(&under).sh(job).run();
    let trace = String::from_utf8_lossy(&place.read("trace")).into_owned();
    (done, trace.contains("(INJECTED)"))
}

#[test]
fn memory_that_runs_out_ends_nothing_once_the_job_runs() {
    if !needs("memory_that_runs_out", "strace") {
        return;
    }
    let mut ran = 0;
    for n in 1.. {
        let place = Place::new();
        let (done, has_failed) = without_more_memory(&place, n);
        if done.code() == Some(7) {
            assert_eq!(place.log(), "begin\nend\n", "{n}");
            assert!(!place.fact().quota_reached, "{n}");
            assert_eq!(place.receipt("r.json").counts.kept_bytes, 10, "{n}");
            ran += 1;
        } else {
            // Refused, or ended by the runtime before there was anything.
            assert_eq!(place.names(), ["trace"], "{n}: {done:?}");
        }
        if !has_failed {
            break;
        }
    }
    assert!(ran > 1, "it never ran without memory");
}
