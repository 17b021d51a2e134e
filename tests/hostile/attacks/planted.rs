//! A shared sticky directory, such as `/tmp`, in which another user plants names.

use super::{Scene, possible, with_victim};
use weir_tests::Place;

/// Whom weir runs as (strace wants a name), and who attacks.
const USER: [&str; 2] = ["-u", "nobody"];
const ATTACKER: [&str; 4] = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups"];

/// A sticky directory that everybody may write to, with a file of weir's user to lose and
/// another that anybody may write.
fn shared(place: &Place) {
    with_victim(place);
    for name in ["victim", "theirs", "."] {
        std::os::unix::fs::chown(place.at(name), Some(65534), Some(65534)).unwrap();
    }
    place.set_mode("theirs", 0o666);
    place.set_mode(".", 0o1777);
    std::fs::write(place.at("trace"), "").unwrap();
}

/// Plants a name at every moment of a run, where it is free.
fn plant(test: &str, name: &str, command: &str) {
    if !possible(test) {
        return;
    }
    let attack = format!("{command} {name}");
    Scene { attacker: &ATTACKER, user: &USER, prepare: &shared, attack: &attack }.sweep();
}

macro_rules! plants {
    ($($name:ident: $what:literal $command:literal)*) => {
        $(#[test] fn $name() { plant(stringify!($name), $what, $command); })*
    };
}

plants! {
    log_planted_as_a_file: "l" "set -C; umask 0; : >"
    log_planted_as_a_symlink: "l" "ln -s victim"
    log_planted_as_a_symlink_to_anothers_file: "l" "ln -s theirs"
    log_planted_as_a_hard_link: "l" "ln theirs"
    log_planted_as_a_fifo: "l" "mkfifo -m 666"
    fifo_planted: ".l.fifo" "mkfifo -m 666"
    fifo_planted_as_a_file: ".l.fifo" "set -C; umask 0; : >"
    fifo_planted_as_a_symlink: ".l.fifo" "ln -s victim"
    fifo_planted_as_a_directory: ".l.fifo" "mkdir"
    fact_planted_as_a_file: ".l.truncated.json" "set -C; umask 0; echo false >"
    fact_planted_as_a_symlink: ".l.truncated.json" "ln -s victim"
    fact_planted_as_a_fifo: ".l.truncated.json" "mkfifo -m 666"
    draft_planted_as_a_file: ".l.truncated.tmp" "set -C; umask 0; : >"
    draft_planted_as_a_symlink: ".l.truncated.tmp" "ln -s victim"
    trial_planted_as_a_symlink: ".l.truncated.tmp~" "ln -s victim"
    receipt_planted_as_a_symlink: "r.json" "ln -s victim"
    receipt_planted_as_a_file: "r.json" "set -C; umask 0; : >"
}
