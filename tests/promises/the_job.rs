//! The job runs as it would without weir.

use std::process::{Command, Stdio};
use weir_tests::{Place, eventually, needs, needs_root};

/// What a command prints without weir, in the same place and under the same words.
fn bare(place: &Place, under: &[&str], job: &[&str]) -> String {
    let words = [under, job].concat();
    let mut command = Command::new(words[0]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WEIR_") {
            command.env_remove(name);
        }
    }
    command.args(&words[1..]).current_dir(place.path()).stdin(Stdio::null());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Checks that a command sees with weir what it sees without.
fn sees_the_same(under: &[&str], job: &[&str]) {
    let place = Place::new();
    let expected = bare(&place, under, job);
    assert!(!expected.is_empty());
    place.weir().under(under).job(job).run().exits(0).says("");
    assert_eq!(place.log(), expected, "{under:?} {job:?}");
}

#[test]
fn arguments_environment_directory_umask_and_limits_are_the_callers() {
    sees_the_same(&[], &["env"]);
    sees_the_same(&[], &["pwd"]);
    for umask in ["000", "027", "777"] {
        let set = format!("umask {umask}; exec \"$@\"");
        sees_the_same(&["sh", "-c", &set, "sh"], &["sh", "-c", "umask"]);
    }
    sees_the_same(&["sh", "-c", "ulimit -n 77; exec \"$@\"", "sh"], &["sh", "-c", "ulimit -a"]);
}

#[test]
fn environment_entries_that_are_malformed_or_double_pass_as_they_are() {
    if !needs("environment_entries_that_are_malformed", "python3") {
        return;
    }
    // No shell: those tidy their environment up.
    let place = Place::new();
    let script = "import ctypes, os, sys\n\
        libc = ctypes.CDLL(None)\n\
        words = sys.argv[1:]\n\
        argv = (ctypes.c_char_p * (len(words) + 1))(*[w.encode() for w in words], None)\n\
        entries = [b'A=1', b'NOVALUE', b'A=2', b'WEIR_QUOTA=64K', b'=odd', b'WEIR_X=1', b'\\xff=\\xfe']\n\
        envp = (ctypes.c_char_p * (len(entries) + 1))(*entries, None)\n\
        libc.execve(words[0].encode(), argv, envp)\n";
    std::fs::write(place.at("start.py"), script).unwrap();
    let under = ["python3", "start.py"];
    place.weir().under(&under).job(&["/bin/cat", "/proc/self/environ"]).run().exits(0).says("");
    assert_eq!(place.read("l"), b"A=1\0NOVALUE\0A=2\0=odd\0\xff=\xfe\0");
}

#[test]
fn no_weir_variable_reaches_the_job() {
    let place = Place::new();
    let weir =
        place.bare().env("WEIR_LOG", "l").env("WEIR_MIN_FREE", "0").env("WEIR_NONSENSE", "1");
    weir.env("OTHER_WEIR_", "stays").sh("env | grep WEIR").run().exits(0).says("");
    assert_eq!(place.log(), "OTHER_WEIR_=stays\n");
}

#[test]
fn signal_mask_and_dispositions_are_the_callers() {
    // No shell looks: those change what they inherit.
    let look = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    sees_the_same(&[], &look);
    sees_the_same(&["sh", "-c", "trap '' PIPE HUP USR1; exec \"$@\"", "sh"], &look);
    if needs("signal_mask_and_dispositions", "python3") {
        let start = "import os, signal, sys\n\
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGRTMIN + 3, signal.SIGCHLD})\n\
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n\
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n\
            os.execvp(sys.argv[1], sys.argv[1:])\n";
        sees_the_same(&["python3", "-c", start], &look);
    }
}

#[test]
fn a_caller_that_ignores_sigchld_gets_the_exit_code_all_the_same() {
    if needs("a_caller_that_ignores_sigchld", "python3") {
        let start = "import os, signal, sys\n\
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
            os.execvp(sys.argv[1], sys.argv[1:])\n";
        let place = Place::new();
        place.weir().under(&["python3", "-c", start]).sh("exit 7").run().exits(7).says("");
    }
}

#[test]
fn a_default_sigpipe_stays_default() {
    let place = Place::new();
    let script = "yes | head -1 >first; echo ${PIPESTATUS[0]}";
    place.weir().job(&["bash", "-c", script]).run().exits(0);
    assert_eq!(place.log(), "141\n");
}

#[test]
fn the_callers_descriptors_reach_the_job_and_weirs_do_not() {
    let script =
        "for fd in /proc/self/fd/*; do echo ${fd##*/} $(readlink $fd | sed 's/[0-9]//g'); done";
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" 7</etc/passwd 9</etc/hostname", "sh"];
    // The standard three differ, of course.
    let beyond_standard = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !["0", "1", "2"].contains(&&line[..1]))
            .map(str::to_owned)
            .collect()
    };
    let expected = beyond_standard(&bare(&place, &under, &["sh", "-c", script]));
    place.weir().under(&under).sh(script).run().exits(0).says("");
    assert_eq!(beyond_standard(&place.log()), expected);
    assert!(expected.iter().any(|line| line.contains("passwd")), "{expected:?}");
}

#[test]
fn descriptors_that_were_closed_are_handled() {
    for (closed, sees_input) in [
        ("", "open"),
        ("<&-", "closed"),
        (">&-", "open"),
        ("2>&-", "open"),
        ("<&- >&-", "closed"),
        ("<&- 2>&-", "closed"),
        (">&- 2>&-", "open"),
        ("<&- >&- 2>&-", "closed"),
    ] {
        let place = Place::new();
        let under = format!("exec \"$@\" {closed}");
        let script =
            "if [ -e /proc/$$/fd/0 ]; then echo open; else echo closed; fi; echo error >&2; exit 3";
        place.weir().under(&["sh", "-c", &under, "sh"]).sh(script).run().exits(3).says("");
        assert_eq!(place.log(), format!("{sees_input}\nerror\n"), "{closed:?}");
        assert!(!place.fact().quota_reached);
    }
}

#[test]
fn output_is_one_blocking_write_only_description() {
    let place = Place::new();
    let script = "grep flags /proc/self/fdinfo/1 /proc/self/fdinfo/2; echo x >&2";
    place.weir().sh(script).run().exits(0).says("");
    let log = place.log();
    let flags: Vec<u32> = log
        .lines()
        .filter_map(|line| line.rsplit_once('\t'))
        .map(|(_, octal)| u32::from_str_radix(octal, 8).unwrap())
        .collect();
    // O_WRONLY without O_NONBLOCK or O_APPEND; how it was opened (O_LARGEFILE,
    // O_NOFOLLOW) makes no difference to a write.
    let flags: Vec<u32> = flags.iter().map(|flags| flags & !0o500_000).collect();
    assert_eq!(flags, [1, 1]);
    let kinds = Place::new();
    kinds.weir().sh("readlink /proc/$$/fd/1 /proc/$$/fd/2").run().exits(0);
    let fifo = kinds.at(".l.fifo");
    assert_eq!(kinds.log(), format!("{0}\n{0}\n", fifo.display()));
}

#[test]
fn standard_input_is_the_callers_or_null() {
    let place = Place::new();
    std::fs::write(place.at("input"), "given\n").unwrap();
    let input = || std::fs::File::open(place.at("input")).unwrap();
    place.weir().stdin(input()).job(&["cat"]).run().exits(0).says("");
    assert_eq!(place.log(), "given\n");
    let place_without = Place::new();
    place_without
        .weir()
        .option("stdin", "null")
        .stdin(input())
        .job(&["cat"])
        .run()
        .exits(0)
        .says("");
    assert_eq!(place_without.log(), "");
}

#[test]
fn the_job_starts_in_the_directory_that_was_asked_for() {
    let place = Place::new();
    std::fs::create_dir(place.at("there")).unwrap();
    place.program("there/tool", "#!/bin/sh\npwd\n");
    place.weir().option("chdir", "there").job(&["./tool"]).run().exits(0).says("");
    let there = std::fs::canonicalize(place.at("there")).unwrap();
    assert_eq!(place.log(), format!("{}\n", there.display()));
}

#[test]
fn a_shell_string_runs_as_one() {
    let place = Place::new();
    place.weir().option("shell", "echo a; echo b | tr b c; exit 4").run().exits(4).says("");
    assert_eq!(place.log(), "a\nc\n");
}

#[test]
fn the_process_group_and_session_are_the_callers() {
    // Fields 5 and 6 of stat are group and session, of weir and of its job.
    let place = Place::new();
    let script = "cut -d' ' -f5,6 /proc/$PPID/stat /proc/$$/stat";
    place.weir().sh(script).run().exits(0).says("");
    let log = place.log();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn a_job_beside_a_process_limit_that_leaves_no_room_for_a_thread_is_drained() {
    let test = "a_job_beside_a_process_limit";
    if !needs_root(test) || !needs(test, "setpriv") || !needs(test, "prlimit") {
        return;
    }
    // Two processes of this user, and no thread. The user is nobody else's.
    let place = Place::new();
    let user = 1_000_000 + std::process::id();
    std::os::unix::fs::chown(place.path(), Some(user), None).unwrap();
    std::fs::copy(weir_tests::weir_binary(), place.at("weir")).unwrap();
    let limited = |script: &str| {
        let mut command = Command::new("setpriv");
        command.args([
            &format!("--reuid={user}"),
            "--clear-groups",
            "prlimit",
            "--nproc=2",
            "sh",
            "-c",
            script,
        ]);
        command.current_dir(place.path()).output().unwrap()
    };
    let done =
        limited("exec ./weir run --log l --quota 64K --min-free 0 -- head -c 200000 /dev/zero");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(place.read("l"), vec![0; 65_536]);
    assert!(place.fact().quota_reached);
    // A third of this user's there cannot be: the limit is real.
    let refused = limited("(true & true & wait); true");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("fork"), "{refused:?}");
}

#[test]
fn the_death_of_weirs_parent_changes_nothing() {
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    // The shell starts weir in the background and dies.
    let script = "while [ -e go ]; do sleep 0.01; done; echo survived";
    let under = ["sh", "-c", "\"$@\" >/dev/null 2>&1 & echo started", "sh"];
    let done = place.weir().under(&under).sh(script).run();
    assert_eq!(done.stdout(), "started\n");
    std::fs::remove_file(place.at("go")).unwrap();
    eventually("the fact is there", || place.fact_of("l").is_some());
    assert_eq!(place.log(), "survived\n");
}
