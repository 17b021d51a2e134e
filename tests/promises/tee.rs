//! `--tee`: the kept bytes, and only those, on standard output too.

use weir_tests::{Place, QUOTA, noise};

#[test]
fn standard_output_gets_what_the_log_gets() {
    let place = Place::new();
    std::fs::write(place.at("content"), noise(300_000)).unwrap();
    let done = place.weir().flag("tee").job(&["cat", "content"]).run();
    assert!(done.exits(0).stdout == noise(300_000)[..QUOTA]);
    assert!(place.read("l") == noise(300_000)[..QUOTA]);
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_tee_alone() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let weir = place.weir().flag("tee").stdout(writer);
    weir.sh("head -c 60000 /dev/zero; exit 2").run().exits(2).says("");
    assert_eq!(place.read("l"), vec![0; 60_000]);
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_standard_output_that_is_full_ends_the_tee_alone() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = place.weir().flag("tee").stdout(full).sh("echo hi; exit 2").run();
    done.exits(2).says(
        "weir: warning: copying the log to standard output ended early: No space left on device\n",
    );
    assert_eq!(place.log(), "hi\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let place = Place::new();
    let under = ["sh", "-c", "\"$@\" | dd bs=1 status=none >copy", "sh"];
    place.weir().flag("tee").under(&under).sh("seq 1 10000").run().exits(0);
    let expected: String = (1..=10_000).map(|n| format!("{n}\n")).collect();
    assert!(place.read("copy") == expected.as_bytes());
    assert!(place.log() == expected);
}

#[test]
fn a_standard_output_that_is_the_log_is_refused() {
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" >>l", "sh"];
    place.weir().flag("tee").under(&under).sh("echo hi").run().refused("usage");
    assert_eq!(place.log(), "");
}
