//! The directories of a log: opened once, safe or refused, made only when admitted.

use std::os::unix::fs::{MetadataExt, symlink};
use weir_common::{ArtifactId, LogName};
use weir_tests::{Place, Weir, needs_root};

fn artifact() -> ArtifactId {
    ArtifactId::of(&"r".parse().unwrap(), &"a".parse().unwrap())
}

fn rooted(place: &Place, root: &str) -> Weir {
    let ids = place.bare().option("run-id", "r").option("attempt-id", "a");
    ids.option("root", root).option("min-free", "0").sh("echo hi")
}

fn log_below(root: &str) -> String {
    let name = LogName::of(&artifact());
    format!("{root}/{}/{}", artifact().shard(), name.as_os_str().to_string_lossy())
}

#[test]
fn a_root_and_its_shard_are_made_private_whatever_the_umask() {
    for umask in ["000", "777"] {
        let place = Place::new();
        let under = format!("umask {umask}; exec \"$@\"");
        rooted(&place, "root").under(&["sh", "-c", &under, "sh"]).run().exits(0).says("");
        assert_eq!(place.read(&log_below("root")), b"hi\n");
        let shard = format!("root/{}", artifact().shard());
        assert_eq!((place.mode("root"), place.mode(&shard)), (0o700, 0o700), "umask {umask}");
        let fact = LogName::of(&artifact()).fact();
        assert!(place.at(&shard).join(fact).exists());
    }
}

#[test]
fn a_root_may_be_written_in_any_way() {
    let place = Place::new();
    let absolute = place.at("root");
    for (round, root) in
        ["root", "./root/", "root/../root", absolute.to_str().unwrap()].iter().enumerate()
    {
        let weir = place.bare().option("run-id", "r").option("attempt-id", format!("a{round}"));
        weir.option("root", root).option("min-free", "0").sh("echo hi").run().exits(0);
    }
    let logs = place.names().iter().filter(|name| name.ends_with(".log")).count();
    assert_eq!(logs, 4, "{:?}", place.names());
}

#[test]
fn the_working_directory_can_be_a_root() {
    let place = Place::new();
    rooted(&place, ".").run().exits(0).says("");
    assert_eq!(place.read(&log_below(".")), b"hi\n");
}

#[test]
fn a_root_whose_parent_is_missing_is_refused() {
    let place = Place::new();
    let done = rooted(&place, "no/such/root").run();
    done.refused("system");
    assert!(
        done.stderr().contains("cannot open directory no/such: No such file or directory"),
        "{done:?}"
    );
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_log_whose_directory_is_missing_is_refused() {
    let place = Place::new();
    let done = place.bare().option("log", "missing/l").option("min-free", "0").sh("echo hi").run();
    done.refused("system");
    assert!(
        done.stderr().contains("cannot open directory missing: No such file or directory"),
        "{done:?}"
    );
}

#[test]
fn symlink_planted_as_root() {
    let place = Place::new();
    std::fs::create_dir(place.at("victim")).unwrap();
    symlink("victim", place.at("root")).unwrap();
    for root in ["root", "root/"] {
        let done = rooted(&place, root).run();
        done.refused("directory-unsafe");
        assert!(
            done.stderr().contains("cannot open directory root: it is a symbolic link"),
            "{done:?}"
        );
    }
    assert_eq!(place.names(), ["root", "victim/"]);
}

#[test]
fn symlink_planted_as_shard() {
    let place = Place::new();
    std::fs::create_dir_all(place.at("victim")).unwrap();
    std::fs::create_dir(place.at("root")).unwrap();
    symlink("../victim", place.at("root").join(artifact().shard())).unwrap();
    rooted(&place, "root").run().refused("directory-unsafe");
    assert!(!place.names().iter().any(|name| name.starts_with("victim/l")));
}

#[test]
fn file_planted_as_shard() {
    let place = Place::new();
    std::fs::create_dir(place.at("root")).unwrap();
    std::fs::write(place.at("root").join(artifact().shard()), "").unwrap();
    let done = rooted(&place, "root").run();
    done.refused("directory-unsafe");
    assert!(done.stderr().contains("it is a regular file"), "{done:?}");
}

#[test]
fn a_root_or_shard_that_others_may_write_is_refused_sticky_or_not() {
    for mode in [0o777, 0o1777, 0o702] {
        for unsafe_one in ["root", "shard"] {
            let place = Place::new();
            let shard = format!("root/{}", artifact().shard());
            std::fs::create_dir_all(place.at(&shard)).unwrap();
            place.set_mode("root", 0o700);
            place.set_mode(if unsafe_one == "root" { "root" } else { &shard }, mode);
            let done = rooted(&place, "root").run();
            done.refused("directory-unsafe");
            assert!(done.stderr().contains("others may write to it"), "{done:?}");
            assert_eq!(place.names(), ["root/".to_owned(), format!("{shard}/")]);
        }
    }
}

#[test]
fn somebody_elses_root_is_refused() {
    if !needs_root("somebody_elses_root_is_refused") {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.at("root")).unwrap();
    std::os::unix::fs::chown(place.at("root"), Some(65534), None).unwrap();
    let done = rooted(&place, "root").run();
    done.refused("directory-unsafe");
    assert!(done.stderr().contains("it belongs to somebody else"), "{done:?}");
}

#[test]
fn a_logs_directory_that_others_may_write_must_be_sticky() {
    let place = Place::new();
    std::fs::create_dir(place.at("shared")).unwrap();
    let weir = || place.bare().option("log", "shared/l").option("min-free", "0").sh("echo hi");
    place.set_mode("shared", 0o777);
    weir().run().refused("directory-unsafe");
    assert_eq!(place.names(), ["shared/"]);
    place.set_mode("shared", 0o1777);
    weir().run().exits(0).says("");
    assert_eq!(place.read("shared/l"), b"hi\n");
}

#[test]
fn a_log_named_through_a_link_to_its_directory_is_fine() {
    let place = Place::new();
    std::fs::create_dir(place.at("real")).unwrap();
    symlink("real", place.at("link")).unwrap();
    place
        .bare()
        .option("log", "link/l")
        .option("min-free", "0")
        .sh("echo hi")
        .run()
        .exits(0)
        .says("");
    assert_eq!(place.read("real/l"), b"hi\n");
}

#[test]
fn a_refusal_removes_the_directories_that_it_has_made_and_no_others() {
    // The receipt is there, which is found when root, shard and log have been made.
    let place = Place::new();
    std::fs::write(place.at("r.json"), "").unwrap();
    rooted(&place, "root").option("receipt", "r.json").run().refused("log-sealed");
    assert_eq!(place.names(), ["r.json"]);
    // The same where directories hand their group on, with a bit that says so.
    let place = Place::new();
    place.set_mode(".", 0o2700);
    std::fs::write(place.at("r.json"), "").unwrap();
    rooted(&place, "root").option("receipt", "r.json").run().refused("log-sealed");
    assert_eq!(place.names(), ["r.json"]);
    // The FIFO's name is taken, in a shard that was there before.
    let place = Place::new();
    let shard = format!("root/{}", artifact().shard());
    let fifo = format!("{shard}/{}", LogName::of(&artifact()).fifo().to_string_lossy());
    std::fs::create_dir_all(place.at(&shard)).unwrap();
    std::fs::write(place.at(&fifo), "").unwrap();
    rooted(&place, "root").option("receipt-root", "receipts").run().refused("fifo-blocked");
    assert_eq!(place.names(), ["root/".to_owned(), format!("{shard}/"), fifo]);
}

#[test]
fn a_made_up_attempt_says_where_its_log_is() {
    let place = Place::new();
    let weir = || place.bare().option("root", "root").option("min-free", "0");
    let done = weir().sh("echo hi").run();
    done.exits(0);
    let said = done.stderr();
    let log = said.strip_prefix("weir: log ").and_then(|said| said.strip_suffix('\n')).unwrap();
    assert_eq!(place.read(log), b"hi\n");
    weir().flag("quiet").sh("echo hi").run().exits(0).says("");
    rooted(&place, "root").run().exits(0).says("");
}

#[test]
fn a_directory_that_moves_during_the_run_takes_its_log_and_records_along() {
    let place = Place::new();
    std::fs::create_dir(place.at("before")).unwrap();
    let weir = place.bare().option("log", "before/l").option("min-free", "0");
    weir.sh("echo 1; mv before after; mkdir before; echo 2").run().exits(0).says("");
    assert_eq!(place.read("after/l"), b"1\n2\n");
    assert_eq!(place.names(), ["after/", "after/.l.truncated.json", "after/l", "before/"]);
}

#[test]
fn of_several_starts_at_once_one_runs_and_keeps_its_directories() {
    for round in 0..60 {
        let place = Place::new();
        let start = || {
            let weir = place.bare().option("root", place.at("root/logs"));
            let weir = weir.option("receipt-root", place.at("root/receipts"));
            let weir = weir.option("run-id", "r").option("attempt-id", "a");
            weir.option("min-free", "0").option("sync", "none").sh("echo ran >>ran; echo hi")
        };
        std::fs::create_dir(place.at("root")).unwrap();
        // Whoever is refused removes what it has made, but not from under the one that runs.
        let running: Vec<_> = (0..4).map(|_| start().spawn()).collect();
        let done: Vec<_> = running.into_iter().map(|one| one.wait()).collect();
        let well = done.iter().filter(|one| one.says_nothing()).count();
        assert_eq!(well, 1, "round {round}: {done:?}");
        for one in done.iter().filter(|one| !one.says_nothing()) {
            let stderr = one.stderr();
            let expected = ["weir: error[log-busy]: ", "weir: error[log-sealed]: "];
            assert!(expected.iter().any(|start| stderr.starts_with(start)), "{stderr}");
            one.exits(125);
        }
        assert_eq!(place.read("ran"), b"ran\n", "round {round}");
        assert_eq!(place.receipt("root/receipts/a/a.json").counts.kept_bytes, 3);
        let log = format!("{}.log", artifact());
        let below = place.at("root/logs").join(artifact().shard());
        assert_eq!(std::fs::read(below.join(&log)).unwrap(), b"hi\n");
        assert!(below.join(format!(".{log}.truncated.json")).exists());
    }
}

/// A start with a receipt of its own, whose calls are traced and tampered with.
fn with_receipt(place: &Place, log: &str, attempt: &str, tamper: Option<[&str; 2]>) -> Weir {
    let mut under = vec!["strace", "-f", "-qq", "-o", "trace", "-e"];
    let weir = place.bare().option("log", log).option("min-free", "0");
    let weir = weir.option("attempt-id", attempt).option("receipt-root", "receipts");
    // Without a pause between making a directory and holding it.
    let weir = weir.option("sync", "none").sh("echo hi");
    match tamper {
        Some([trace, inject]) => {
            under.extend([trace, "-e", inject]);
            weir.under(&under)
        }
        None => weir,
    }
}

#[test]
fn a_refused_start_that_takes_its_time_removes_no_directory_from_under_another() {
    let test = "a_refused_start_that_takes_its_time";
    if !weir_tests::needs(test, "strace") {
        return;
    }
    let place = Place::new();
    place.weir().sh("true").run().exits(0);
    // Its log is sealed, and it goes to remove the directory that it has made.
    let tamper = ["trace=unlinkat", "inject=unlinkat:delay_enter=1000000"];
    let refused = with_receipt(&place, "l", "xx-refused", Some(tamper)).spawn();
    weir_tests::eventually("it is about to remove it", || {
        let Ok(directory) = std::fs::metadata(place.at("receipts/xx")) else { return false };
        let inode = format!(":{} ", directory.ino());
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|lock| lock.contains("WRITE") && lock.contains(&inode))
    });
    // Its job goes on until the other is gone, and what that removes.
    let job = format!("while kill -0 {} 2>/dev/null; do sleep 0.01; done", refused.pid());
    let other = with_receipt(&place, "other", "xx-other", None).sh(&job).spawn();
    refused.wait().refused("log-sealed");
    other.wait().exits(0).says("");
    assert_eq!(place.receipt("receipts/xx/xx-other.json").counts.kept_bytes, 0);
}

#[test]
fn a_directory_that_is_removed_before_it_is_held_is_made_again() {
    let test = "a_directory_that_is_removed_before_it_is_held";
    if !weir_tests::needs(test, "strace") {
        return;
    }
    for another_holds_a_new_one in [false, true] {
        let place = Place::new();
        let tamper = ["trace=flock", "inject=flock:delay_enter=2000000:when=1"];
        let running = with_receipt(&place, "l", "xx", Some(tamper)).spawn();
        weir_tests::eventually("it has made it", || place.at("receipts/xx").exists());
        std::fs::remove_dir(place.at("receipts/xx")).unwrap();
        let mut another = None;
        if another_holds_a_new_one {
            let weir = with_receipt(&place, "other", "xx-other", None);
            another = Some(weir.sh("until [ -e go ]; do sleep 0.01; done").spawn());
            weir_tests::eventually("it runs", || place.at(".other.fifo").exists());
        } else {
            std::fs::remove_dir(place.at("receipts")).unwrap();
        }
        running.wait().exits(0).says("");
        assert_eq!(place.receipt("receipts/xx/xx.json").counts.kept_bytes, 3);
        // Nor has it removed the other's, for all that it looked like its own.
        if let Some(another) = another {
            std::fs::write(place.at("go"), "").unwrap();
            another.wait().exits(0).says("");
            assert_eq!(place.receipt("receipts/xx/xx-other.json").counts.kept_bytes, 0);
        }
    }
}

#[test]
fn a_start_that_cannot_put_a_directory_on_disk_leaves_it_to_another_that_holds_it() {
    let test = "a_start_that_cannot_put_a_directory_on_disk";
    if !weir_tests::needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let start = |log: &str| {
        let weir = place.bare().option("log", log).option("min-free", "0");
        weir.option("attempt-id", format!("xx-{log}")).option("receipt-root", "receipts")
    };
    let fault = "inject=fsync:error=EIO:delay_enter=2000000:when=1";
    let under = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=fsync", "-e", fault];
    let failing = start("l").under(&under).sh("touch ran").spawn();
    weir_tests::eventually("it has made it", || place.at("receipts").exists());
    let job = format!("while kill -0 {} 2>/dev/null; do sleep 0.01; done", failing.pid());
    let other = start("other").sh(&job).spawn();
    failing.wait().refused("system");
    other.wait().exits(0).says("");
    assert_eq!(place.receipt("receipts/xx/xx-other.json").counts.kept_bytes, 0);
    assert!(!place.at("ran").exists());
}

#[test]
fn directory_made_by_the_user_meanwhile() {
    let test = "directory_made_by_the_user_meanwhile";
    if !weir_tests::needs(test, "strace") {
        return;
    }
    let place = Place::new();
    // It has looked, and is refused afterwards, for something has its FIFO's name.
    std::fs::write(place.at(".l.fifo"), "somebody's").unwrap();
    let tamper = ["trace=fstatfs", "inject=fstatfs:delay_exit=2000000:when=1"];
    let running = with_receipt(&place, "l", "xx", Some(tamper)).spawn();
    weir_tests::eventually("it has looked", || {
        String::from_utf8_lossy(&std::fs::read(place.at("trace")).unwrap_or_default())
            .contains("fstatfs(")
    });
    std::fs::create_dir(place.at("receipts")).unwrap();
    place.set_mode("receipts", 0o755);
    running.wait().refused("fifo-blocked");
    assert_eq!(place.names(), [".l.fifo", "receipts/", "trace"]);
}

#[test]
fn a_new_directory_is_on_disk_before_the_job_starts() {
    // As root: nobody else's strace sees names in weir.
    let test = "a_new_directory_is_on_disk";
    if !needs_root(test) || !weir_tests::needs(test, "strace") {
        return;
    }
    for (sync, expected) in [("full", true), ("records", true), ("none", false)] {
        let place = Place::new();
        let weir = rooted(&place, "root").option("sync", sync).sh("echo hi");
        let under = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=fsync,execve"];
        weir.under(&under).run().exits(0);
        let trace = String::from_utf8_lossy(&place.read("trace")).into_owned();
        let (before, _) = trace.rsplit_once("execve(").unwrap();
        for directory in [place.path(), &place.at("root")] {
            let call = format!("<{}>)", directory.display());
            let synced = before.lines().any(|line| line.contains("fsync(") && line.contains(&call));
            assert_eq!(synced, expected, "{sync} {call}: {trace}");
        }
    }
}

#[test]
fn a_directory_that_another_has_made_meanwhile_is_put_on_disk_too() {
    let test = "a_directory_that_another_has_made_meanwhile";
    if !needs_root(test) || !weir_tests::needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let trace = || String::from_utf8_lossy(&std::fs::read(place.at("trace")).unwrap()).into_owned();
    let weir = place.bare().option("log", "l").option("min-free", "0");
    let weir = weir.option("attempt-id", "xx").option("receipt-root", "receipts").sh("echo hi");
    let delay = "inject=fstatfs:delay_exit=2000000:when=1";
    let calls = "trace=fstatfs,fsync,execve,mkdirat";
    let under = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", calls, "-e", delay];
    let running = weir.under(&under).spawn();
    weir_tests::eventually("it has looked", || {
        place.at("trace").exists() && trace().contains("fstatfs(")
    });
    // As another start that syncs nothing makes it.
    std::fs::create_dir(place.at("receipts")).unwrap();
    place.set_mode("receipts", 0o700);
    running.wait().exits(0);
    let trace = trace();
    assert!(!trace.contains("\"receipts\", 0"), "it has made it itself: {trace}");
    let (before, _) = trace.rsplit_once("execve(").unwrap();
    let name = format!("<{}>)", place.path().display());
    let synced = before.lines().any(|line| line.contains("fsync(") && line.contains(&name));
    assert!(synced, "{trace}");
}
