//! What a killed weir leaves does not hinder the next start, and nothing else is touched.

use std::process::Command;
use weir_tests::{Place, eventually, needs_root};

fn mkfifo(place: &Place, name: &str) {
    assert!(Command::new("mkfifo").arg(place.at(name)).status().unwrap().success());
}

#[test]
fn a_killed_weir_leaves_a_fifo_that_the_next_start_removes() {
    let place = Place::new();
    let running = place.weir().sh("echo $$ >pid; echo before; exec sleep 1000").spawn();
    eventually("the job runs", || place.at("l").exists() && place.log() == "before\n");
    running.signal("KILL");
    running.wait().dies_by(9);
    let job: u32 = String::from_utf8(place.read("pid")).unwrap().trim().parse().unwrap();
    weir_tests::send("KILL", job);
    assert_eq!(place.names(), [".l.fifo", "l", "pid"]);
    place.weir().sh("echo after").run().exits(0).says("");
    assert_eq!(place.log(), "before\nafter\n");
    assert_eq!(place.names(), [".l.truncated.json", "l", "pid"]);
    assert_eq!(place.fact().counts.unwrap().start_bytes, 7);
}

#[test]
fn a_job_whose_weir_is_killed_meets_a_closed_pipe() {
    let place = Place::new();
    let script =
        "trap '' PIPE; while echo x; do sleep 0.01; done 2>/dev/null; echo closed >verdict";
    let running = place.weir().sh(script).spawn();
    eventually("the job writes", || place.at("l").exists() && !place.read("l").is_empty());
    running.signal("KILL");
    running.wait().dies_by(9);
    eventually("the job has noticed", || place.at("verdict").exists());
    assert_eq!(place.fact_of("l"), None);
}

#[test]
fn a_killed_starts_draft_is_removed_even_where_none_is_needed() {
    let place = Place::new();
    std::fs::write(place.at(".l.truncated.tmp"), "half a rec").unwrap();
    place.weir().sh("echo hi").run().exits(0).says("");
    assert!(!place.fact().quota_reached);
    assert_eq!(place.names(), [".l.truncated.json", "l"]);
}

#[test]
fn a_killed_starts_draft_is_removed_whatever_its_mode_is() {
    let place = Place::new();
    std::fs::write(place.at(".l.truncated.tmp"), "half a rec").unwrap();
    place.set_mode(".l.truncated.tmp", 0);
    place.weir().sh("echo hi").run().exits(0).says("");
    assert_eq!(place.names(), [".l.truncated.json", "l"]);
}

#[test]
fn what_cannot_be_a_draft_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.at(".l.truncated.tmp")).unwrap();
    place.weir().sh("echo hi").run().exits(0).says("");
    assert!(!place.fact().quota_reached);
    assert_eq!(place.names(), [".l.truncated.json", ".l.truncated.tmp/", "l"]);
}

#[test]
fn file_planted_as_fifo() {
    let place = Place::new();
    std::fs::write(place.at(".l.fifo"), "somebody's").unwrap();
    let done = place.weir().sh("echo hi").run();
    done.refused("fifo-blocked");
    assert!(done.stderr().contains("something has its name, and it is a regular file"), "{done:?}");
    assert_eq!(place.names(), [".l.fifo"]);
    assert_eq!(place.read(".l.fifo"), b"somebody's");
}

#[test]
fn symlink_planted_as_fifo() {
    let place = Place::new();
    mkfifo(&place, "victim");
    std::os::unix::fs::symlink("victim", place.at(".l.fifo")).unwrap();
    place.weir().sh("echo hi").run().refused("fifo-blocked");
    assert_eq!(place.names(), [".l.fifo", "victim"]);
}

#[test]
fn somebody_elses_fifo_planted_as_fifo() {
    if needs_root("somebody_elses_fifo_planted_as_fifo") {
        let place = Place::new();
        mkfifo(&place, ".l.fifo");
        std::os::unix::fs::chown(place.at(".l.fifo"), Some(65534), None).unwrap();
        place.weir().sh("echo hi").run().refused("fifo-blocked");
        assert_eq!(place.names(), [".l.fifo"]);
    }
}

#[test]
fn a_fifo_that_is_replaced_during_the_run_is_not_removed() {
    let place = Place::new();
    place.weir().sh("rm .l.fifo; echo mine >.l.fifo; echo hi").run().exits(0);
    assert_eq!(place.read(".l.fifo"), b"mine\n");
    assert_eq!(place.log(), "hi\n");
}

#[test]
fn file_planted_in_the_place_of_a_fifo_that_was_made_just_now() {
    let test = "file_planted_in_the_place_of_a_fifo";
    if !weir_tests::needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let slowly = "inject=mknodat:delay_exit=2000000";
    let under = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=mknodat", "-e", slowly];
    let running = place.weir().sh("echo hi").under(&under).spawn();
    eventually("the FIFO is made", || place.at(".l.fifo").exists());
    std::fs::write(place.at("planted"), "somebody's").unwrap();
    std::fs::rename(place.at("planted"), place.at(".l.fifo")).unwrap();
    running.wait().refused("fifo-blocked");
    assert_eq!(place.read(".l.fifo"), b"somebody's");
    assert_eq!(place.names(), [".l.fifo", "trace"]);
}

#[test]
fn the_fifo_is_gone_before_the_log_is_free() {
    // As root: nobody else's strace sees names in weir.
    let test = "the_fifo_is_gone_before_the_log_is_free";
    if !weir_tests::needs_root(test) || !weir_tests::needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let under = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=unlinkat,close"];
    place.weir().sh("echo hi").under(&under).run().exits(0);
    let trace = String::from_utf8_lossy(&place.read("trace")).into_owned();
    let at = |call: &str, file: &str| {
        let is_it = |line: &str| line.contains(call) && line.contains(file);
        trace.lines().position(is_it).unwrap_or_else(|| panic!("no {call}{file}: {trace}"))
    };
    let log = format!("<{}>", place.at("l").display());
    assert!(at("unlinkat(", ".l.fifo") < at("close(", &log), "{trace}");
}
