//! A private directory, whose owner does what he can to his own weir.

use super::{Scene, possible, with_victim};

/// Strikes at every moment of a run in a private directory.
fn swap(test: &str, attack: &str) {
    if possible(test) {
        let scene = Scene { attacker: &[], user: &[], prepare: &with_victim, attack };
        scene.sweep();
    }
}

macro_rules! swaps {
    ($($name:ident: $attack:literal)*) => {
        $(#[test] fn $name() { swap(stringify!($name), $attack); })*
    };
}

swaps! {
    log_removed: "rm -f l"
    log_moved_away: "mv l moved"
    log_cut: "test -f l && : >l"
    log_grown: "test -f l && echo strange >>l"
    log_linked_elsewhere: "ln l elsewhere"
    log_swapped_for_a_file: "rm -f l; echo strange >l"
    log_swapped_for_its_copy: "cp -p l copy && mv copy l"
    log_swapped_for_another_of_its_length: "test -f l && tr a-z A-Z <l >other && mv other l"
    log_swapped_for_a_symlink: "rm -f l; ln -s victim l"
    log_swapped_for_a_dangling_symlink: "rm -f l; ln -s nowhere l"
    log_swapped_for_a_hard_link: "ln -f victim l"
    log_swapped_for_a_fifo: "rm -f l; mkfifo l"
    log_swapped_for_a_directory: "rm -f l; mkdir l"
    log_swapped_for_a_device: "rm -f l; mknod l c 1 3"
    fifo_removed: "rm -f .l.fifo"
    fifo_swapped_for_a_file: "rm -f .l.fifo; echo strange >.l.fifo"
    fifo_swapped_for_a_symlink: "rm -f .l.fifo; ln -s victim .l.fifo"
    fifo_swapped_for_another: "rm -f .l.fifo; mkfifo .l.fifo"
    fifo_swapped_for_a_hard_link: "ln -f victim .l.fifo"
    fact_planted_as_a_file: "echo false >.l.truncated.json"
    fact_planted_as_a_symlink: "ln -s victim .l.truncated.json"
    fact_planted_as_a_dangling_symlink: "ln -s nowhere .l.truncated.json"
    fact_planted_as_a_hard_link: "ln victim .l.truncated.json"
    fact_planted_as_a_directory: "mkdir .l.truncated.json"
    draft_planted_as_a_file: "echo false >.l.truncated.tmp"
    draft_planted_as_a_symlink: "ln -s victim .l.truncated.tmp"
    draft_planted_as_a_fifo: "mkfifo .l.truncated.tmp"
    receipt_planted_as_a_symlink: "ln -s victim r.json"
    everything_swapped_for_symlinks:
        "for name in l .l.fifo .l.truncated.json .l.truncated.tmp r.json; do
            rm -f $name; ln -s victim $name; done"
}

#[test]
fn log_swapped_between_its_opening_and_its_lock() {
    if !possible("log_swapped_between") {
        return;
    }
    // What weir would hold then is a file that nobody finds any more.
    for attack in ["rm l", "mv l moved", "mv l moved; cp moved l", "cp l other && mv other l"] {
        let scene = Scene { attacker: &[], user: &[], prepare: &with_victim, attack };
        let (moments, _) = scene.moments();
        let opens = |line: &str| line.starts_with("openat(") && line.contains(", \"l\", ");
        let opened = moments.iter().find(|moment| opens(&moment.line)).expect("it is opened");
        scene.strike(opened, false).done.refused("log-busy");
    }
}
