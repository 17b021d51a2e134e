//! Signals that weir gets reach its job, at once and once.

use weir_tests::{Place, eventually};

/// A job that notes every signal that it gets, and ends at USR2.
const NOTING: &str = "import signal, sys, os\n\
    got = []\n\
    def note(number, frame):\n\
    \x20   print(number, flush=True)\n\
    \x20   if number == signal.SIGUSR2: sys.exit(9)\n\
    for number in range(1, signal.SIGRTMAX + 1):\n\
    \x20   try: signal.signal(number, note)\n\
    \x20   except (OSError, ValueError, RuntimeError): pass\n\
    print('ready', flush=True)\n\
    while True: signal.pause()\n";

#[test]
fn every_signal_is_forwarded_once() {
    if !weir_tests::needs("every_signal_is_forwarded_once", "python3") {
        return;
    }
    let place = Place::new();
    std::fs::write(place.at("note.py"), NOTING).unwrap();
    let running = place.weir().job(&["python3", "note.py"]).spawn();
    let mut expected = String::from("ready\n");
    let log_is = |expected: &str| {
        eventually(expected, || place.at("l").exists() && place.log() == expected);
    };
    log_is(&expected);
    // All but KILL, STOP, CHLD, the terminal's stops, what the faults use, and the two
    // that C libraries keep from their programs.
    let left_out = [9, 19, 17, 20, 21, 22, 4, 5, 7, 8, 11, 31, 12, 32, 33];
    for number in (1..=64).filter(|number| !left_out.contains(number)) {
        running.signal(&number.to_string());
        expected.push_str(&format!("{number}\n"));
        log_is(&expected);
    }
    running.signal("USR2");
    running.wait().exits(9).says("");
    assert_eq!(place.log(), format!("{expected}12\n"));
}

#[test]
fn a_signal_ends_the_job_and_weir_with_it() {
    let place = Place::new();
    let running = place.weir().sh("echo ready; exec sleep 1000").spawn();
    eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
    running.signal("TERM");
    running.wait().dies_by(15).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn the_signals_that_c_libraries_keep_to_themselves_are_forwarded_too() {
    let place = Place::new();
    let running = place.weir().sh("echo ready; exec sleep 1000").spawn();
    eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
    running.signal("33");
    running.wait().dies_by(33).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_caller_that_blocks_or_ignores_a_signal_does_not_keep_it_from_weir() {
    if !weir_tests::needs("a_caller_that_blocks_or_ignores", "python3") {
        return;
    }
    let block = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})";
    let ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)";
    for inherited in [block, ignore] {
        let place = Place::new();
        let start =
            format!("import os, signal, sys\n{inherited}\nos.execvp(sys.argv[1], sys.argv[1:])");
        // The job wants the signal, whatever it has inherited.
        let job = "import signal, sys\n\
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n\
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})\n\
            print('ready', flush=True)\n\
            while True: signal.pause()\n";
        let weir = place.weir().under(&["python3", "-c", &start]).job(&["python3", "-c", job]);
        let running = weir.spawn();
        eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
        running.signal("TERM");
        running.wait().exits(5).says("");
    }
}

#[test]
fn a_stopped_weir_loses_nothing() {
    let place = Place::new();
    let weir = place.bare().option("log", "l").option("quota", "8M").option("min-free", "0");
    let running = weir.sh("echo $$ >pid.new; mv pid.new pid; exec seq 1 500000").spawn();
    eventually("the job runs", || place.at("pid").exists());
    let pid = String::from_utf8(place.read("pid")).unwrap();
    let state = format!("/proc/{}/stat", pid.trim());
    for _ in 0..3 {
        running.signal("STOP");
        // The pipe fills, and the job waits: blocking, not failing.
        let mut asleep = 0;
        eventually("the job waits, or has written everything", || {
            let stat = std::fs::read_to_string(&state).unwrap_or_default();
            asleep = if stat.contains(") S ") { asleep + 1 } else { 0 };
            asleep == 20 || stat.is_empty() || stat.contains(") Z ")
        });
        running.signal("CONT");
    }
    running.wait().exits(0).says("");
    let expected: String = (1..=500_000).map(|n| format!("{n}\n")).collect();
    assert!(place.log() == expected);
}
