//! The QingLong 3 protocol: the log that the client has opened.

use std::fs::File;
use weir_tests::ql3::{ALL_NAMES, client, expected_fact, fact, names, receipt};
use weir_tests::{Place, Running, eventually, needs, needs_namespaces};

#[test]
fn two_on_one_log_never_write_at_once() {
    let place = Place::new();
    let first = client(&place).sh("until [ -e go ]; do sleep 0.01; done; echo first");
    let first = first.spawn();
    eventually("the first runs", || place.at("outputs/fifo").exists());
    let done = client(&place).heard().sh("echo second; touch ran").run();
    done.exits(125);
    let said = "weir: error[log-busy]: cannot lock standard output: another process has it\n";
    done.says(said);
    // Nor is that said in a log.
    client(&place).sh("echo second; touch ran").run().exits(125);
    File::create(place.at("go")).unwrap();
    first.wait().exits(0);
    assert_eq!(place.read("outputs/l"), b"first\n");
    assert_eq!(names(&place), ALL_NAMES);
    assert!(!place.at("ran").exists());
}

#[test]
fn what_another_start_has_written_before_the_lock_counts() {
    let test = "what_another_start_has_written_before_the_lock";
    if !needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let late = "inject=flock:delay_enter=2000000:when=1";
    let under = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=flock", "-e", late];
    let late = client(&place).under(&under).sh("echo late; exit 7").spawn();
    let mut looks = 0;
    eventually("it comes to its lock", || {
        looks = if is_stopped_by_tracer(&late) { looks + 1 } else { 0 };
        looks == 50
    });
    client(&place).sh("head -c 65536 /dev/zero").run().exits(0);
    late.wait().exits(7);
    assert_eq!(place.read("outputs/l").len(), 65_536);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(0)));
}

/// Whether a weir that strace runs is stopped at this moment: for long only where one of
/// its calls is delayed.
fn is_stopped_by_tracer(strace: &Running) -> bool {
    let children = format!("/proc/{0}/task/{0}/children", strace.pid());
    let weir = std::fs::read_to_string(children).unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{}/status", weir.trim()));
    status.is_ok_and(|status| status.contains("(tracing stop)"))
}

#[test]
fn without_proc_the_log_is_locked_all_the_same() {
    let test = "ql3_without_proc";
    let Some(unshare) = needs_namespaces(test) else { return };
    let place = Place::new();
    let without = "mount -t tmpfs t /proc; exec \"$@\"";
    let under = [&unshare[..], &["sh", "-c", without, "sh"]].concat();
    // Who else holds the log is asked with another description of it, in a file system that
    // both see.
    let script = "exec 1>&-; flock -n outputs/l true; echo locked=$? >locked; exit 4";
    client(&place).under(&under).sh(script).run().exits(4);
    assert_eq!(place.read("locked"), b"locked=1\n");
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(4)));
}

#[test]
fn a_log_that_is_longer_than_the_quota_is_refused_and_stays() {
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    std::fs::write(place.at("outputs/l"), vec![b'x'; 65_537]).unwrap();
    let done = client(&place).heard().sh("touch ran").run();
    done.exits(125).says(
        "weir: error[log-over-quota]: cannot continue log standard output: it has 65537 bytes \
         already, the quota is 65536\n",
    );
    client(&place).sh("touch ran").run().exits(125);
    assert_eq!(place.read("outputs/l").len(), 65_537);
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    assert!(!place.at("ran").exists());
}

#[test]
fn what_remains_is_never_more_than_the_log_has_room_for() {
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    std::fs::write(place.at("outputs/l"), vec![b'x'; 65_000]).unwrap();
    // The client's number says 65536 still.
    client(&place).sh("head -c 1000 /dev/zero").run().exits(0);
    assert_eq!(place.read("outputs/l").len(), 65_536);
    assert_eq!(fact(&place), expected_fact(true));
    // Nor more than the client says.
    for (job, quota_reached) in [("head -c 100 /dev/zero", false), ("head -c 101 /dev/zero", true)]
    {
        let place = Place::new();
        let weir = client(&place).sh(job).env("QL3_OUTPUT_QUOTA_REMAINING_BYTES", "100");
        weir.run().exits(0);
        assert_eq!(place.read("outputs/l").len(), 100);
        assert_eq!(fact(&place), expected_fact(quota_reached));
    }
}

#[test]
fn a_client_that_still_has_the_log_open_is_not_in_the_way_of_its_next_try() {
    let place = Place::new();
    let first = client(&place);
    let log = File::options().append(true).open(place.at("outputs/l")).unwrap();
    let first = first.output(log.try_clone().unwrap()).sh("touch ran; exec sleep 1000").spawn();
    eventually("the first runs", || place.at("ran").exists());
    let children = format!("/proc/{0}/task/{0}/children", first.pid());
    let job = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    first.signal("KILL");
    first.wait().dies_by(9);
    weir_tests::send("KILL", job);
    client(&place).sh("echo hi").run().exits(0);
    assert_eq!(place.read("outputs/l"), b"hi\n");
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(0)));
    drop(log);
}

#[test]
fn nothing_is_proven_of_a_log_that_is_gone_or_was_changed_or_is_no_file() {
    for script in ["rm outputs/l", "echo more >>outputs/l", ": >outputs/l"] {
        let place = Place::new();
        let drained = "until [ -s outputs/l ]; do sleep 0.01; done";
        let script = format!("echo hi; {drained}; {script}; exit 3");
        client(&place).sh(&script).run().exits(3);
        assert_eq!((fact(&place), receipt(&place)), (None, Some(3)), "{script}");
    }
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    client(&place).output(writer).heard().sh("echo hi; exit 3").run().exits(3).says("");
    assert_eq!(std::io::read_to_string(reader).unwrap(), "hi\n");
    assert_eq!((fact(&place), receipt(&place)), (None, Some(3)));
    let place = Place::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let script = "head -c 1000000 /dev/zero && exit 3";
    client(&place).output(full).heard().sh(script).run().exits(3).says("");
    assert_eq!((fact(&place), receipt(&place)), (None, Some(3)));
}

#[test]
fn bytes_that_a_log_holds_are_never_written_over() {
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    std::fs::write(place.at("outputs/l"), "before").unwrap();
    let log = || File::options().write(true).open(place.at("outputs/l")).unwrap();
    let done = client(&place).output(log()).heard().sh("touch ran").run();
    done.exits(125).says(
        "weir: error[log-unsafe]: cannot use standard output as log: it is not in append mode, \
         and what it holds would be overwritten\n",
    );
    assert_eq!(place.read("outputs/l"), b"before");
    assert!(!place.at("ran").exists());
}
