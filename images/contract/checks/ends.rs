//! Signals, stopping, reaping, and what the container exits with.

use super::Check;
use crate::container::Cell;
use crate::engine::Engine;
use crate::left::{Left, numbers};
use std::time::Duration;
use weir_common::JobEnd;
use weir_common::sys::process::End;
use weir_tests::{PATIENCE, eventually, send};

pub(super) const CHECKS: &[Check] = &[
    Check::new("exit codes: the job's, 126, 127, 128 + signal", exit_codes),
    Check::new("signals reach the job, each once", signals),
    Check::new("stop, a job with a handler", stop_with_a_handler),
    Check::new("stop, a job without a handler", stop_without_a_handler),
    Check::new("stop, a job that ignores TERM: 137, unknown", stop_of_one_that_ignores),
    Check::new("orphans are reaped while the job runs", reaping),
    Check::new("the job ends, its children clean up: kept", parent_exit),
    Check::new("what ignores TERM is killed after the grace", stubborn_orphans),
    Check {
        name: "weir's parent is killed (podman's conmon)",
        show: parent_is_killed,
        // containerd ends a container whose shim is gone.
        is_for: |cell| cell.engine != Engine::Docker,
    },
    Check::native("below the engine's own init", under_init),
];

fn exit_codes(cell: Cell) {
    for code in [0, 1, 77, 255] {
        let ended = cell.container().sh(&format!("exit {code}")).run();
        ended.exits(code).is_whole("");
        let receipt = ended.left.receipt().unwrap();
        assert_eq!(receipt.job, JobEnd::Ended(End::Code(code as u8)));
    }
    for signal in [9, 15] {
        let ended = cell.container().sh(&format!("kill -{signal} $$")).run();
        ended.exits(128 + signal).is_whole("");
        let end = End::Signal { number: signal, core_dumped: false };
        assert_eq!(ended.left.receipt().unwrap().job, JobEnd::Ended(end));
    }
    for (word, code) in [("/no/such", 127), ("/etc/passwd", 126)] {
        let ended = cell.container().words(&[word]).run();
        ended.exits(code);
        let told = String::from_utf8(ended.left.log()).unwrap();
        assert!(told.starts_with("weir: error[not-") && told.contains(word), "{told}");
        assert!(matches!(ended.left.receipt().unwrap().job, JobEnd::NeverStarted(_)));
    }
}

/// A shell's words that wait for signals, and handle each at once.
const WAIT: &str = "sleep 1000 & while :; do wait; done";

fn signals(cell: Cell) {
    let mut names = vec!["HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH"];
    if !cell.is_emulated() {
        // A real-time signal, which shells know by its number alone; an emulator gives it
        // another one.
        names.push("40");
    }
    let traps: String = names.iter().map(|name| format!("trap 'echo {name}' {name}; ")).collect();
    let running =
        cell.container().sh(&format!("{traps}trap 'exit 6' TERM; echo ready; {WAIT}")).start();
    let mut told = "ready\n".to_owned();
    running.until_log_is(&told);
    for name in names {
        running.live.kill(name);
        told += &format!("{name}\n");
        running.until_log_is(&told);
    }
    running.live.kill("TERM");
    running.wait().exits(6).is_whole(&told);
}

fn stop_with_a_handler(cell: Cell) {
    let job = format!("trap 'echo done; exit 7' TERM; echo ready; {WAIT}");
    let running = cell.container().sh(&job).start();
    running.until_log_is("ready\n");
    // As long as anything may take: it is not the engine's KILL that ends it.
    running.live.stop(PATIENCE);
    let ended = running.wait();
    ended.exits(7).is_whole("ready\ndone\n");
}

fn stop_without_a_handler(cell: Cell) {
    let running = cell.container().sh("echo ready; exec sleep 1000").start();
    running.until_log_is("ready\n");
    running.live.stop(PATIENCE);
    let ended = running.wait();
    ended.exits(143).is_whole("ready\n");
    let end = End::Signal { number: 15, core_dumped: false };
    assert_eq!(ended.left.receipt().unwrap().job, JobEnd::Ended(end));
}

fn stop_of_one_that_ignores(cell: Cell) {
    let running = cell.container().sh("trap '' TERM; echo ready; exec sleep 1000").start();
    running.until_log_is("ready\n");
    running.live.stop(Duration::from_secs(1));
    let killed = running.wait();
    killed.exits(137);
    // The engine has killed weir too: there is no record, so that nobody believes one.
    assert_eq!(killed.left.log(), b"ready\n");
    assert_eq!(killed.left.names(), Left::running_names());
    // A second start of that attempt goes on in its log.
    let again = cell.container_in(killed.left.place).sh("echo again").run();
    again.exits(0).is_whole("ready\nagain\n");
    assert_eq!(again.left.fact().unwrap().counts.unwrap().start_bytes, 6);
}

fn reaping(cell: Cell) {
    // Eight orphans, which process 1 gets, end all at once. A process that nobody reaps is
    // still there, as a zombie, with its parent.
    let job = "adopted() { grep -l '^PPid:.1$' /proc/[0-9]*/status 2>/dev/null | wc -l; }
        for i in 1 2 3 4 5 6 7 8; do
            (sh -c 'until [ -e /tmp/go ]; do sleep 0.05; done' &)
        done
        until [ $(adopted) -eq 9 ]; do sleep 0.05; done
        echo adopted
        touch /tmp/go
        until [ $(adopted) -eq 1 ]; do sleep 0.05; done
        echo reaped";
    let ended = cell.container().sh(job).run();
    ended.exits(0).is_whole("adopted\nreaped\n");
}

fn parent_exit(cell: Cell) {
    // Their shells would tell of the `sleep` that TERM ends as well.
    let job = "exec 2>/dev/null
        child() { trap 'echo late; exit' TERM; : >/tmp/$1; while :; do sleep 0.05; done; }
        child one &
        setsid sh -c \"trap 'echo later; exit' TERM; : >/tmp/two; while :; do sleep 0.05; done\" &
        until [ -e /tmp/one ] && [ -e /tmp/two ]; do sleep 0.05; done
        exit 5";
    let ended = cell.container().env("WEIR_GRACE", "1m").sh(job).run();
    ended.exits(5);
    let mut lines: Vec<String> =
        String::from_utf8(ended.left.log()).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["late", "later"]);
    assert!(!ended.left.fact().unwrap().quota_reached);
    assert_eq!(ended.left.names(), Left::whole_names());
}

fn stubborn_orphans(cell: Cell) {
    let job = "(trap '' TERM; : >/tmp/there; while :; do sleep 0.05; done) &
        until [ -e /tmp/there ]; do sleep 0.05; done
        echo hi; exit 2";
    let ended = cell.container().env("WEIR_GRACE", "200ms").sh(job).run();
    ended.exits(2).is_whole("hi\n");
}

fn parent_is_killed(cell: Cell) {
    // The job then prints more than the quota: weir has something to say about that, and
    // nobody to hear it.
    let job = "echo ready; until [ -e /logs/go ]; do sleep 0.05; done; seq 20000; exit 3";
    let running = cell.container().env("WEIR_QUOTA", "64K").sh(job).start();
    running.until_log_is("ready\n");
    let status = format!("/proc/{}/status", running.live.process_one());
    let status = std::fs::read_to_string(status).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap();
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap();
    assert_eq!(name, "conmon\n");
    send("KILL", parent.parse().unwrap());
    std::fs::write(running.left.place.at("logs/go"), "").unwrap();
    eventually("it has ended", || running.left.receipt().is_some());
    std::fs::remove_file(running.left.place.at("logs/go")).unwrap();
    eventually("the FIFO is gone", || running.left.names() == Left::whole_names());
    running.left.is_cut(&format!("ready\n{}", numbers(20_000)));
    let end = End::Code(3);
    assert_eq!(running.left.receipt().unwrap().job, JobEnd::Ended(end));
}

fn under_init(cell: Cell) {
    // weir is not process 1 here, and the job's child holds the output still: the image
    // says WEIR_AFTER_EXIT=kill.
    let job = format!("trap 'echo done; exit 7' TERM; echo $PPID; {WAIT}");
    let running = cell.container().flags(&["--init"]).sh(&job).start();
    let log = running.left.log_path();
    eventually("it is ready", || std::fs::read(&log).is_ok_and(|log| log.ends_with(b"\n")));
    let weir = String::from_utf8(running.left.log()).unwrap();
    assert_ne!(weir, "1\n");
    running.live.stop(PATIENCE);
    running.wait().exits(7).is_whole(&format!("{weir}done\n"));
}
