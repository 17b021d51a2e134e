//! What the job can find of weir, and what weir keeps of its caller's: nothing.

use std::process::Command;
use weir_tests::{Place, full_pipe, held_by, is_root, needs, needs_root};

/// A weir as an ordinary user, in a place of that user's.
fn as_user(test: &str, place: &Place, script: &str) -> Option<()> {
    if !needs(test, "setpriv") {
        return None;
    }
    std::fs::copy(weir_tests::weir_binary(), place.at("weir")).unwrap();
    let words = ["./weir", "run", "--log", "l", "--min-free", "0", "--", "sh", "-c", script];
    let mut command = match is_root() {
        true => {
            let user = 3_000_000 + std::process::id();
            std::os::unix::fs::chown(place.path(), Some(user), None).unwrap();
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), "--regid=65534", "--clear-groups"]);
            command.args(words);
            command
        }
        false => {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            command
        }
    };
    let status =
        command.current_dir(place.path()).env("WEIR_SECRET", "swordfish").status().unwrap();
    assert!(status.success());
    Some(())
}

#[test]
fn a_job_that_is_not_root_cannot_look_into_weir() {
    let place = Place::new();
    let script = "for f in environ mem maps; do cat /proc/$PPID/$f >/dev/null 2>&1 && echo $f; done; \
        ls /proc/$PPID/fd 2>/dev/null; readlink /proc/$PPID/cwd; \
        for n in 0 1 2 3 4 5 6 7 8 9; do echo x 2>/dev/null >>/proc/$PPID/fd/$n && echo wrote $n; done; \
        cat /proc/self/environ | tr '\\0' '\\n' | grep -c SECRET; true";
    let Some(()) = as_user("a_job_that_is_not_root", &place, script) else { return };
    assert_eq!(place.log(), "0\n");
    // And the records were published all the same.
    assert!(!place.fact().quota_reached);
}

/// What weir has open while its job runs.
fn held(place: &Place, under: &[&str]) -> Vec<String> {
    let script = "until [ \"$(readlink /proc/$PPID/cwd)\" = / ]; do sleep 0.01; done; \
        echo $PPID >pid.new; mv pid.new pid; while [ -e pid ]; do sleep 0.01; done";
    let running = place.weir().option("receipt", "r.json").under(under).sh(script).spawn();
    weir_tests::eventually("weir has let go", || place.at("pid").exists());
    let pid = String::from_utf8(place.read("pid")).unwrap();
    let held = held_by(place, &std::path::Path::new("/proc").join(pid.trim()));
    std::fs::remove_file(place.at("pid")).unwrap();
    running.wait().exits(0);
    held
}

#[test]
fn while_the_job_runs_weir_holds_nothing_of_its_callers() {
    let test = "while_the_job_runs_weir_holds_nothing";
    if !needs_root(test) {
        return;
    }
    // Standard error, two event flags, signals, the log, its directory (twice: for the
    // receipt too), the FIFO, two drafts.
    let expected = [
        "/dev/null",
        "/dev/null",
        "HERE",
        "HERE",
        "HERE/",
        "HERE/",
        "HERE/.l.fifo",
        "HERE/l",
        "anon_inode",
        "anon_inode",
        "anon_inode",
        "pipe",
    ];
    let script = "exec \"$@\" 5</etc/passwd 7</etc/hostname 99</etc/hosts </etc/passwd";
    let under = ["sh", "-c", script, "sh"];
    assert_eq!(held(&Place::new(), &under), expected);
    // Also as far up as the limit goes, in no more time than one call takes.
    let high = "import os, sys\nimport resource\n\
        top = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 1\n\
        resource.setrlimit(resource.RLIMIT_NOFILE, (top + 1, top + 1))\n\
        os.dup2(os.open('/etc/passwd', os.O_RDONLY), top)\n\
        os.set_inheritable(top, True)\n\
        os.execvp(sys.argv[1], sys.argv[1:])";
    if needs(test, "python3") {
        assert_eq!(held(&Place::new(), &["python3", "-c", high]), expected);
    }
    // And where close_range(2) is not to be had.
    if needs(test, "strace") {
        let mut under = vec!["strace", "-qq", "-o", "/dev/null", "-e", "trace=close_range"];
        under.extend(["-e", "inject=close_range:error=ENOSYS", "sh", "-c", script, "sh"]);
        assert_eq!(held(&Place::new(), &under), expected);
    }
}

#[test]
fn a_job_under_another_user_may_reopen_its_output_where_that_is_allowed() {
    let test = "a_job_under_another_user";
    if !needs_root(test) || !needs(test, "setpriv") {
        return;
    }
    let job = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "echo hi >/dev/stdout"];
    let place = Place::new();
    place.weir().flag("reopenable").job(&job).run().exits(0).says("");
    assert_eq!(place.log(), "hi\n");
    let place = Place::new();
    place.weir().job(&job).run().exits(2).says("");
    assert!(place.log().contains("Permission denied"));
}

#[test]
fn a_standard_error_that_is_full_closed_or_gone_costs_nothing_but_the_line() {
    let script = "head -c 70000 /dev/zero; exit 3";
    let place = Place::new();
    let (reader, writer) = full_pipe();
    place.weir().stderr(writer).sh(script).run().exits(3);
    drop(reader);
    assert!(place.fact().quota_reached);

    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    place.weir().stderr(writer).sh(script).run().exits(3);
    assert!(place.fact().quota_reached);

    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" 2>&-", "sh"];
    place.weir().under(&under).sh(script).run().exits(3);
    assert!(place.fact().quota_reached);
}
