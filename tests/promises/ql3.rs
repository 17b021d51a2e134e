//! The QingLong 3 protocol: a client of its own, in Node, checks every line of it; here is
//! what an ordinary user's client cannot bring about.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use weir_tests::ql3::{ALL_NAMES, client, expected_fact, fact, names, receipt};
use weir_tests::{Place, Running, eventually, is_root, needs, needs_namespaces, weir_binary};

/// Nobody in particular.
const ORDINARY: &str = "65534";

#[test]
fn a_client_of_its_own_finds_every_line_of_the_protocol_kept() {
    let test = "a_client_of_its_own";
    if !needs(test, "node") {
        return;
    }
    let place = Place::new();
    place.set_mode(".", 0o755);
    let files = [
        ("client.mjs", include_str!("../conformance/client.mjs")),
        ("ql3.mjs", include_str!("../conformance/ql3.mjs")),
    ];
    for (name, content) in files {
        std::fs::write(place.at(name), content).unwrap();
        place.set_mode(name, 0o644);
    }
    std::fs::copy(weir_binary(), place.at("weir")).unwrap();
    place.set_mode("weir", 0o755);
    std::fs::create_dir(place.at("scratch")).unwrap();
    place.set_mode("scratch", 0o1777);

    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", "node"]);
            command
        }
        false => Command::new("node"),
    };
    command.args(["--test-reporter=tap", "ql3.mjs"]).current_dir(place.path());
    command.env("WEIR_BIN", place.at("weir")).env("TMPDIR", place.at("scratch"));
    command.env("HOME", place.at("scratch")).stdin(Stdio::null());
    let output = command.output().unwrap();
    let tap = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |what: &str| {
        let line = tap.lines().find_map(|line| line.strip_prefix(&format!("# {what} ")));
        line.and_then(|count| count.parse::<u32>().ok())
    };
    // From each `not ok` on to the next test.
    let failed = tap.split("\n# Subtest: ").filter(|told| told.contains("\nnot ok "));
    let failed: Vec<&str> = failed.collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stderr}", failed.join("\n"));
    assert_eq!((count("fail"), count("skipped"), count("todo")), (Some(0), Some(0), Some(0)));
    assert!(count("pass").unwrap() >= 390, "{:?} passed", count("pass"));
    eprintln!("{} checks of the protocol passed", count("pass").unwrap());
}

/// Calls that name records, traced, of which some fail.
fn traced(place: &Place, faults: &[&str]) -> String {
    let calls = "trace=openat,linkat,renameat2";
    let mut under = vec!["strace", "-f", "-qq", "-o", "trace", "-b", "execve", "-e", calls];
    for fault in faults {
        under.extend(["-e", fault]);
    }
    client(place).under(&under).sh("echo hi; exit 3").run().exits(3);
    String::from_utf8_lossy(&place.read("trace")).into_owned()
}

/// The fault for strace that takes away the unnamed files, which are the first two and in
/// a row: those of the fact and the receipt.
fn no_unnamed_files() -> String {
    let place = Place::new();
    let trace = traced(&place, &[]);
    let opened = trace.lines().filter(|line| line.contains("openat(")).zip(1..);
    let unnamed: Vec<i32> =
        opened.filter(|(line, _)| line.contains("O_TMPFILE")).map(|(_, at)| at).collect();
    let &[first, second] = unnamed.as_slice() else { panic!("{unnamed:?}") };
    // The named draft of the fact is an openat more before the receipt's.
    let (last, step) = (second + 1, second + 1 - first);
    format!("inject=openat:error=EOPNOTSUPP:when={first}..{last}+{step}")
}

#[test]
fn without_unnamed_files_a_record_is_moved_and_never_linked() {
    if !needs("without_unnamed_files_a_record_is_moved", "strace") {
        return;
    }
    let place = Place::new();
    let trace = traced(&place, &[&no_unnamed_files()]);
    assert_eq!(trace.matches("(INJECTED)").count(), 2, "{trace}");
    assert!(!trace.contains("linkat("), "{trace}");
    // There and back to see that it works, and then to its name, for each of the two.
    assert_eq!(trace.matches("RENAME_NOREPLACE").count(), 6, "{trace}");
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
    assert_eq!(place.read("outputs/l"), b"hi\n");
    assert_eq!(names(&place), ALL_NAMES);
}

#[test]
fn a_full_disk_costs_the_fact_and_nothing_else() {
    let test = "ql3_a_full_disk";
    let Some(unshare) = needs_namespaces(test) else { return };
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    let job =
        "head -c 50000 /dev/zero >outputs/other; head -c 60000 /dev/zero; echo rc=$? >rc; exit 4";
    let mount = "mount -t tmpfs -o size=80k t outputs && exec >>outputs/l 2>&1 && \"$@\"; code=$?; \
                 cp -a outputs/. out && exit $code";
    std::fs::create_dir(place.at("out")).unwrap();
    let under = [&unshare[..], &["sh", "-c", mount, "sh"]].concat();
    client(&place).under(&under).sh(job).run().exits(4);
    assert_eq!(place.read("rc"), b"rc=0\n");
    let log = place.read("out/l");
    assert!(log.len() > 1000 && log.len() < 60_000 && log.iter().all(|byte| *byte == 0));
    assert_eq!(receipt(&place), Some(4));
    let mut left = place.names();
    left.retain(|name| name.starts_with("out/"));
    assert_eq!(left, ["out/", "out/l", "out/other"]);
}

#[test]
fn a_record_for_which_there_is_no_room_at_first_is_tried_again() {
    let test = "a_record_for_which_there_is_no_room_at_first";
    let Some(unshare) = needs_namespaces(test) else { return };
    let place = Place::new();
    std::fs::create_dir(place.at("receipts")).unwrap();
    std::fs::create_dir(place.at("out")).unwrap();
    let mount = "mount -t tmpfs -o size=64k t receipts; head -c 100000 /dev/zero >receipts/full; \
                 \"$@\"; code=$?; cp -a receipts/. out && exit $code";
    let under = [&unshare[..], &["sh", "-c", mount, "sh"]].concat();
    for (job, published) in [("rm receipts/full; exit 4", true), ("exit 4", false)] {
        let done = client(&place).heard().under(&under).sh(job).run();
        done.exits(4);
        // What stands on a disk of its own is told, and the log is not.
        assert!(done.stderr().contains("cannot reserve receipt"), "{done:?}");
        assert_eq!(place.at("out/receipt").exists(), published, "{done:?}");
        assert_eq!(fact(&place), expected_fact(false));
        assert_eq!(place.read("outputs/l"), b"");
        for file in ["out/receipt", "out/full", "outputs/fact"] {
            let _ = std::fs::remove_file(place.at(file));
        }
    }
}

#[test]
fn without_a_quota_the_job_has_the_clients_descriptors_closed_ones_too() {
    for (closed, left) in [(">&-", "0 2"), ("2>&-", "0 1"), ("<&- >&- 2>&-", "")] {
        let place = Place::new();
        let close = format!("exec \"$@\" {closed}");
        let under = ["sh", "-c", &close, "sh"];
        let job = "for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && set -- \"$@\" $n; done; \
                   echo \"$@\" >open; exit 3";
        let weir = client(&place).under(&under).sh(job).env("QL3_OUTPUT_QUOTA_FIFO", "");
        weir.run().exits(3);
        assert_eq!(place.read("open"), format!("{left}\n").as_bytes(), "{closed}");
        assert_eq!(receipt(&place), Some(3), "{closed}");
    }
}

#[test]
fn a_small_limit_of_files_leaves_the_records_what_they_need() {
    let place = Place::new();
    // In blocks of 512 bytes; with room for the records' longest, it would not do.
    let under = ["sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"];
    let job = "head -c 100 /dev/zero; exit 3";
    client(&place).under(&under).sh(job).run().exits(3);
    assert_eq!(place.read("outputs/l").len(), 100);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
}

/// A job that has ended and left somebody behind who holds the output.
fn held(place: &Place, holder: &str) -> Running {
    let script = format!("({holder}) & echo $! >holder.new; mv holder.new holder; exit 3");
    let running = client(place).sh(&script).spawn();
    eventually("the job has ended", || {
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        place.at("holder").exists() && std::fs::read_to_string(children).unwrap().is_empty()
    });
    running
}

#[test]
fn a_term_after_the_jobs_end_leaves_holders_their_time() {
    // They have got it too, and clean up: to close their output then would be to kill them.
    let place = Place::new();
    let cleans_up = "trap 'touch heard' TERM; until [ -e go ]; do sleep 0.01; done; echo late";
    let mut running = held(&place, cleans_up);
    let holder = String::from_utf8(place.read("holder")).unwrap().trim().parse().unwrap();
    running.signal("TERM");
    weir_tests::send("TERM", holder);
    eventually("the holder has got it", || place.at("heard").exists());
    // weir has read its own by now: only what waits for it could be read later.
    eventually("weir has read its own", || pending_signals(running.pid()) == 0);
    assert!(running.runs());
    File::create(place.at("go")).unwrap();
    running.wait().exits(3);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
    assert_eq!(place.read("outputs/l"), b"late\n");
}

/// The signals that wait to be taken by a process.
fn pending_signals(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t")).unwrap();
    u64::from_str_radix(pending, 16).unwrap()
}

#[test]
fn what_ends_of_itself_after_the_jobs_end_is_waited_for() {
    let place = Place::new();
    let running = held(&place, "until [ -e go ]; do sleep 0.01; done; echo late");
    assert_eq!(names(&place), ["outputs/", "outputs/fifo", "outputs/l", "receipts/"]);
    File::create(place.at("go")).unwrap();
    running.wait().exits(3);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
    assert_eq!(place.read("outputs/l"), b"late\n");
}

#[test]
fn weir_keeps_nothing_of_the_clients() {
    // weir lets nobody else look.
    if !weir_tests::needs_root("weir_keeps_nothing_of_the_clients") {
        return;
    }
    let place = Place::new();
    let script = "until [ -e go ]; do sleep 0.01; done";
    for quota in ["outputs/fifo", ""] {
        let fifo =
            if quota.is_empty() { String::new() } else { place.at(quota).display().to_string() };
        let weir = client(&place).sh(script).env("QL3_OUTPUT_QUOTA_FIFO", &fifo);
        let running = weir.spawn();
        let process = format!("/proc/{}", running.pid());
        let children = format!("{process}/task/{}/children", running.pid());
        eventually("the job runs", || {
            let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
            let job = read(&children);
            read(&format!("/proc/{}/cmdline", job.trim())).starts_with("sh\0")
                && std::fs::read_link(format!("{process}/cwd")).unwrap() == Path::new("/")
        });
        // Its own: the directories and drafts, the log twice (kept bytes and lock), the
        // FIFO's reader, signals and the two flags of the drainer's thread.
        let expected: &[&str] = match quota {
            "" => &[
                "/dev/null",
                "/dev/null",
                "/dev/null",
                "HERE/receipts",
                "HERE/receipts/",
                "anon_inode",
            ],
            _ => &[
                "/dev/null",
                "/dev/null",
                "/dev/null",
                "HERE/outputs",
                "HERE/outputs/",
                "HERE/outputs/fifo",
                "HERE/outputs/l",
                "HERE/outputs/l",
                "HERE/receipts",
                "HERE/receipts/",
                "anon_inode",
                "anon_inode",
                "anon_inode",
            ],
        };
        // The flags are made when the job runs already.
        let held = || weir_tests::held_by(&place, Path::new(&process));
        eventually("it holds what it needs", || held().len() >= expected.len());
        assert_eq!(held(), expected);
        File::create(place.at("go")).unwrap();
        running.wait().exits(0);
        std::fs::remove_file(place.at("go")).unwrap();
        std::fs::remove_file(place.at("receipts/receipt")).unwrap();
    }
}
