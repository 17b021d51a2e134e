//! System calls that a seccomp profile answers with EPERM, as the profiles of engines do
//! that are older than the calls: weir does without, or refuses before the job.

use super::Check;
use super::records::{leaves_what_took_the_name, lets_go_of_descriptors};
use crate::container::{Cell, FORBIDDEN_TOO};
use crate::left::numbers;

pub(super) const CHECKS: &[Check] = &[
    Check::new("EPERM for close_range", |cell| {
        does_without(cell, &["close_range"]);
        lets_go_of_descriptors(cell.container().forbid(&["close_range"]));
    }),
    Check::new("EPERM for openat2", |cell| does_without(cell, &["openat2"])),
    Check::new("EPERM for renameat2", |cell| does_without(cell, &["renameat2"])),
    Check::new("EPERM for splice, tee, vmsplice", |cell| {
        does_without(cell, &["splice", "tee", "vmsplice"]);
    }),
    Check::new("EPERM for statx", |cell| does_without(cell, &["statx"])),
    Check::new("EPERM for pidfd_*", |cell| {
        does_without(cell, &["pidfd_open", "pidfd_send_signal", "pidfd_getfd"]);
    }),
    Check::native("EPERM for clone3", |cell| does_without(cell, &["clone3"])),
    Check::native("EPERM for all of these and newer ones", |cell| does_without(cell, NEWER)),
    Check::new("EPERM for link: a rename that replaces nothing", without_links),
    Check::new("EPERM for link and renameat2: refused", without_any_way),
    Check::new("EPERM for mknod: refused", without_fifos),
];

const NEWER: &[&str] = &[
    "close_range",
    "openat2",
    "renameat2",
    "splice",
    "tee",
    "vmsplice",
    "statx",
    "pidfd_open",
    "pidfd_send_signal",
    "pidfd_getfd",
    "clone3",
    "faccessat2",
    "fchmodat2",
    "futex_waitv",
    "copy_file_range",
    "memfd_create",
    "io_uring_setup",
    "preadv2",
    "pwritev2",
    "epoll_pwait2",
    "rseq",
    "execveat",
    "landlock_create_ruleset",
    "mount_setattr",
    "process_madvise",
];

fn does_without(cell: Cell, calls: &[&str]) {
    let job = "(trap 'echo late; exit' TERM; echo >/tmp/there; while :; do sleep 0.05; done) &
        until [ -e /tmp/there ]; do sleep 0.05; done
        seq 20000; exit 3";
    let job = format!("exec 2>/dev/null; {FORBIDDEN_TOO}; {job}");
    let ended = cell.container().env("WEIR_QUOTA", "64K").forbid(calls).sh(&job).run();
    ended.exits(3);
    ended.left.is_cut(&format!("{}late\n", numbers(20_000)));
}

fn without_links(cell: Cell) {
    let links = &["link", "linkat"];
    let job = format!("{FORBIDDEN_TOO}; ln /etc/passwd /tmp/p 2>/dev/null || echo hi");
    cell.container().forbid(links).sh(&job).run().exits(0).is_whole("hi\n");
    leaves_what_took_the_name(cell.container().forbid(links));
}

fn without_any_way(cell: Cell) {
    let ended = cell.container().forbid(&["link", "linkat", "renameat2"]).sh("echo hi").run();
    ended.refused("records-unsupported");
    assert_eq!(ended.left.names(), [""; 0]);
}

fn without_fifos(cell: Cell) {
    let ended = cell.container().forbid(&["mknod", "mknodat"]).sh("echo hi").run();
    ended.refused("fifo-unsupported");
    assert_eq!(ended.left.names(), [""; 0]);
}
