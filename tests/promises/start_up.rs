//! Nothing is on the way to the job that need not be there.

use weir_tests::{Place, needs, needs_root};

/// The calls of one run, all processes and threads, in their order: `name(arguments…`.
fn calls(place: &Place, options: &[(&str, &str)]) -> Vec<String> {
    let under = ["strace", "-f", "-qq", "-o", "trace"];
    let weir = place.weir().option("sync", "none").under(&under);
    let weir = options.iter().fold(weir, |weir, (name, value)| weir.option(name, value));
    weir.job(&["/bin/true"]).run().exits(0).says("");
    let trace = String::from_utf8(place.read("trace")).unwrap();
    let call = |line: &str| {
        let (_, call) = line.trim().split_once(' ')?;
        let call = call.trim_start();
        // The second half of one that another has come between, and ends and signals.
        (!call.starts_with(['<', '+', '-'])).then(|| call.to_owned())
    };
    trace.lines().filter_map(call).collect()
}

/// Those of weir's own before the job's program.
fn before_the_job(calls: &[String]) -> &[String] {
    let job = calls.iter().position(|call| call.starts_with("execve(\"/bin/true\"")).unwrap();
    &calls[1..job]
}

#[test]
fn few_calls_are_before_the_job() {
    let test = "few_calls_are_before_the_job";
    // As root: nobody else's strace sees names in weir.
    if !needs_root(test) || !needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let plain = calls(&place, &[]);
    let before = before_the_job(&plain);
    // Each has its reason; ten or so are a C library's.
    assert!(before.len() <= 70, "{}: {before:#?}", before.len());
    // A heap of the system's, a second stack, a copy of this memory: nobody needs one here,
    // but glibc's start has its own.
    let glibc = before.iter().any(|call| call.starts_with("set_robust_list"));
    for call in ["brk(", "munmap(", "mprotect(", "sigaltstack(", "poll(", "fork(", "vfork("] {
        let made = before.iter().filter(|made| made.starts_with(call)).count();
        assert!(made == 0 || glibc, "{call}: {before:#?}");
    }
    let receipt = calls(&Place::new(), &[("receipt", "r.json")]);
    let more = before_the_job(&receipt).len() - before.len();
    assert!(more <= 16, "{more} more: {receipt:#?}");
}

#[test]
fn nothing_is_opened_twice() {
    let test = "nothing_is_opened_twice";
    if !needs_root(test) || !needs(test, "strace") {
        return;
    }
    let calls = calls(&Place::new(), &[]);
    // The directory, the name and how it is opened: the FIFO has two ends.
    let words = |call: &String| call.split([',', ')']).take(3).collect::<Vec<_>>().join(",");
    // Not what the job's loader opens.
    let ours = |call: &&String| call.starts_with("open") && !call.contains("AT_FDCWD, \"/lib");
    let mut opened: Vec<String> = calls.iter().filter(ours).map(words).collect();
    opened.sort_unstable();
    assert!(opened.len() >= 6, "{opened:#?}");
    for pair in opened.windows(2) {
        assert_ne!(pair[0], pair[1], "{opened:#?}");
    }
}
