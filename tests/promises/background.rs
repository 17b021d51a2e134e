//! Processes that hold the output after the job has ended.

use weir_common::{Capture, Errno};
use weir_tests::{Place, eventually, send};

#[test]
fn what_a_background_process_still_writes_is_in_the_log_before_the_fact() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let script =
        "(while [ -e go ]; do sleep 0.01; done; echo late) & echo early; echo ended >ended; exit 3";
    let mut running = place.weir().option("receipt", "r.json").sh(script).spawn();
    eventually("the job has ended", || place.at("ended").exists() && place.log() == "early\n");
    // The holder keeps the fact away, and weir with it.
    assert!(running.runs());
    assert_eq!(place.fact_of("l"), None);
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().exits(3).says("");
    assert_eq!(place.log(), "early\nlate\n");
    assert!(!place.fact().quota_reached);
    assert_eq!(place.receipt("r.json").capture, Capture::Complete);
}

#[test]
fn a_holder_of_standard_error_alone_counts_as_well() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let script =
        "(while [ -e go ]; do sleep 0.01; done; echo late >&2) >/dev/null & echo ended >ended";
    let mut running = place.weir().sh(script).spawn();
    eventually("the job has ended", || place.at("ended").exists());
    assert!(running.runs());
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().exits(0).says("");
    assert_eq!(place.log(), "late\n");
}

#[test]
fn a_signal_after_the_jobs_end_ends_the_wait_and_nothing_is_claimed() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let place = Place::new();
        let script = "sleep 1000 & echo $! >holder; echo early; exit 3";
        let running = place.weir().option("receipt", "r.json").option("status-fd", "1").sh(script);
        let running = running.stdout(std::fs::File::create(place.at("events")).unwrap()).spawn();
        let exited = || String::from_utf8(place.read("events")).unwrap().contains("\"exited\"");
        eventually("the job has ended", || place.at("events").exists() && exited());
        running.signal(signal);
        let done = running.wait();
        done.exits(3);
        let log = place.at("l");
        done.says(&format!(
            "weir: log {} may be incomplete: a signal ended the wait for a background process that \
             still held the output\n",
            log.display()
        ));
        assert_eq!(place.log(), "early\n");
        assert_eq!(place.receipt("r.json").capture, Capture::Failed(Some(Errno::EINTR)));
        let holder: u32 = String::from_utf8(place.read("holder")).unwrap().trim().parse().unwrap();
        assert_eq!(place.names(), ["events", "holder", "l", "r.json"]);
        send("KILL", holder);
    }
}
