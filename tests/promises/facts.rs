//! The fact: canonical bytes, private, immutable, and there only when it is proven.

use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_common::ArtifactId;
use weir_tests::{Place, eventually};

const FACT: &str = ".l.truncated.json";

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

#[test]
fn the_bytes_are_canonical_and_tell_of_this_start() {
    let place = Place::new();
    let before = now_ms();
    let weir = place.weir().option("run-id", "r1").option("attempt-id", "a1");
    weir.sh("printf hello").run().exits(0).says("");
    let fact = place.fact();
    assert!((before..=now_ms()).contains(&fact.observed_at_ms));
    let artifact = ArtifactId::of(&"r1".parse().unwrap(), &"a1".parse().unwrap());
    let expected = format!(
        "{{\"schemaVersion\":2,\"runId\":\"r1\",\"attemptId\":\"a1\",\"logArtifactId\":\"{artifact}\",\
         \"maximumBytes\":65536,\"quotaReached\":false,\"observedAtMs\":{},\"startBytes\":0,\
         \"keptBytes\":5,\"droppedBytes\":0}}",
        fact.observed_at_ms
    );
    assert_eq!(String::from_utf8(place.read(FACT)).unwrap(), expected);
}

#[test]
fn it_is_a_private_file_with_one_name_whatever_the_umask() {
    for umask in ["000", "022", "077", "777"] {
        let place = Place::new();
        let under = format!("umask {umask}; exec \"$@\"");
        place.weir().sh("echo hi").under(&["sh", "-c", &under, "sh"]).run().exits(0).says("");
        for name in [FACT, "l"] {
            let metadata = std::fs::metadata(place.at(name)).unwrap();
            assert_eq!((place.mode(name), metadata.nlink()), (0o600, 1), "{name}, umask {umask}");
        }
    }
}

#[test]
fn it_holds_nothing_of_the_job() {
    let place = Place::new();
    place.weir().env("SECRET", "swordfish").sh("echo tr0ub4dor; : hunter2").run().exits(0);
    let fact = String::from_utf8(place.read(FACT)).unwrap();
    for secret in ["swordfish", "tr0ub4dor", "hunter2"] {
        assert!(!fact.contains(secret), "{fact}");
    }
}

#[test]
fn one_that_is_there_seals_its_log() {
    let place = Place::new();
    place.weir().sh("echo first").run().exits(0);
    let first = place.read(FACT);
    let done = place.weir().sh("echo second").run();
    done.refused("log-sealed");
    let log = place.at("l");
    let said = format!(
        "weir: error[log-sealed]: cannot continue log {}: its fact {} exists\n\
         hint: an attempt is run once: use another log, --root with a new attempt id, or --fresh\n",
        log.display(),
        place.at(FACT).display()
    );
    done.says(&said);
    assert_eq!((place.log().as_str(), place.read(FACT)), ("first\n", first));
}

#[test]
fn anything_under_its_name_seals_the_log_and_stays() {
    type Plant = fn(&Place);
    let plants: [(&str, Plant); 3] = [
        ("dangling symlink", |place| {
            std::os::unix::fs::symlink("nowhere", place.at(FACT)).unwrap()
        }),
        ("directory", |place| std::fs::create_dir(place.at(FACT)).unwrap()),
        ("empty file", |place| std::fs::write(place.at(FACT), "").unwrap()),
    ];
    for (what, plant) in plants {
        let place = Place::new();
        plant(&place);
        let names = place.names();
        place.weir().sh("echo hi").run().refused("log-sealed");
        // Neither the log nor anything else is left.
        assert_eq!(place.names(), names, "{what}");
    }
}

#[test]
fn the_first_one_wins_even_when_it_comes_during_the_run() {
    let place = Place::new();
    let script = "printf '{}' >.l.truncated.json; echo hi";
    let done = place.weir().option("receipt", "r.json").sh(script).run();
    done.exits(0);
    assert_eq!(place.read(FACT), b"{}");
    assert_eq!(
        done.stderr(),
        format!(
            "weir: log {} may be incomplete: another fact took its name meanwhile, and stays\n",
            place.at("l").display()
        )
    );
    let receipt = String::from_utf8(place.read("r.json")).unwrap();
    assert!(receipt.contains("\"capture\":\"failed\""), "{receipt}");
    assert!(receipt.contains("\"captureError\":\"EEXIST\""), "{receipt}");
}

#[test]
fn there_is_none_while_the_job_runs() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let running = place.weir().sh("echo ready; while [ -e go ]; do sleep 0.01; done").spawn();
    eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
    assert_eq!(place.names(), [".l.fifo", "go", "l"]);
    assert_eq!(place.mode(".l.fifo"), 0o600);
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().exits(0).says("");
    assert!(!place.fact().quota_reached);
    assert_eq!(place.names(), [FACT, "l"]);
}

/// What happens to the log behind weir's back, and the errno that the receipt gives.
fn unproven_after(script: &str, errno: &str) {
    let place = Place::new();
    std::fs::write(place.at("other"), "echo hi").unwrap();
    let done =
        place.weir().option("receipt", "r.json").sh(&format!("echo 1234567; {script}")).run();
    done.exits(0);
    assert_eq!(place.fact_of("l"), None, "{script}");
    assert!(done.stderr().contains("may be incomplete"), "{script}: {done:?}");
    let receipt = String::from_utf8(place.read("r.json")).unwrap();
    let expected = format!("\"captureError\":\"{errno}\"");
    assert!(receipt.contains(&expected), "{script}: {receipt}");
    assert!(!place.at(".l.fifo").exists());
}

#[test]
fn a_log_that_changes_behind_weirs_back_is_never_proven_complete() {
    unproven_after("rm l", "ENOENT");
    unproven_after("mv l moved", "ENOENT");
    unproven_after("mv other l", "ESTALE");
    unproven_after("cp l copy; mv copy l", "ESTALE");
    unproven_after("while [ ! -s l ]; do :; done; : >l", "ESTALE");
    unproven_after("echo more >>l", "ESTALE");
    unproven_after("rm l; ln -s other l", "ESTALE");
}

#[test]
fn a_log_that_only_got_a_second_name_is_still_proven() {
    let place = Place::new();
    place.weir().sh("echo hi; ln l second").run().exits(0).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn every_sync_level_publishes_the_same() {
    for sync in ["full", "records", "none"] {
        let place = Place::new();
        place.weir().option("sync", sync).sh("echo hi").run().exits(0).says("");
        assert_eq!(place.names(), [FACT, "l"]);
    }
}
