//! What an operator takes away: a writable root, the user, capabilities, processes, memory,
//! `/proc`.

use super::Check;
use crate::bundle;
use crate::container::Cell;
use crate::engine::Engine;
use crate::left::{Left, numbers};
use weir_common::JobEnd;
use weir_common::sys::process::End;

pub(super) const CHECKS: &[Check] = &[
    Check::new("--read-only: runs; a root there is refused", read_only),
    Check::new("--user: any, by number", any_user),
    Check::new("--cap-drop=all, no-new-privileges, --read-only", hardened),
    Check::new("the engine's default seccomp profile is on", default_profile),
    Check::new("--pids-limit: the job meets it, weir does not", processes),
    Check::native("no process left for the job: refused", no_process),
    Check::native("no thread left for weir: every byte all the same", no_thread),
    Check::new("--memory: 137, and the records are there", memory),
    Check {
        name: "no /proc (crun, a bare bundle)",
        show: without_proc,
        is_for: |cell| cell.engine == Engine::PodmanCrun,
    },
];

const READ_ONLY: &[&str] = &["--read-only"];
/// podman leaves `/tmp` and others writable otherwise.
const READ_ONLY_OF_PODMAN: &[&str] = &["--read-only-tmpfs=false"];

fn read_only(cell: Cell) {
    let job = "for d in / /tmp /run /var/tmp; do touch $d/x 2>/dev/null && echo $d; done; echo ran";
    let container = || cell.container().flags(READ_ONLY).podman_flags(READ_ONLY_OF_PODMAN);
    container().sh(job).run().exits(0).is_whole("ran\n");
    let ended = container().env("WEIR_ROOT", "/var/logs").sh(job).run();
    ended.refused("system");
    let said = String::from_utf8_lossy(&ended.output.stderr);
    assert!(said.contains("/var/logs") && said.contains("Read-only file system"), "{said}");
    assert_eq!(ended.left.names(), [""; 0]);
}

fn any_user(cell: Cell) {
    for (user, uid) in [("12345", 12_345), ("12345:54321", 12_345), ("0", 0), ("weir", 10_001)] {
        let ended = cell.container().flags(&["--user", user]).sh("id -u").run();
        ended.exits(0).is_whole(&format!("{uid}\n"));
        assert_eq!(ended.left.log_owner_and_mode(), (uid, 0o600));
    }
}

fn hardened(cell: Cell) {
    let ended = cell
        .container()
        .flags(READ_ONLY)
        .podman_flags(READ_ONLY_OF_PODMAN)
        .flags(&["--cap-drop=all", "--security-opt", "no-new-privileges", "--user", "12345:12345"])
        .sh("grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status")
        .run();
    let none = "0000000000000000";
    ended.exits(0).is_whole(&format!("CapEff:\t{none}\nCapBnd:\t{none}\nNoNewPrivs:\t1\n"));
}

fn default_profile(cell: Cell) {
    let ended = cell.container().sh("grep '^Seccomp:' /proc/self/status").run();
    ended.exits(0).is_whole("Seccomp:\t2\n");
}

fn processes(cell: Cell) {
    // The shell gives up where it cannot make another, and has said so.
    let job = "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); echo $i; done; echo all";
    let ended = cell.container().flags(&["--pids-limit", "20"]).sh(job).run();
    let log = String::from_utf8(ended.left.log()).unwrap();
    assert!(log.contains("an't fork") || log.contains("annot fork"), "{log}");
    assert!(log.starts_with("1\n2\n3\n") && !log.contains("all"), "{log}");
    ended.exits(2).is_whole(&log);
}

fn no_process(cell: Cell) {
    // A limit on the user's processes, which process 1 itself uses up.
    let uid = unique_uid();
    let ended = cell
        .container()
        .flags(&["--user", &uid.to_string(), "--ulimit", "nproc=1:1", "--ulimit", "nofile=99:99"])
        .sh("echo hi")
        .run();
    ended.refused("system");
    let said = String::from_utf8_lossy(&ended.output.stderr);
    assert!(said.contains("cannot make a process"), "{said}");
    assert_eq!(ended.left.names(), [""; 0]);
}

fn no_thread(cell: Cell) {
    // One process for weir and one for the job, which makes none, and is still there when
    // weir drains: it prints more than a pipe holds before it counts weir's threads.
    let job = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done
        while read -r name value; do [ $name != Threads: ] || echo $value; done </proc/1/status";
    let ended = cell
        .container()
        .flags(&["--user", &unique_uid().to_string()])
        .flags(&["--ulimit", "nproc=2:2", "--ulimit", "nofile=99:99"])
        .sh(job)
        .run();
    ended.exits(0).is_whole(&format!("{}1\n", numbers(20_000)));
}

/// A user that nothing else on this machine runs as: the limit counts all that do.
fn unique_uid() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Not even another run of these checks: a hundred for each.
    1_000_000 + std::process::id() * 100 + COUNT.fetch_add(1, Ordering::Relaxed)
}

fn memory(cell: Cell) {
    // It keeps what it reads, for want of an end of line. The kernel kills the largest.
    let job = "echo before; exec tail /dev/zero";
    let limit = ["--memory", "24m", "--memory-swap", "24m"];
    let ended = cell.container().flags(&limit).sh(job).run();
    ended.exits(137).is_whole("before\n");
    let end = End::Signal { number: 9, core_dumped: false };
    assert_eq!(ended.left.receipt().unwrap().job, JobEnd::Ended(end));
}

fn without_proc(cell: Cell) {
    let job = "exec 2>/dev/null
        ls /proc; (trap 'echo late; exit' TERM; : >/logs/there; while :; do sleep 0.05; done) &
        until [ -e /logs/there ]; do sleep 0.05; done
        rm /logs/there; echo $PPID; exit 3";
    let ended = bundle::run(cell.image, &["sh", "-c", job]);
    ended.exits(3).is_whole("1\nlate\n");
    assert_eq!(ended.left.names(), Left::whole_names());
}
