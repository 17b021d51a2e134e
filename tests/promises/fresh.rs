//! `--fresh`: the old log goes, then its records, and a new start begins.

use weir_tests::{Place, QUOTA};

#[test]
fn a_sealed_log_is_started_over() {
    let place = Place::new();
    let weir = || place.weir().option("receipt", "r.json");
    weir().sh("echo first; exit 1").run().exits(1);
    let old = std::fs::File::open(place.at("l")).unwrap();
    weir().sh("echo second").run().refused("log-sealed");
    weir().flag("fresh").sh("echo second").run().exits(0).says("");
    assert_eq!(place.log(), "second\n");
    assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"]);
    assert_eq!(place.fact().counts.unwrap().kept_bytes, 7);
    // Whoever was reading the old log goes on reading it.
    assert_eq!(std::io::read_to_string(old).unwrap(), "first\n");
}

#[test]
fn a_log_without_records_or_above_the_quota_is_started_over() {
    let place = Place::new();
    std::fs::write(place.at("l"), vec![0; QUOTA + 1]).unwrap();
    place.weir().flag("fresh").sh("echo new").run().exits(0).says("");
    assert_eq!(place.log(), "new\n");
}

#[test]
fn records_whose_log_is_gone_are_removed() {
    let place = Place::new();
    place.weir().sh("echo first").run().exits(0);
    std::fs::remove_file(place.at("l")).unwrap();
    place.weir().sh("echo second").run().refused("log-sealed");
    assert_eq!(place.names(), [".l.truncated.json"]);
    place.weir().flag("fresh").sh("echo second").run().exits(0).says("");
    assert_eq!(place.log(), "second\n");
}

#[test]
fn it_is_an_ordinary_start_where_nothing_is() {
    let place = Place::new();
    place.weir().flag("fresh").sh("echo hi").run().exits(0).says("");
    assert_eq!(place.names(), [".l.truncated.json", "l"]);
}

#[test]
fn what_is_no_record_is_not_removed() {
    let place = Place::new();
    std::fs::write(place.at("l"), "old").unwrap();
    std::os::unix::fs::symlink("l", place.at(".l.truncated.json")).unwrap();
    let done = place.weir().flag("fresh").sh("echo hi").run();
    done.refused("log-unsafe");
    assert!(done.stderr().contains("it is a symbolic link"), "{done:?}");
    assert_eq!(place.names(), [".l.truncated.json", "l"]);
    assert_eq!(place.log(), "old");
}

#[test]
fn what_is_no_log_is_not_removed() {
    let place = Place::new();
    std::fs::write(place.at("victim"), "safe").unwrap();
    std::fs::hard_link(place.at("victim"), place.at("l")).unwrap();
    place.weir().flag("fresh").sh("echo hi").run().refused("log-unsafe");
    assert_eq!(place.names(), ["l", "victim"]);
}

#[test]
fn a_receipt_path_that_leads_to_something_else_costs_nothing() {
    let place = Place::new();
    std::fs::write(place.at("Makefile"), "precious").unwrap();
    place.weir().sh("echo first").run().exits(0);
    let done = place.weir().flag("fresh").option("receipt", "Makefile").sh("echo hi").run();
    done.refused("log-unsafe");
    assert!(done.stderr().contains("cannot remove Makefile: it is no receipt: "), "{done:?}");
    assert_eq!(place.read("Makefile"), b"precious");
    assert_eq!(place.log(), "first\n");
}

#[test]
fn a_start_that_would_be_refused_anyway_removes_nothing() {
    let place = Place::new();
    place.weir().sh("echo first").run().exits(0);
    std::fs::create_dir(place.at(".l.fifo")).unwrap();
    place.weir().flag("fresh").sh("echo second").run().refused("fifo-blocked");
    assert_eq!(place.names(), [".l.fifo/", ".l.truncated.json", "l"]);
    assert_eq!(place.log(), "first\n");
}

#[test]
fn a_record_that_may_not_be_written_is_removed_like_any_other() {
    let place = Place::new();
    place.weir().sh("echo first").run().exits(0);
    place.set_mode(".l.truncated.json", 0o400);
    place.weir().flag("fresh").sh("echo second").run().exits(0).says("");
    assert_eq!(place.log(), "second\n");
}

#[test]
fn the_receipt_of_another_run_is_not_removed() {
    let place = Place::new();
    let start = |run: &str| {
        let weir = place.bare().option("root", "root").option("receipt-root", "receipts");
        let weir = weir.option("min-free", "0").option("run-id", run).option("attempt-id", "aa");
        weir.sh("echo hi")
    };
    start("r1").run().exits(0);
    let receipt = place.receipt("receipts/aa/aa.json");
    let done = start("r2").flag("fresh").run();
    done.refused("log-unsafe");
    assert!(done.stderr().contains("it is the receipt of run r1"), "{done:?}");
    assert_eq!(place.receipt("receipts/aa/aa.json"), receipt);
    start("r1").flag("fresh").run().exits(0).says("");
    assert!(place.receipt("receipts/aa/aa.json").started_at_ms >= receipt.finished_at_ms);
}
