//! Processes that remain when the job has ended: `--after-exit`, `--grace`.

use std::process::Command;
use weir_common::sys::process::End;
use weir_common::{Capture, JobEnd};
use weir_tests::{Place, Running, Weir, eventually, full_pipe, held_by, send};

/// Keeps the output open until the file `go` is gone, and then writes `late`.
const HOLDER: &str = "(while [ -e go ]; do sleep 0.01; done; echo late) & echo early; exit 3";

fn place_with_go() -> Place {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    place
}

/// Starts a weir whose events go to the file `events`, and waits for one of them.
fn started_until(place: &Place, weir: Weir, event: &str) -> Running {
    let events = std::fs::File::create(place.at("events")).unwrap();
    let running = weir.option("status-fd", "1").stdout(events).spawn();
    let name = format!("{{\"event\":\"{event}\"");
    eventually(event, || String::from_utf8(place.read("events")).unwrap().contains(&name));
    running
}

fn is_locked(place: &Place) -> bool {
    let taken = Command::new("flock").arg("-n").arg(place.at("l")).arg("true").status();
    !taken.unwrap().success()
}

fn still_held(place: &Place) -> String {
    format!(
        "weir: log {}: a background process still holds the output; what it writes is drained, and \
         the fact comes when it ends\n",
        place.at("l").display()
    )
}

#[test]
fn by_default_weir_leaves_after_the_grace_and_a_background_drainer_sees_to_the_rest() {
    let place = place_with_go();
    let weir = place.weir().option("grace", "50ms").option("receipt", "r.json").flag("tee");
    let weir = weir.option("status-fd", "2").sh(HOLDER);
    // That it comes back with both its streams at their end shows that nobody holds them.
    let done = weir.run();
    done.exits(3);
    assert_eq!(done.stdout(), "early\n");
    assert!(done.stderr().ends_with(&still_held(&place)), "{done:?}");
    assert_eq!(place.log(), "early\n");
    assert_eq!(place.names(), [".l.fifo", "go", "l"]);
    assert!(is_locked(&place));
    place.weir().sh("echo intruder").run().refused("log-busy");
    std::fs::remove_file(place.at("go")).unwrap();
    eventually("the lock is free", || !is_locked(&place));
    assert_eq!(place.log(), "early\nlate\n");
    assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"]);
    assert!(!place.fact().quota_reached);
    let receipt = place.receipt("r.json");
    assert_eq!(receipt.job, JobEnd::Ended(End::Code(3)));
    assert_eq!((receipt.capture, receipt.counts.kept_bytes), (Capture::Complete, 11));
    // The job's end, not the drain's.
    assert!(receipt.finished_at_ms <= place.fact().observed_at_ms);
}

#[test]
fn what_ends_within_the_grace_is_waited_for() {
    let place = place_with_go();
    let mut running = started_until(&place, place.weir().sh(HOLDER), "exited");
    assert!(running.runs());
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().exits(3).says("");
    assert_eq!(place.log(), "early\nlate\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn without_a_holder_the_shortest_grace_is_long_enough() {
    let place = Place::new();
    for n in 0..30 {
        let log = format!("l{n}");
        let weir = place.bare().option("log", &log).option("min-free", "0").option("grace", "0");
        weir.job(&["echo", "hi"]).run().exits(0).says("");
        assert_eq!(place.read(&log), b"hi\n");
        assert!(!place.fact_of(&log).unwrap().quota_reached);
    }
}

#[test]
fn a_slow_reader_of_the_copy_is_no_holder_and_gets_everything() {
    let place = place_with_go();
    let under = ["sh", "-c", "\"$@\" | (while [ -e go ]; do sleep 0.01; done; cat) >copy", "sh"];
    let weir = place.weir().flag("tee").option("grace", "0").option("quota", "1M").under(&under);
    let running = weir.sh("head -c 120000 /dev/zero; touch ended; exit 4").spawn();
    // The last of it is in the pipe of the stream, behind what the copy's reader holds up.
    eventually("the job ends", || place.at("ended").exists());
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().says("");
    assert_eq!(place.read("copy"), vec![0; 120_000]);
    assert_eq!(place.read("l"), vec![0; 120_000]);
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_reader_of_the_copy_that_never_reads_holds_weir_only_until_a_signal() {
    let place = Place::new();
    for job in ["exec head -c 200000 /dev/zero", ""] {
        let (log, receipt) = (format!("l{}", job.len()), format!("r{}", job.len()));
        let (reader, writer) = full_pipe();
        let weir = place.bare().option("log", &log).option("min-free", "0").flag("tee");
        let weir = weir.option("receipt", &receipt).option("status-fd", "2").option("grace", "0");
        let events = std::fs::File::create(place.at("events")).unwrap();
        // A job, and one that cannot be started.
        let weir = if job.is_empty() { weir.job(&["no-such-command"]) } else { weir.sh(job) };
        let running = weir.stdout(writer).stderr(events).spawn();
        let event = if job.is_empty() { "\"refused\"" } else { "\"started\"" };
        eventually("the job", || String::from_utf8_lossy(&place.read("events")).contains(event));
        // The first is for the job, if there is one; the others end the wait.
        let mut running = running;
        eventually("weir ends", || {
            if running.runs() {
                running.signal("TERM");
            }
            !running.runs()
        });
        running.wait();
        assert!(place.at(&receipt).exists() && place.fact_of(&log).is_some(), "{job:?}");
        let events = String::from_utf8(place.read("events")).unwrap();
        assert!(!events.contains("background process"), "{events}");
        drop(reader);
    }
}

#[test]
fn what_a_background_drainer_holds_is_its_own() {
    if !weir_tests::needs_root("what_a_background_drainer_holds") {
        return;
    }
    let place = place_with_go();
    let script = "exec \"$@\" 5</etc/passwd 6>>l 7</etc/hostname </etc/passwd";
    let weir = place.weir().option("grace", "0").option("log-fd", "6").option("receipt", "r.json");
    weir.flag("tee").under(&["sh", "-c", script, "sh"]).sh(HOLDER).run().exits(3);
    let log = place.at("l").display().to_string();
    let drainer = std::fs::read_dir("/proc").unwrap().flatten().find(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&log.as_bytes()) && words.contains(&b"--log-fd".as_slice())
    });
    let drainer = drainer.expect("a background drainer").path();
    // Standard three; signals; the log, its directory for fact and receipt, two drafts.
    let expected = [
        "/dev/null",
        "/dev/null",
        "/dev/null",
        "HERE",
        "HERE",
        "HERE/",
        "HERE/",
        "HERE/.l.fifo",
        "HERE/l",
        "anon_inode",
    ];
    // weir leaves while its copy is still letting go.
    eventually("it holds what is its own", || held_by(&place, &drainer) == expected);
    assert_eq!(std::fs::read_link(drainer.join("cwd")).unwrap(), std::path::Path::new("/"));
    std::fs::remove_file(place.at("go")).unwrap();
    eventually("the fact is there", || place.fact_of("l").is_some());
}

#[test]
fn a_holder_that_writes_for_ever_does_not_extend_the_grace() {
    let place = place_with_go();
    let script = "(while [ -e go ]; do echo x; done) & exit 0";
    place.weir().option("grace", "50ms").sh(script).run().exits(0).says(&still_held(&place));
    std::fs::remove_file(place.at("go")).unwrap();
    eventually("the fact is there", || place.fact_of("l").is_some());
    let (log, fact) = (place.read("l"), place.fact());
    assert!(log.iter().enumerate().all(|(at, byte)| *byte == b"x\n"[at % 2]));
    assert_eq!(fact.counts.unwrap().kept_bytes, log.len() as u64);
}

#[test]
fn a_background_drainer_keeps_the_quota_and_a_daemon_never_sees_a_closed_pipe() {
    let place = place_with_go();
    let daemon = "trap '' PIPE; while [ -e go ]; do sleep 0.01; done; \
                  head -c 200000 /dev/zero && echo fine >verdict";
    let script = format!("setsid sh -c \"{daemon}\" & exit 0");
    place.weir().option("grace", "0").sh(&script).run().exits(0);
    std::fs::remove_file(place.at("go")).unwrap();
    eventually("the fact is there", || place.fact_of("l").is_some());
    assert_eq!(place.read("l"), vec![0; 65_536]);
    assert_eq!(place.fact().counts.unwrap().dropped_bytes, 200_000 - 65_536);
    eventually("the daemon has written everything", || place.at("verdict").exists());
}

#[test]
fn a_background_drainer_lives_through_a_signal_to_the_whole_group() {
    let place = place_with_go();
    // The job notes the group, which is weir's and its background drainer's too.
    let script = format!("cut -d' ' -f5 /proc/$$/stat >group; trap '' TERM INT HUP USR1; {HOLDER}");
    let weir = place.weir().option("grace", "0").under(&["setsid", "--wait"]).sh(&script);
    weir.run().exits(3);
    let group = String::from_utf8(place.read("group")).unwrap();
    for signal in ["TERM", "INT", "HUP", "USR1", "CONT"] {
        let kill = ["-s", signal, "--", &format!("-{}", group.trim())];
        assert!(Command::new("/bin/kill").args(kill).status().unwrap().success());
    }
    std::fs::remove_file(place.at("go")).unwrap();
    eventually("the fact is there", || place.fact_of("l").is_some());
    assert_eq!(place.log(), "early\nlate\n");
}

#[test]
fn wait_waits_without_a_limit() {
    let place = place_with_go();
    let weir = place.weir().option("after-exit", "wait").option("grace", "0").sh(HOLDER);
    let mut running = started_until(&place, weir, "exited");
    assert!(running.runs());
    assert_eq!(place.fact_of("l"), None);
    std::fs::remove_file(place.at("go")).unwrap();
    running.wait().exits(3).says("");
    assert_eq!(place.log(), "early\nlate\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_signal_during_the_wait_shortens_it() {
    for after_exit in ["linger", "wait"] {
        for signal in ["TERM", "INT", "HUP", "QUIT"] {
            let place = place_with_go();
            let weir = place.weir().option("after-exit", after_exit).option("grace", "1h");
            let running = started_until(&place, weir.sh(HOLDER), "exited");
            running.signal(signal);
            running.wait().exits(3).says(&still_held(&place));
            std::fs::remove_file(place.at("go")).unwrap();
            eventually("the fact is there", || place.fact_of("l").is_some());
            assert_eq!(place.log(), "early\nlate\n");
        }
    }
}

#[test]
fn kill_ends_every_descendant_first_by_term_and_what_they_still_print_is_kept() {
    let place = Place::new();
    // One in another session that cleans up, one double-forked, one that ignores TERM,
    // one that is stopped.
    let script = "setsid sh -c 'trap \"echo cleaned; exit\" TERM; touch a; while :; do sleep 0.01; done' &\n\
        (setsid sh -c 'trap \"echo orphan; exit\" TERM; touch b; while :; do sleep 0.01; done' &)\n\
        sh -c 'trap \"\" TERM; echo $$ >c; while :; do sleep 0.01; done' >/dev/null 2>&1 &\n\
        sh -c 'trap \"echo stopped; exit\" TERM; touch d; kill -STOP $$; sleep 1000' &\n\
        until [ -e a ] && [ -e b ] && [ -s c ] && [ -e d ]; do sleep 0.01; done; exit 4";
    let weir = place.weir().option("after-exit", "kill").option("grace", "200ms");
    weir.sh(script).run().exits(4).says("");
    let log = place.log();
    // The shells say so when what they wait for is terminated.
    let mut lines: Vec<&str> = log.lines().filter(|line| *line != "Terminated").collect();
    lines.sort_unstable();
    assert_eq!(lines, ["cleaned", "orphan", "stopped"]);
    assert!(!place.fact().quota_reached);
    let stubborn = String::from_utf8(place.read("c")).unwrap();
    assert!(!std::path::Path::new("/proc").join(stubborn.trim()).exists());
}

#[test]
fn kill_does_not_wait_for_the_grace_where_term_is_enough() {
    let place = Place::new();
    let weir = place.weir().option("after-exit", "kill").option("grace", "1h");
    weir.sh("sleep 1000 & exit 2").run().exits(2).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn kill_spares_what_weir_was_started_with() {
    let place = Place::new();
    // The shell becomes weir, and its background process is weir's child then.
    let under = ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >before; exec \"$@\"", "sh"];
    let weir = place.weir().option("after-exit", "kill").under(&under);
    weir.sh("sleep 1000 & exit 2").run().exits(2).says("");
    let before: u32 = String::from_utf8(place.read("before")).unwrap().trim().parse().unwrap();
    send("KILL", before);
}

#[test]
fn a_signal_during_the_grace_of_kill_kills_at_once() {
    let place = Place::new();
    let script = "sh -c 'trap \"\" TERM; touch ready; while :; do sleep 0.01; done' & \
                  until [ -e ready ]; do sleep 0.01; done; exit 5";
    let weir = place.weir().option("after-exit", "kill").option("grace", "1h").sh(script);
    let running = started_until(&place, weir, "exited");
    running.signal("TERM");
    running.wait().exits(5).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn orphans_are_adopted_and_reaped_where_that_is_asked_for() {
    let place = Place::new();
    let script = "sh -c 'sh -c \"echo \\$\\$ >orphan; until [ -e go ]; do sleep 0.01; done\" & exit 0'; \
        until [ -s orphan ]; do sleep 0.01; done; cut -d' ' -f4 /proc/$(cat orphan)/stat; echo $PPID; \
        touch go; while [ -e /proc/$(cat orphan) ]; do sleep 0.01; done; echo reaped";
    place.weir().flag("subreaper").sh(script).run().exits(0).says("");
    let log = place.log();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert_eq!((lines[0], lines[2]), (lines[1], "reaped"));
}

#[test]
fn where_no_background_drainer_can_be_made_weir_waits_itself() {
    if !weir_tests::needs("where_no_background_drainer_can_be_made", "strace") {
        return;
    }
    let place = place_with_go();
    // The second process that weir makes: the job is made by clone. glibc makes the next by
    // clone too, and a thread by clone3; musl makes it by fork, and has no thread here.
    let (fork, clone) = ("inject=?fork:error=EAGAIN", "inject=clone:error=EAGAIN:when=2");
    let under = ["strace", "-qq", "-o", "trace", "-e", "trace=?fork,clone"];
    let under = [&under[..], &["-e", fork, "-e", clone]].concat();
    let weir = place.weir().option("grace", "0").option("receipt", "r.json").under(&under);
    let events = std::fs::File::create(place.at("events")).unwrap();
    let running = weir.option("status-fd", "1").stdout(events).sh(HOLDER).spawn();
    let told = || String::from_utf8(place.read("events")).unwrap();
    eventually("it is told", || told().contains("cannot drain in the background"));
    assert!(place.fact_of("l").is_none());
    std::fs::remove_file(place.at("go")).unwrap();
    let done = running.wait();
    done.exits(3).says(
        "weir: warning: cannot drain in the background, so weir waits: Resource temporarily unavailable\n",
    );
    assert_eq!(place.log(), "early\nlate\n");
    assert_eq!(place.receipt("r.json").capture, Capture::Complete);
    assert!(!place.fact().quota_reached);
}
