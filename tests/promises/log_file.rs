//! The log: a regular file of ours with one name and one owner, or no job.

use std::fs::OpenOptions;
use std::os::unix::fs::symlink;
use std::process::Command;
use weir_tests::{Place, QUOTA, eventually, needs_root};

/// Plants something under the log's name, and checks that weir refuses it at once and
/// leaves it alone.
fn refused_as_log(what: &str, plant: impl FnOnce(&Place)) {
    let place = Place::new();
    plant(&place);
    let names = place.names();
    let done = place.weir().sh("echo hi; echo ran >ran").run();
    done.refused("log-unsafe");
    let start = format!("weir: error[log-unsafe]: cannot open log {}: ", place.at("l").display());
    assert!(done.stderr().starts_with(&format!("{start}{what}\n")), "{done:?}");
    assert_eq!(place.names(), names);
}

#[test]
fn symlink_planted_as_log() {
    refused_as_log("it is a symbolic link", |place| {
        std::fs::write(place.at("victim"), "safe").unwrap();
        symlink("victim", place.at("l")).unwrap();
    });
}

#[test]
fn dangling_symlink_planted_as_log() {
    refused_as_log("it is a symbolic link", |place| symlink("nowhere", place.at("l")).unwrap());
}

#[test]
fn fifo_planted_as_log() {
    refused_as_log("it is a FIFO", |place| {
        assert!(Command::new("mkfifo").arg(place.at("l")).status().unwrap().success());
    });
}

#[test]
fn hard_link_planted_as_log() {
    refused_as_log("it has 2 names (hard links)", |place| {
        std::fs::write(place.at("victim"), "safe").unwrap();
        std::fs::hard_link(place.at("victim"), place.at("l")).unwrap();
    });
}

#[test]
fn directory_planted_as_log() {
    refused_as_log("it is a directory", |place| std::fs::create_dir(place.at("l")).unwrap());
}

#[test]
fn socket_planted_as_log() {
    refused_as_log("it is a socket", |place| {
        std::os::unix::net::UnixListener::bind(place.at("l")).unwrap();
    });
}

#[test]
fn device_planted_as_log() {
    if needs_root("device_planted_as_log") {
        refused_as_log("it is a device", |place| {
            let made = Command::new("mknod").arg(place.at("l")).args(["c", "1", "3"]).status();
            assert!(made.unwrap().success());
        });
    }
}

#[test]
fn somebody_elses_file_planted_as_log() {
    if needs_root("somebody_elses_file_planted_as_log") {
        refused_as_log("it belongs to somebody else", |place| {
            std::fs::write(place.at("l"), "").unwrap();
            std::os::unix::fs::chown(place.at("l"), Some(65534), None).unwrap();
        });
    }
}

#[test]
fn a_log_above_the_quota_is_refused() {
    let place = Place::new();
    std::fs::write(place.at("l"), vec![0; QUOTA + 1]).unwrap();
    let done = place.weir().sh("echo hi").run();
    done.refused("log-over-quota");
    assert!(done.stderr().contains("it has 65537 bytes already, the quota is 65536"), "{done:?}");
    assert_eq!(place.names(), ["l"]);
}

#[test]
fn a_second_weir_on_one_log_is_refused_and_disturbs_nothing() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let first =
        place.weir().sh("echo ready; while [ -e go ]; do sleep 0.01; done; echo done").spawn();
    eventually("the first one runs", || place.at("l").exists() && place.log() == "ready\n");
    for _ in 0..20 {
        place.weir().sh("echo intruder").run().refused("log-busy");
        place.weir().flag("fresh").sh("echo intruder").run().refused("log-busy");
    }
    std::fs::remove_file(place.at("go")).unwrap();
    first.wait().exits(0).says("");
    assert_eq!(place.log(), "ready\ndone\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn of_many_started_together_exactly_one_runs() {
    let place = Place::new();
    for round in 0..10 {
        let log = format!("l{round}");
        let start = |n: usize| {
            let weir =
                place.bare().option("log", &log).option("quota", "64K").option("min-free", "0");
            weir.sh(&format!("echo {n}; echo {n} >>ran{round}")).spawn()
        };
        let running: Vec<_> = (0..8).map(start).collect();
        let done: Vec<_> = running.into_iter().map(|one| one.wait()).collect();
        let refused = done.iter().filter(|one| !one.stderr().is_empty());
        for one in refused.clone() {
            let stderr = one.stderr();
            assert!(stderr.contains("[log-busy]") || stderr.contains("[log-sealed]"), "{one:?}");
            one.exits(125);
        }
        assert_eq!(refused.count(), 7);
        assert_eq!(place.read(&log), place.read(&format!("ran{round}")));
        assert_eq!(place.read(&log).len(), 2);
        assert!(place.fact_of(&log).is_some());
    }
}

#[test]
fn the_lock_is_free_again_when_weir_has_ended() {
    let place = Place::new();
    place.weir().sh("echo hi").run().exits(0);
    let locked = Command::new("flock").arg("-n").arg(place.at("l")).arg("true").status();
    assert!(locked.unwrap().success());
}

#[test]
fn the_job_never_holds_the_log() {
    let place = Place::new();
    place.weir().sh("ls -l /proc/self/fd >fds").run().exits(0);
    let listed = String::from_utf8(place.read("fds")).unwrap();
    assert!(!listed.contains("/l\n"), "{listed}");
}

fn appended(place: &Place) -> std::fs::File {
    OpenOptions::new().append(true).create(true).open(place.at("l")).unwrap()
}

/// Opens descriptor 9 as the shell does, and runs weir with it.
fn with_nine(redirection: &str) -> [String; 4] {
    ["sh".into(), "-c".into(), format!("exec \"$@\" 9{redirection}"), "sh".into()]
}

fn run_with_nine(place: &Place, redirection: &str) -> weir_tests::Done {
    let under = with_nine(redirection);
    let under: Vec<&str> = under.iter().map(String::as_str).collect();
    place.weir().option("log-fd", "9").sh("echo hi; ls /proc/self/fd >fds").under(&under).run()
}

#[test]
fn a_log_that_the_caller_has_opened_is_used_and_kept_from_the_job() {
    let place = Place::new();
    drop(appended(&place));
    place.set_mode("l", 0o600);
    run_with_nine(&place, ">>l").exits(0).says("");
    assert_eq!(place.log(), "hi\n");
    assert!(!place.fact().quota_reached);
    let fds = String::from_utf8(place.read("fds")).unwrap();
    assert!(!fds.lines().any(|line| line == "9"), "{fds}");
}

#[test]
fn a_descriptor_that_is_not_the_log_is_refused() {
    let place = Place::new();
    drop(appended(&place));
    for (redirection, why) in [
        (">>other", "it leads to another file"),
        (">l", "it is not in append mode"),
        ("<l", "it is not open for writing"),
        (">/dev/null", "it is not in append mode"),
        (">>/dev/null", "it leads to another file"),
    ] {
        let done = run_with_nine(&place, redirection);
        done.refused("log-unsafe");
        assert!(done.stderr().contains(why), "{redirection}: {done:?}");
        assert!(!place.at("fds").exists());
    }
    let _ = std::fs::remove_file(place.at("other"));
    assert_eq!(place.names(), ["l"]);
}

#[test]
fn a_number_that_the_caller_has_not_opened_is_refused_and_nothing_of_weirs_is_taken_for_it() {
    for number in ["3", "4", "5", "6", "7", "8", "99"] {
        for option in ["log-fd", "status-fd"] {
            let place = Place::new();
            let under = ["sh", "-c", "exec \"$@\" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&-", "sh"];
            let weir = place.bare().option("root", "root").option("receipt-root", "receipts");
            let done =
                weir.option(option, number).option("min-free", "0").under(&under).sh("true").run();
            done.exits(125)
                .says(&format!("weir: error[usage]: --{option} {number}: it is not open\n"));
            assert_eq!(place.names(), [""; 0]);
        }
    }
    // The first that is taken gets a new number; it must not be taken for the second.
    let place = Place::new();
    drop(appended(&place));
    let under = ["sh", "-c", "exec \"$@\" 3>&- 5>>l", "sh"];
    let weir = place.weir().option("log-fd", "5").option("status-fd", "3").under(&under);
    weir.sh("true").run().exits(125).says("weir: error[usage]: --status-fd 3: it is not open\n");
}

#[test]
fn two_weirs_with_one_description_of_the_log_are_two_all_the_same() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    // The second shares the first's descriptor, and with it any lock on it.
    let script = "exec 9>>l; \"$@\" & until [ -e started ]; do sleep 0.01; done; \"$@\" 2>second; \
                  echo rc=$? >>second; rm go; wait";
    let job = "touch started; while [ -e go ]; do sleep 0.01; done; echo first";
    place.weir().option("log-fd", "9").sh(job).under(&["sh", "-c", script, "sh"]).run().exits(0);
    let second = String::from_utf8(place.read("second")).unwrap();
    assert!(
        second.starts_with("weir: error[log-busy]: ") && second.ends_with("rc=125\n"),
        "{second}"
    );
    assert_eq!(place.log(), "first\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_caller_that_keeps_its_descriptor_open_finds_the_lock_free_afterwards() {
    let place = Place::new();
    let script = "exec 9>>l; \"$@\"; flock -n l echo free >after";
    let weir = place.weir().option("log-fd", "9").sh("echo hi");
    weir.under(&["sh", "-c", script, "sh"]).run().exits(0);
    assert_eq!(place.read("after"), b"free\n");
}

#[test]
fn weirs_own_lines_never_get_into_its_log() {
    let place = Place::new();
    // Standard error, and then the log's descriptor too, are the log itself.
    let under = ["sh", "-c", "exec \"$@\" >>l 2>&1", "sh"];
    place.weir().sh("head -c 70000 /dev/zero").under(&under).run().exits(0);
    assert_eq!(place.read("l"), vec![0; QUOTA]);
    assert!(place.fact().quota_reached);
    let place = Place::new();
    place.weir().option("log-fd", "2").sh("head -c 70000 /dev/zero").under(&under).run().exits(0);
    assert_eq!(place.read("l"), vec![0; QUOTA]);
    assert!(place.fact().quota_reached);
}

#[test]
fn a_refusal_never_gets_into_a_log_either() {
    let place = Place::new();
    let onto_log = ["sh", "-c", "exec \"$@\" 2>>l", "sh"];
    std::fs::write(place.at("go"), "").unwrap();
    let first = place.weir().sh("echo ready; while [ -e go ]; do sleep 0.01; done").spawn();
    eventually("the first one runs", || place.at("l").exists() && place.log() == "ready\n");
    place.weir().sh("echo busy").under(&onto_log).run().exits(125);
    std::fs::remove_file(place.at("go")).unwrap();
    first.wait().exits(0).says("");
    assert_eq!(place.log(), "ready\n");
    assert!(!place.fact().quota_reached);
    place.weir().sh("echo sealed").under(&onto_log).run().exits(125);
    place.weir().option("min-free", "1T").sh("echo full").under(&onto_log).run().exits(125);
    place.weir().option("quota", "1").sh("echo small").under(&onto_log).run().exits(125);
    assert_eq!(place.log(), "ready\n");
}

#[test]
fn a_status_descriptor_that_is_the_log_is_refused() {
    let place = Place::new();
    drop(appended(&place));
    let under = ["sh", "-c", "exec \"$@\" 6>>l", "sh"];
    let done = place.weir().option("status-fd", "6").sh("echo hi").under(&under).run();
    done.exits(125).says("weir: error[usage]: --status-fd: it is the log itself\n");
    assert_eq!(place.log(), "");
}

#[test]
fn a_sealed_log_above_the_quota_is_sealed_first_of_all() {
    let place = Place::new();
    place.weir().sh("echo hi").run().exits(0);
    std::fs::write(place.at("l"), vec![0; QUOTA + 1]).unwrap();
    place.weir().sh("echo hi").run().refused("log-sealed");
}

#[test]
fn names_with_control_characters_keep_an_error_on_its_line() {
    let place = Place::new();
    let weir = || place.bare().option("log", "a\nb").option("min-free", "0").sh("true");
    weir().run().exits(0);
    let done = weir().run();
    done.refused("log-sealed");
    assert!(done.stderr().contains("its fact .a\\nb.truncated.json exists"), "{done:?}");
}

/// A start that comes to its lock only long after it has made the log.
fn late_to_lock(test: &str, place: &Place) -> Option<weir_tests::Running> {
    if !weir_tests::needs(test, "strace") {
        return None;
    }
    let late = "inject=flock:delay_enter=2000000:when=1";
    let under = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=flock", "-e", late];
    let late = place.weir().sh("echo late").under(&under).spawn();
    weir_tests::eventually("it has made the log", || place.at("l").exists());
    Some(late)
}

#[test]
fn a_log_that_another_start_has_used_in_between_is_not_removed() {
    // The second writes nothing, so that its log looks as new as it was.
    for job in ["echo other", "true"] {
        let place = Place::new();
        let Some(late) = late_to_lock("a_log_that_another_start_has_used", &place) else { return };
        place.weir().sh(job).run().exits(0).says("");
        let left = place.read("l");
        late.wait().refused("log-sealed");
        assert_eq!(place.read("l"), left);
        assert!(!place.fact().quota_reached);
    }
}

#[test]
fn a_log_that_holds_bytes_is_never_removed_by_a_refusal() {
    let place = Place::new();
    let Some(late) = late_to_lock("a_log_that_holds_bytes", &place) else { return };
    // As a start that was killed would leave it.
    std::fs::write(place.at("l"), "other").unwrap();
    std::fs::create_dir(place.at(".l.fifo")).unwrap();
    late.wait().refused("fifo-blocked");
    assert_eq!(place.read("l"), b"other");
}
