//! A file system that refuses, fails, is slow, or never answers.

use crate::fuse::Fuse;
use std::time::Duration;
use weir_common::sys::process::End;
use weir_common::{Capture, Errno, JobEnd};
use weir_tests::eventually;

#[test]
fn what_it_refuses_before_the_job_is_a_refusal_that_leaves_nothing() {
    let (perm, io, nospc, rofs, nosys, notsup, dquot) = (1, 5, 28, 30, 38, 95, 122);
    let Some(fuse) = Fuse::needed("refusals", "{}", &["use_ino"]) else { return };
    let (log, draft, fifo) = ("l", ".l.truncated.tmp", ".l.fifo");
    for (call, name, errno, code) in [
        ("statfs", "", io, "system"),
        ("statfs", "", nosys, "system"),
        ("create", log, io, "system"),
        ("create", log, perm, "system"),
        ("create", log, rofs, "system"),
        ("create", log, nospc, "capacity-unavailable"),
        ("create", log, dquot, "capacity-unavailable"),
        ("create", draft, io, "system"),
        ("create", draft, nospc, "capacity-unavailable"),
        ("create", draft, dquot, "capacity-unavailable"),
        ("write", draft, io, "system"),
        ("write", draft, nospc, "capacity-unavailable"),
        ("write", draft, dquot, "capacity-unavailable"),
        ("link", draft, perm, "records-unsupported"),
        ("link", draft, notsup, "records-unsupported"),
        ("mknod", fifo, perm, "fifo-unsupported"),
        ("mknod", fifo, notsup, "fifo-unsupported"),
        ("mknod", fifo, nospc, "capacity-unavailable"),
        ("mknod", fifo, io, "system"),
    ] {
        let name = if name.is_empty() { "/" } else { name };
        let only = if name == "/" { String::new() } else { format!(",\"name\":\"{name}\"") };
        fuse.answer(&format!("{{\"{call}\":{{\"errno\":{errno}{only}}}}}"));
        let done = fuse.weir().sh("echo hi; touch ran").run();
        assert!(done.stderr().contains(&format!("[{code}]")), "{call} {name} {errno}: {done:?}");
        done.refused(code);
        assert!(!fuse.beside().at("ran").exists());
        assert_eq!(fuse.names(), [""; 0]);
    }
    // And where it refuses nothing.
    fuse.answer("{}");
    fuse.weir().sh("echo hi").run().exits(0).says("");
    assert_eq!(fuse.names(), [".l.truncated.json", "l"]);
    // This one is asked once: the kernel remembers that it does not know the call.
    let no_link = format!("{{\"link\": {{\"errno\": {nosys}}}}}");
    let Some(fuse) = Fuse::needed("refusals", &no_link, &["use_ino"]) else { return };
    for _ in 0..2 {
        fuse.weir().sh("echo hi").run().refused("records-unsupported");
        assert_eq!(fuse.names(), [""; 0]);
    }
}

#[test]
fn numbers_of_inodes_that_it_makes_up_are_good_enough() {
    let Some(fuse) = Fuse::needed("made_up_inodes", "{}", &[]) else { return };
    fuse.weir().sh("echo hi; exit 3").run().exits(3).says("");
    assert_eq!(fuse.names(), [".l.truncated.json", "l"]);
    fuse.weir().sh("echo hi").run().refused("log-sealed");
}

/// A job that waits between its output and its end, or its second output, for `go`.
fn at_the_end(what: &str, answers: &str, expected: Option<Capture>) {
    let Some(fuse) = Fuse::needed(what, "{}", &["use_ino"]) else { return };
    let beside = fuse.beside();
    let weir = fuse.weir().option("receipt", beside.at("r.json"));
    let job = "echo hi; touch ready; until [ -e go ]; do sleep 0.01; done; exit 3";
    let running = weir.sh(job).spawn();
    eventually("the log has its bytes", || {
        beside.at("ready").exists() && std::fs::read(fuse.behind().join("l")).unwrap() == b"hi\n"
    });
    fuse.answer(answers);
    std::fs::write(beside.at("go"), "").unwrap();
    let done = running.wait();
    done.exits(3);
    assert_eq!(std::fs::read(fuse.behind().join("l")).unwrap(), b"hi\n", "{answers}");
    let capture = beside.receipt("r.json").capture;
    match expected {
        Some(failed) => {
            assert_eq!(capture, failed, "{answers}");
            assert_eq!(done.stderr().lines().count(), 1, "{done:?}");
            assert_eq!(fuse.names(), ["l"], "{answers}");
        }
        None => {
            assert_eq!(capture, Capture::Complete, "{answers}");
            assert_eq!(fuse.names(), [".l.truncated.json", "l"], "{answers}: {done:?}");
        }
    }
}

#[test]
fn what_fails_at_the_end_costs_the_fact_and_nothing_else() {
    let failed = |errno| Some(Capture::Failed(Some(errno)));
    for (answers, expected) in [
        (r#"{"fsync": {"errno": 5}}"#, failed(Errno::EIO)),
        (r#"{"fsync": {"errno": 28}}"#, failed(Errno::ENOSPC)),
        (r#"{"fsync": {"errno": 5, "name": "l"}}"#, failed(Errno::EIO)),
        (r#"{"write": {"errno": 5}}"#, failed(Errno::EIO)),
        (r#"{"truncate": {"errno": 5}}"#, failed(Errno::EIO)),
        (r#"{"link": {"errno": 1}}"#, failed(Errno::EPERM)),
        (r#"{"link": {"errno": 28}}"#, failed(Errno::ENOSPC)),
        (r#"{"getattr": {"errno": 5, "name": "l"}}"#, failed(Errno::EIO)),
        // A call that the server does not know is as good as done.
        (r#"{"fsync": {"errno": 38}}"#, None),
        // The fact is there then; that it may not last is told.
        (r#"{"fsyncdir": {"errno": 5}}"#, None),
        (r#"{"statfs": {"errno": 5}}"#, None),
    ] {
        at_the_end("at_the_end", answers, expected);
    }
}

#[test]
fn a_write_that_fails_ends_the_keeping() {
    let Some(fuse) = Fuse::needed("write_fails", "{}", &["use_ino"]) else { return };
    let beside = fuse.beside();
    let weir = fuse.weir().option("receipt", beside.at("r.json"));
    let job = "echo one; touch ready; until [ -e go ]; do sleep 0.01; done; echo two; exit 3";
    let running = weir.sh(job).spawn();
    eventually("the log has its bytes", || {
        beside.at("ready").exists() && std::fs::read(fuse.behind().join("l")).unwrap() == b"one\n"
    });
    fuse.answer(r#"{"write": {"errno": 5, "name": "l"}}"#);
    std::fs::write(beside.at("go"), "").unwrap();
    let done = running.wait();
    done.exits(3);
    assert_eq!(beside.receipt("r.json").capture, Capture::Failed(Some(Errno::EIO)));
    assert_eq!(std::fs::read(fuse.behind().join("l")).unwrap(), b"one\n");
    assert_eq!(done.stderr().lines().count(), 1, "{done:?}");
    assert_eq!(fuse.names(), ["l"]);
}

#[test]
fn a_slow_file_system_gets_everything() {
    let slow = r#"{"write": {"delay": 0.05}, "fsync": {"delay": 0.05}, "link": {"delay": 0.05}}"#;
    let Some(fuse) = Fuse::needed("slow", slow, &["use_ino"]) else { return };
    fuse.weir().sh("for n in 1 2 3 4 5; do echo $n; done; exit 3").run().exits(3).says("");
    assert_eq!(std::fs::read(fuse.behind().join("l")).unwrap(), b"1\n2\n3\n4\n5\n");
    assert_eq!(fuse.names(), [".l.truncated.json", "l"]);
}

#[test]
fn a_file_system_that_never_answers_holds_no_signal_and_its_death_ends_the_wait() {
    let Some(mut fuse) = Fuse::needed("never_answers", "{}", &["use_ino"]) else { return };
    let got = fuse.beside().at("got");
    let beside = fuse.beside().path().to_owned();
    let weir = fuse.weir().option("receipt", beside.join("r.json"));
    let job = "trap 'touch got; exit 7' TERM; echo one; touch ready
        until [ -e go ]; do sleep 0.01; done; echo two; while :; do sleep 0.01; done";
    let running = weir.sh(job).spawn();
    eventually("it is started", || beside.join("ready").exists());
    eventually("the log has its bytes", || {
        std::fs::read(fuse.behind().join("l")).unwrap() == b"one\n"
    });
    // The server itself ends after less than a minute.
    fuse.answer(r#"{"write": {"delay": 1000000, "name": "l"}}"#);
    std::fs::write(beside.join("go"), "").unwrap();
    eventually("a write waits for its answer", || beside.join("control.waits").exists());
    running.signal("TERM");
    let before = std::time::Instant::now();
    eventually("the job has got the signal", || got.exists());
    assert!(before.elapsed() < Duration::from_secs(5), "it came when the wait was over");
    fuse.kill();
    let done = running.wait();
    done.exits(7);
    assert_eq!(std::fs::read(fuse.behind().join("l")).unwrap(), b"one\n");
    assert_eq!(fuse.names().iter().filter(|name| name.ends_with(".json")).count(), 0);
    let receipt = fuse.beside().receipt("r.json");
    assert!(matches!(receipt.capture, Capture::Failed(Some(_))), "{receipt:?}");
    assert!(!done.stderr().contains("panicked"), "{done:?}");
}

#[test]
fn a_program_whose_start_hangs_gets_signals_all_the_same() {
    let Some(mut fuse) = Fuse::needed("start_hangs", "{}", &["use_ino"]) else { return };
    let beside = fuse.beside().path().to_owned();
    std::fs::copy("/bin/true", fuse.behind().join("job")).unwrap();
    fuse.answer(r#"{"open": {"delay": 1000000, "name": "job"}}"#);
    let weir = fuse.beside().weir().option("receipt", "r.json");
    let running = weir.job(&[fuse.path().join("job").to_str().unwrap()]).spawn();
    eventually("execve waits for an answer", || beside.join("control.waits").exists());
    let pid = running.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let waits_for_it = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", children.trim())).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t")).unwrap();
        u64::from_str_radix(pending, 16).unwrap() >> (15 - 1) & 1 == 1
    };
    assert!(!waits_for_it());
    running.signal("TERM");
    let before = std::time::Instant::now();
    // It ends by it when the kernel has its answer.
    eventually("the job has got the signal", waits_for_it);
    assert!(before.elapsed() < Duration::from_secs(5), "it came when the wait was over");
    fuse.kill();
    running.wait().dies_by(15).says("");
    assert!(!fuse.beside().fact().quota_reached);
    let receipt = fuse.beside().receipt("r.json");
    assert_eq!(receipt.job, JobEnd::Ended(End::Signal { number: 15, core_dumped: false }));
}

#[test]
fn a_file_system_that_dies_costs_the_fact_and_does_not_disturb_the_job() {
    let Some(mut fuse) = Fuse::needed("dies", "{}", &["use_ino"]) else { return };
    let beside = fuse.beside().path().to_owned();
    let weir = fuse.weir().option("receipt", beside.join("r.json"));
    let job = "echo one; touch ready; until [ -e go ]; do sleep 0.01; done
        head -c 300000 /dev/zero; exit 3";
    let running = weir.sh(job).spawn();
    eventually("it is started", || beside.join("ready").exists());
    eventually("the log has its bytes", || {
        std::fs::read(fuse.behind().join("l")).unwrap() == b"one\n"
    });
    fuse.kill();
    std::fs::write(beside.join("go"), "").unwrap();
    let done = running.wait();
    done.exits(3);
    let receipt = fuse.beside().receipt("r.json");
    assert!(matches!(receipt.capture, Capture::Failed(Some(_))), "{receipt:?}");
    assert_eq!(receipt.counts.kept_bytes + receipt.counts.dropped_bytes, 300_004);
    assert_eq!(std::fs::read(fuse.behind().join("l")).unwrap(), b"one\n");
    assert!(!fuse.names().contains(&".l.truncated.json".to_owned()));
}
