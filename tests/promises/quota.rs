//! The log holds exactly the first bytes of the output, up to the quota, and the job
//! cannot notice.

use std::ffi::OsStr;
use weir_common::Counts;
use weir_tests::{Place, QUOTA, eventually, needs, needs_namespaces, noise};

/// Runs a job that writes these bytes and checks everything that is left.
fn keeps_the_head_of(content: &[u8]) {
    let place = Place::new();
    std::fs::write(place.at("content"), content).unwrap();
    let done = place.weir().job(&["cat", "content"]).run();
    let kept = content.len().min(QUOTA);
    let dropped = (content.len() - kept) as u64;
    assert!(place.read("l") == content[..kept], "{} bytes", content.len());
    let fact = place.fact();
    assert_eq!(fact.quota_reached, dropped > 0, "{} bytes", content.len());
    let counts = Counts { start_bytes: 0, kept_bytes: kept as u64, dropped_bytes: dropped };
    assert_eq!(fact.counts, Some(counts));
    assert_eq!(place.names(), [".l.truncated.json", "content", "l"]);
    let log = place.at("l");
    let cut = format!(
        "weir: log {} was cut at its quota of 65536 bytes: {dropped} bytes dropped\n",
        log.display()
    );
    done.exits(0).says(if dropped > 0 { &cut } else { "" });
}

#[test]
fn every_length_around_the_quota_is_exact() {
    for length in [0, 1, QUOTA - 1, QUOTA, QUOTA + 1, 2 * QUOTA, 5_000_000] {
        keeps_the_head_of(&noise(length));
    }
}

#[test]
fn one_huge_write_is_cut_at_the_byte() {
    let place = Place::new();
    std::fs::write(place.at("content"), noise(10_000_000)).unwrap();
    place.weir().job(&["dd", "if=content", "bs=10M", "status=none"]).run().exits(0);
    assert!(place.read("l") == noise(10_000_000)[..QUOTA]);
    assert_eq!(place.fact().counts.unwrap().dropped_bytes, (10_000_000 - QUOTA) as u64);
}

#[test]
fn a_last_line_without_a_newline_is_whole() {
    let place = Place::new();
    place.weir().sh("printf exiting").run().exits(0).says("");
    assert_eq!(place.log(), "exiting");
}

#[test]
fn both_streams_go_to_the_log_in_the_order_of_the_writes() {
    let place = Place::new();
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    place.weir().sh(script).run().exits(0).says("");
    assert_eq!(place.log(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[test]
fn a_job_beyond_the_quota_gets_no_sigpipe_and_no_error() {
    let place = Place::new();
    let script = "yes | head -c 50000000; echo rc=$? >verdict";
    place.weir().job(&["bash", "-o", "pipefail", "-c", script]).run().exits(0);
    // `yes` itself dies of its own pipe to head, as it does without weir.
    assert_eq!(place.read("verdict"), b"rc=141\n");
    let place = Place::new();
    place.weir().sh("yes | head -c 50000000; echo rc=$? >verdict").run().exits(0);
    assert_eq!(place.read("verdict"), b"rc=0\n");
    assert!(place.read("l") == b"y\n".repeat(QUOTA / 2));
    assert_eq!(place.fact().counts.unwrap().dropped_bytes, (50_000_000 - QUOTA) as u64);
}

/// A mebibyte of large writes: all but the quota can be thrown away unread.
const MEBIBYTE: &str = "head -c 1048576 /dev/zero; exit 3";

fn cuts_a_mebibyte(place: &Place) {
    assert!(place.read("l") == vec![0; QUOTA]);
    let (fact, kept_bytes) = (place.fact(), QUOTA as u64);
    let counts = Counts { start_bytes: 0, kept_bytes, dropped_bytes: (1 << 20) - kept_bytes };
    assert!(fact.quota_reached && fact.counts == Some(counts), "{fact:?}");
}

#[test]
fn what_is_dropped_goes_into_no_file_that_has_the_name_of_the_null_device() {
    let test = "what_is_dropped_goes_into_no_file";
    let Some(mut under) = needs_namespaces(test) else { return };
    let place = Place::new();
    std::fs::write(place.at("null"), "").unwrap();
    under.extend(["sh", "-c", "mount --bind null /dev/null && exec \"$@\"", "sh"]);
    place.weir().under(&under).sh(MEBIBYTE).run().exits(3);
    assert_eq!(place.read("null"), b"");
    cuts_a_mebibyte(&place);
}

#[test]
fn without_a_call_to_throw_bytes_away_they_are_read() {
    if !needs("without_a_call_to_throw_bytes_away", "strace") {
        return;
    }
    for errno in ["ENOSYS", "EINVAL", "EPERM"] {
        let place = Place::new();
        let fault = format!("inject=splice:error={errno}");
        let strace = ["strace", "-f", "-b", "execve", "-qq", "-o", "trace", "-e"];
        let under = [&strace[..], &["trace=splice", "-e", &fault]].concat();
        place.weir().under(&under).sh(MEBIBYTE).run().exits(3);
        let trace = String::from_utf8_lossy(&place.read("trace")).into_owned();
        // One has shown that there is no such call.
        assert_eq!(trace.matches("(INJECTED)").count(), 1, "{trace}");
        cuts_a_mebibyte(&place);
    }
}

#[test]
fn a_long_line_is_no_different() {
    let place = Place::new();
    place.weir().sh("head -c 20000000 /dev/zero | tr '\\0' x").run().exits(0);
    assert!(place.read("l") == vec![b'x'; QUOTA]);
}

#[test]
fn what_the_job_has_written_is_in_the_log_while_it_runs() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let script = "printf first; while [ -e go ]; do sleep 0.01; done; printf second";
    let running = place.weir().sh(script).spawn();
    eventually("the first bytes are there", || place.at("l").exists() && place.log() == "first");
    assert_eq!(place.fact_of("l"), None);
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().exits(0);
    assert_eq!(place.log(), "firstsecond");
}

#[test]
fn the_log_is_never_longer_than_the_quota_at_any_instant() {
    let place = Place::new();
    let mut running =
        place.weir().job(&["dd", "if=/dev/zero", "bs=100000", "count=300", "status=none"]).spawn();
    let mut longest = 0;
    while running.runs() {
        if let Ok(metadata) = std::fs::metadata(place.at("l")) {
            longest = longest.max(metadata.len());
        }
    }
    running.wait().exits(0);
    assert!(longest <= QUOTA as u64, "{longest} bytes");
    assert_eq!(place.read("l").len(), QUOTA);
}

#[test]
fn a_replay_counts_what_is_there_against_the_quota() {
    let place = Place::new();
    for (there, expected, cut) in [
        (10, 30, false),
        (QUOTA - 20, QUOTA, false),
        (QUOTA - 19, QUOTA, true),
        (QUOTA, QUOTA, true),
    ] {
        let place_name = format!("l{there}");
        std::fs::write(place.at(&place_name), noise(there)).unwrap();
        let weir =
            place.bare().option("log", &place_name).option("quota", "64K").option("min-free", "0");
        weir.sh("printf 01234567890123456789").run().exits(0);
        let log = place.read(&place_name);
        assert_eq!(log.len(), expected);
        assert!(log[..there] == noise(there)[..]);
        assert_eq!(log[there..], b"01234567890123456789"[..expected - there]);
        let fact = place.fact_of(&place_name).unwrap();
        assert_eq!((fact.quota_reached, fact.counts.unwrap().start_bytes), (cut, there as u64));
    }
}

#[test]
fn the_same_attempt_three_times_never_exceeds_the_quota() {
    let place = Place::new();
    for _ in 0..3 {
        // A start that leaves no fact, as a killed one does, may be repeated.
        let running = place.weir().sh("echo $$ >job; exec cat /dev/zero").spawn();
        eventually("the quota is used up", || {
            place.at("job").exists()
                && std::fs::metadata(place.at("l")).unwrap().len() == QUOTA as u64
        });
        running.signal("KILL");
        running.wait().dies_by(9);
        std::fs::remove_file(place.at("job")).unwrap();
        assert_eq!(place.fact_of("l"), None);
    }
    place.weir().sh("echo more").run().exits(0);
    let log = place.read("l");
    assert_eq!(log.len(), QUOTA);
    assert!(place.fact().quota_reached);
}

#[test]
fn names_and_arguments_that_are_not_utf_8_pass_through() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let strange = OsStr::from_bytes(b"caf\xe9 \x01");
    let weir = place.bare().option("log", strange).option("min-free", "0");
    weir.job_os(&["printf".as_ref(), "%s".as_ref(), strange]).run().exits(0).says("");
    assert_eq!(std::fs::read(place.path().join(strange)).unwrap(), strange.as_bytes());
}
