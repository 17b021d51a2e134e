//! weir as process 1 of a pid namespace.

use weir_common::Capture;
use weir_common::sys::process::End;
use weir_tests::{Place, Weir, is_root, needs_pid_namespaces};

fn as_one(test: &str, place: &Place) -> Option<Weir> {
    let mut under = needs_pid_namespaces(test)?;
    under.extend(["--kill-child", "--mount-proc"]);
    Some(place.weir().option("receipt", "r.json").under(&under))
}

#[test]
fn it_exits_as_the_job_and_with_128_and_the_signals_number() {
    let test = "it_exits_as_the_job";
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let place = Place::new();
        let Some(weir) = as_one(test, &place) else { return };
        weir.sh(script).run().exits(code).says("");
        assert!(!place.fact().quota_reached);
    }
}

#[test]
fn the_last_words_of_those_that_clean_up_are_in_the_log() {
    let place = Place::new();
    let Some(weir) = as_one("the_last_words", &place) else { return };
    // Also one that has left its session and its parent.
    let script = "sh -c 'trap \"sleep 0.3; echo done\" TERM; touch a; sleep 1000 & wait; wait' & \
        (setsid sh -c 'trap \"sleep 0.3; echo orphan; exit\" TERM; touch b; while :; do sleep 0.01; done' &); \
        until [ -e a ] && [ -e b ]; do sleep 0.01; done; echo first; exit 3";
    weir.sh(script).run().exits(3).says("");
    let log = place.log();
    // The shells say so when what they wait for is terminated.
    let mut lines: Vec<&str> = log.lines().filter(|line| *line != "Terminated").collect();
    lines.sort_unstable();
    assert_eq!(lines, ["done", "first", "orphan"]);
    assert_eq!(place.receipt("r.json").capture, Capture::Complete);
}

#[test]
fn what_ignores_term_is_killed_after_the_grace() {
    let place = Place::new();
    let Some(weir) = as_one("what_ignores_term", &place) else { return };
    // And what is stopped is continued, so that it hears the TERM.
    let script = "sh -c 'trap \"\" TERM; touch ready; while :; do sleep 0.01; done' & \
        sh -c 'trap \"echo continued; exit\" TERM; touch stopped; kill -STOP $$; sleep 1000' & \
        until [ -e ready ] && [ -e stopped ]; do sleep 0.01; done; exit 6";
    weir.option("grace", "300ms").sh(script).run().exits(6).says("");
    assert!(place.log().lines().any(|line| line == "continued"), "{}", place.log());
    assert!(!place.fact().quota_reached);
}

#[test]
fn every_orphan_is_reaped_also_when_many_die_at_once() {
    let place = Place::new();
    let Some(weir) = as_one("every_orphan_is_reaped", &place) else { return };
    // A hundred orphans that end together; none may stay a zombie.
    let script = "mkfifo gate; exec 3<>gate; i=0; while [ $i -lt 100 ]; do i=$((i+1)); \
        (sh -c 'exec <gate; : >up$0; read x' $i 3>&- &); done; \
        until [ $(ls -d up* 2>/dev/null | wc -l) -eq 100 ]; do sleep 0.01; done; exec 3>&-; \
        while grep -l '^State:.*Z' /proc/[0-9]*/status 2>/dev/null || \
        [ $(ls -d /proc/[0-9]* 2>/dev/null | wc -l) -gt 4 ]; do sleep 0.01; done >/dev/null; echo all";
    weir.sh(script).run().exits(0).says("");
    assert_eq!(place.log(), "all\n");
}

#[test]
fn wait_waits_for_what_holds_the_output() {
    let place = Place::new();
    let Some(weir) = as_one("wait_waits", &place) else { return };
    let script = "(until [ -e ended ]; do sleep 0.01; done; echo late) & touch ended; exit 3";
    weir.option("after-exit", "wait").sh(script).run().exits(3).says("");
    assert_eq!(place.log(), "late\n");
}

#[test]
fn it_cannot_linger() {
    let place = Place::new();
    let Some(weir) = as_one("it_cannot_linger", &place) else { return };
    weir.option("after-exit", "linger").sh("echo hi").run().refused("usage");
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_signal_from_outside_reaches_the_job_though_nothing_kills_process_1() {
    let place = Place::new();
    let Some(weir) = as_one("a_signal_from_outside", &place) else { return };
    let script = "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let running = weir.sh(script).spawn();
    weir_tests::eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
    // unshare waits for process 1, its only child.
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let one = std::fs::read_to_string(children).unwrap();
    weir_tests::send("TERM", one.split_whitespace().next().unwrap().parse().unwrap());
    running.wait().exits(5).says("");
    assert_eq!(place.log(), "ready\ngot\n");
}

#[test]
fn a_signal_that_ends_a_wait_leaves_the_state_of_the_log_unknown() {
    let place = Place::new();
    let Some(weir) = as_one("a_signal_that_ends_a_wait", &place) else { return };
    // When the job is gone, the one that is left behind asks weir to end.
    let script = "(trap '' TERM; while kill -0 $$ 2>/dev/null; do sleep 0.01; done; \
        kill -TERM 1; sleep 1000) & exit 6";
    weir.option("after-exit", "wait").sh(script).run().exits(6);
    assert_eq!(place.fact_of("l"), None);
    let receipt = place.receipt("r.json");
    assert_eq!(receipt.capture, Capture::Failed(Some(weir_common::Errno::EINTR)));
    assert_eq!(receipt.job, weir_common::JobEnd::Ended(End::Code(6)));
}

#[test]
fn without_proc_it_works_the_same() {
    let test = "without_proc_it_works_the_same";
    let Some(mut under) = needs_pid_namespaces(test) else { return };
    under.extend([
        "--kill-child",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs t /proc && exec \"$@\"",
        "sh",
    ]);
    let place = Place::new();
    let script = "sleep 1000 & (setsid sleep 1000 &); echo hi; exit 3";
    let weir = place.weir().option("receipt", "r.json").under(&under).sh(script);
    weir.run().exits(3).says("");
    assert_eq!(place.log(), "hi\n");
    assert_eq!(place.receipt("r.json").job, weir_common::JobEnd::Ended(End::Code(3)));
    if is_root() {
        let under =
            ["unshare", "--mount", "sh", "-c", "mount -t tmpfs t /proc && exec \"$@\"", "sh"];
        let place = Place::new();
        place.weir().under(&under).sh("echo hi").run().exits(0).says("");
        assert!(!place.fact().quota_reached);
        let place = Place::new();
        let done = place.weir().option("after-exit", "kill").under(&under).sh("echo hi").run();
        done.refused("system");
        assert!(done.stderr().contains("cannot list processes in /proc"), "{done:?}");
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn two_thousand_short_jobs_lose_no_byte() {
    // As process 1, each of 60,000 bytes; in one namespace each, and a few at a time.
    let test = "two_thousand_short_jobs";
    let jobs = if std::env::var_os("WEIR_SOAK").is_some() { 2000 } else { 100 };
    let content = weir_tests::noise(60_000);
    for batch in 0..jobs / 20 {
        let place = Place::new();
        std::fs::write(place.at("content"), &content).unwrap();
        let mut running = Vec::new();
        for n in 0..20 {
            let Some(mut under) = needs_pid_namespaces(test) else { return };
            under.push("--kill-child");
            let log = format!("l{n}");
            let weir =
                place.bare().option("log", &log).option("quota", "64K").option("min-free", "0");
            let weir = weir.option("sync", "none").under(&under);
            running.push((log, weir.job(&["cat", "content"]).spawn()));
        }
        for (log, one) in running {
            one.wait().exits(0).says("");
            assert!(place.read(&log) == content, "{log} of batch {batch}");
            assert!(!place.fact_of(&log).unwrap().quota_reached);
        }
    }
}
