//! weir ends as its job has ended.

use std::os::unix::fs::PermissionsExt;
use weir_common::JobEnd;
use weir_common::sys::process::End;
use weir_tests::{Place, needs};

#[test]
fn all_256_codes_are_the_jobs() {
    let place = Place::new();
    for code in 0..=255 {
        let log = format!("l{code}");
        let weir = place.bare().option("log", &log).option("min-free", "0").option("sync", "none");
        weir.sh(&format!("exit {code}")).run().exits(code).says("");
    }
}

#[test]
fn a_signal_that_ends_the_job_ends_weir() {
    let place = Place::new();
    // Every signal that ends a process by default; 32 reaches no job from here, since
    // the C library that starts weir ignores it.
    let named = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31];
    let terminating = named.into_iter().chain(33..=64);
    for signal in terminating {
        let log = format!("l{signal}");
        let weir = place.bare().option("log", &log).option("min-free", "0").option("sync", "none");
        // Whatever the caller of the tests ignores, this job does not.
        let script = format!("ulimit -c 0; kill -{signal} $$");
        let job = ["env", "--default-signal", "sh", "-c", &script];
        weir.job(&job).run().dies_by(signal).says("");
        assert!(place.fact_of(&log).is_some(), "signal {signal}");
    }
}

#[test]
fn a_job_that_dumps_core_makes_weir_die_without_a_dump_of_its_own() {
    let place = Place::new();
    let under = ["sh", "-c", "ulimit -c unlimited 2>/dev/null; exec \"$@\"", "sh"];
    // `dies_by` wants no dump; the receipt tells of the job's.
    let weir = place.weir().option("receipt", "r.json").under(&under);
    weir.job(&["sh", "-c", "kill -SEGV $$"]).run().dies_by(11).says("");
    let dumps = place.names().iter().filter(|name| name.starts_with("core")).count();
    let JobEnd::Ended(End::Signal { number, core_dumped }) = place.receipt("r.json").job else {
        panic!("the job was killed");
    };
    // Where dumps go to files at all, the job's is the only one.
    assert!(number == 11 && dumps <= usize::from(core_dumped), "{dumps} dumps");
}

#[test]
fn a_command_that_is_not_found_is_127_and_told_in_the_log() {
    for command in ["no-such-command", "./no-such-file", "l/below-a-file", ""] {
        let place = Place::new();
        let done = place.weir().job(&[command]).run();
        done.refused("not-found");
        assert_eq!(place.log(), done.stderr().lines().next().unwrap().to_owned() + "\n");
        assert!(!place.fact().quota_reached);
        assert_eq!(place.names(), [".l.truncated.json", "l"]);
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_126_and_told_in_the_log() {
    let place = Place::new();
    std::fs::write(place.at("plain"), "echo hi").unwrap();
    place.program("interpreted", "#!/no/such/interpreter\n");
    place.program("garbage", "\0ELF?\n");
    for (command, reason) in [
        ("./plain", "Permission denied"),
        (".", "Permission denied"),
        ("./interpreted", "its interpreter or loader: No such file or directory"),
        ("./garbage", "Exec format error"),
    ] {
        let _ = std::fs::remove_file(place.at("l"));
        let _ = std::fs::remove_file(place.at(".l.truncated.json"));
        let done = place.weir().job(&[command]).run();
        done.refused("not-executable");
        let line = format!("weir: error[not-executable]: cannot run {command}: {reason}\n");
        assert_eq!(place.log(), line);
        assert!(done.stderr().starts_with(&line), "{done:?}");
    }
}

#[test]
fn a_failed_start_stays_inside_the_quota() {
    let place = Place::new();
    std::fs::write(place.at("l"), vec![b'x'; 65_530]).unwrap();
    let done = place.weir().job(&["no-such-command"]).run();
    let cut = "65536 bytes: 72 bytes dropped\n";
    assert!(done.exits(127).stderr().ends_with(cut), "{done:?}");
    let log = place.read("l");
    assert_eq!((log.len(), &log[65_530..]), (65_536, b"weir: ".as_slice()));
    assert!(place.fact().quota_reached);
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_from_a_shell() {
    let place = Place::new();
    place.program("script", "echo \"$0\" \"$#\" \"$2\"; exit 5\n");
    place.weir().job(&["./script", "one", "two words"]).run().exits(5).says("");
    assert_eq!(place.log(), "./script 2 two words\n");
    let place = Place::new();
    place.program("empty", "");
    place.weir().job(&["./empty"]).run().exits(0).says("");
}

#[test]
fn the_search_along_path_is_a_shells() {
    let place = Place::new();
    for directory in ["a", "b", "c"] {
        std::fs::create_dir(place.at(directory)).unwrap();
    }
    // Found but not executable in one place, executable in a later one.
    std::fs::write(place.at("a/tool"), "echo a").unwrap();
    place.program("b/tool", "#!/bin/sh\necho b\n");
    place.program("c/tool", "#!/bin/sh\necho c\n");
    place.program("here", "#!/bin/sh\necho here\n");
    std::fs::write(place.at("a/plain"), "").unwrap();
    for (path, command, code, said) in [
        ("a:b:c", "tool", 0, "b\n"),
        ("missing:c:b", "tool", 0, "c\n"),
        ("a", "tool", 126, "weir: error[not-executable]: cannot run tool: Permission denied\n"),
        (
            "a:b",
            "here",
            127,
            "weir: error[not-found]: cannot run here: No such file or directory\n",
        ),
        ("a::b", "here", 0, "here\n"),
        ("", "here", 0, "here\n"),
    ] {
        let _ = std::fs::remove_file(place.at("l"));
        let _ = std::fs::remove_file(place.at(".l.truncated.json"));
        place.weir().env("PATH", path).job(&[command]).run().exits(code);
        assert_eq!(place.log(), said, "PATH={path} {command}");
    }
    // Without PATH there is still a search, in the usual places.
    let _ = std::fs::remove_file(place.at("l"));
    let _ = std::fs::remove_file(place.at(".l.truncated.json"));
    place.weir().under(&["env", "-u", "PATH"]).job(&["echo", "usual"]).run().exits(0);
    assert_eq!(place.log(), "usual\n");
}

#[test]
fn a_directory_on_path_that_cannot_be_searched_is_as_if_it_were_not_there() {
    let place = Place::new();
    if !needs("a_directory_on_path", "setpriv") {
        return;
    }
    std::fs::create_dir(place.at("closed")).unwrap();
    place.program("closed/tool", "#!/bin/sh\n");
    place.set_mode("closed", 0o000);
    let weir = match weir_tests::is_root() {
        true => {
            // Root may search everything, so somebody else looks.
            std::os::unix::fs::chown(place.path(), Some(54321), None).unwrap();
            let weir = weir_tests::weir_binary();
            if !reachable(weir) {
                eprintln!("SKIPPED a_directory_on_path: others cannot reach {}", weir.display());
                return;
            }
            place.weir().under(&["setpriv", "--reuid=54321", "--clear-groups"])
        }
        false => place.weir(),
    };
    weir.env("PATH", "closed:/usr/bin:/bin").job(&["tool"]).run().refused("not-found");
    place.set_mode("closed", 0o700);
}

/// Whether everybody may reach a file.
fn reachable(path: &std::path::Path) -> bool {
    path.ancestors().skip(1).all(|directory| {
        std::fs::metadata(directory)
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    })
}

#[test]
fn weirs_own_failure_before_the_start_is_125_and_leaves_nothing() {
    let place = Place::new();
    let done = place.weir().option("chdir", "missing").sh("echo ran >ran").run();
    done.refused("system");
    done.says("weir: error[system]: cannot enter directory missing: No such file or directory\n");
    assert_eq!(place.names(), [""; 0]);
}
