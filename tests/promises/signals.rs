//! Signals that weir gets reach its job, at once and once.

use weir_tests::{Place, eventually};

/// A job that notes every signal that it gets, and ends at USR2.
const NOTING: &str = "import signal, sys, os\n\
    got = []\n\
    def note(number, frame):\n\
    \x20   print(number, flush=True)\n\
    \x20   if number == signal.SIGUSR2: sys.exit(9)\n\
    for number in range(1, signal.SIGRTMAX + 1):\n\
    \x20   try: signal.signal(number, note)\n\
    \x20   except (OSError, ValueError, RuntimeError): pass\n\
    print('ready', flush=True)\n\
    while True: signal.pause()\n";

#[test]
fn every_signal_is_forwarded_once() {
    if !weir_tests::needs("every_signal_is_forwarded_once", "python3") {
        return;
    }
    let place = Place::new();
    std::fs::write(place.at("note.py"), NOTING).unwrap();
    let running = place.weir().job(&["python3", "note.py"]).spawn();
    let mut expected = String::from("ready\n");
    let log_is = |expected: &str| {
        eventually(expected, || place.at("l").exists() && place.log() == expected);
    };
    log_is(&expected);
    // All but KILL, STOP, CHLD, the terminal's stops, what the faults use, and the two
    // that C libraries keep from their programs.
    let left_out = [9, 19, 17, 20, 21, 22, 4, 5, 7, 8, 11, 31, 12, 32, 33];
    for number in (1..=64).filter(|number| !left_out.contains(number)) {
        running.signal(&number.to_string());
        expected.push_str(&format!("{number}\n"));
        log_is(&expected);
    }
    running.signal("USR2");
    running.wait().exits(9).says("");
    assert_eq!(place.log(), format!("{expected}12\n"));
}

#[test]
fn a_signal_ends_the_job_and_weir_with_it() {
    let place = Place::new();
    let running = place.weir().sh("echo ready; exec sleep 1000").spawn();
    eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
    running.signal("TERM");
    running.wait().dies_by(15).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn the_signals_that_c_libraries_keep_to_themselves_are_forwarded_too() {
    let place = Place::new();
    let running = place.weir().sh("echo ready; exec sleep 1000").spawn();
    eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
    running.signal("33");
    running.wait().dies_by(33).says("");
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_signal_at_any_moment_of_the_start_ends_everything_and_leaves_no_survivor() {
    // Thousands of them in the whole check; a handful here.
    let starts = if std::env::var_os("WEIR_SOAK").is_some() { 4000 } else { 200 };
    let place = Place::new();
    let signals =
        [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("ALRM", 14), ("40", 40)];
    // What the caller of the tests ignores, the job would ignore too.
    let signals: Vec<_> =
        signals.into_iter().filter(|(_, number)| !is_ignored_here(*number)).collect();
    let mut times: Vec<_> = (0..9).map(|_| time_to_the_job(&place)).collect();
    times.sort();
    let start_time = times[times.len() / 2];
    let (mut before, mut during, mut seed) = (0, 0, 1u32);
    for n in 0..starts {
        let (name, number) = signals[n % signals.len()];
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The moment is spread over twice the time that a start takes.
        let moment = start_time * 2 * (seed >> 22) / (1 << 10);
        let marker = format!("1000.{}", std::process::id() as usize * 10_000 + n);
        let running =
            place.bare().option("log", "l").option("min-free", "0").option("sync", "none");
        let running = running.job(&["sleep", &marker]).spawn();
        let since = std::time::Instant::now();
        while since.elapsed() < moment {
            std::hint::spin_loop();
        }
        running.signal_number(name, number);
        let done = running.wait();
        done.dies_by(number);
        match place.at("l").exists() {
            // It came before weir had read its words, and weir died of it like anybody.
            false => before += 1,
            true => {
                during += 1;
                assert!(!place.fact().quota_reached, "{done:?}");
                assert_eq!(place.log(), "", "{done:?}");
            }
        }
        assert!(!runs(&marker), "start {n} by {name} has a survivor");
        for name in place.names() {
            std::fs::remove_file(place.at(&name)).unwrap();
        }
    }
    eprintln!("{starts} starts: {before} signals came before weir was ready, {during} later");
    assert!(during > 0);
}

/// How long it takes from weir's start to its job's.
fn time_to_the_job(place: &Place) -> std::time::Duration {
    let since = std::time::Instant::now();
    let weir = place.bare().option("log", "l").option("min-free", "0").option("sync", "none");
    let running = weir.job(&["touch", "job"]).spawn();
    eventually("the job runs", || place.at("job").exists());
    let time = since.elapsed();
    running.wait().exits(0);
    for name in place.names() {
        std::fs::remove_file(place.at(&name)).unwrap();
    }
    time
}

fn is_ignored_here(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    u64::from_str_radix(set, 16).unwrap() & (1 << (signal - 1)) != 0
}

/// Whether any process has this word on its command line.
fn runs(marker: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| {
        let mut words = line.split(|byte| *byte == 0);
        words.next() == Some(b"sleep") && words.next() == Some(marker.as_bytes())
    })
}

#[test]
fn a_group_of_its_own_gets_a_forwarded_signal_as_a_whole_and_once() {
    let place = Place::new();
    if !weir_tests::needs("a_group_of_its_own", "python3") {
        return;
    }
    let job = "import os, signal, sys\n\
        print(os.getpgrp(), os.getpid(), flush=True)\n\
        name = b'parent\\n' if os.fork() else b'child\\n'\n\
        signal.signal(signal.SIGUSR1, lambda *_: os.write(1, name))\n\
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n\
        os.write(1, b'ready\\n')\n\
        while True: signal.pause()\n";
    let weir = place.weir().option("signal-scope", "group").job(&["python3", "-c", job]);
    let running = weir.spawn();
    let lines = || match place.at("l").exists() {
        true => place.log().lines().map(str::to_owned).collect(),
        false => Vec::new(),
    };
    eventually("both are ready", || lines().len() == 3);
    let ids: Vec<String> = lines()[0].split(' ').map(str::to_owned).collect();
    assert_eq!(ids[0], ids[1], "the job leads its group");
    running.signal("USR1");
    eventually("both have got it", || lines().len() == 5);
    running.signal("TERM");
    running.wait().exits(5).says("");
    let mut got = lines().split_off(3);
    got.sort_unstable();
    assert_eq!(got, ["child", "parent"]);
}

#[test]
fn forwarding_goes_on_while_the_logs_file_system_is_frozen() {
    let test = "forwarding_goes_on_while_frozen";
    if !weir_tests::needs_root(test)
        || !weir_tests::needs(test, "mkfs.ext4")
        || !weir_tests::needs(test, "fsfreeze")
    {
        return;
    }
    let place = Place::new();
    let script = "set -e; truncate -s 64M img; mkfs.ext4 -q img; mkdir m; mount -o loop img m; chmod 700 m\n\
        \"$1\" run --log m/l --quota 64K --min-free 0 -- sh -c 'trap \"touch got; exit 7\" TERM; while :; do echo x; sleep 0.01; done' & weir=$!\n\
        until [ -s m/l ] || ! kill -0 $weir; do sleep 0.01; done\n\
        (sleep 30; fsfreeze -u m 2>/dev/null) >/dev/null 2>&1 & watchdog=$!\n\
        fsfreeze -f m\n\
        until cat /proc/$weir/task/*/stat | grep -q ') D '; do sleep 0.01; done\n\
        kill -TERM $weir\n\
        until [ -e got ]; do sleep 0.01; done\n\
        frozen=$(cat /proc/$weir/task/*/stat | grep -c ') D ')\n\
        fsfreeze -u m; kill $watchdog; set +e; wait $weir; echo rc=$? frozen=$frozen; ls -A m; umount m";
    let output = std::process::Command::new("timeout")
        .args(["-s", "KILL", "60", "unshare", "--mount", "sh", "-c", script, "sh"])
        .arg(weir_tests::weir_binary())
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(said.contains("rc=7 frozen=1\n"), "{output:?}");
    assert!(said.contains(".l.truncated.json\n"), "{output:?}");
}

#[test]
fn a_caller_that_blocks_or_ignores_a_signal_does_not_keep_it_from_weir() {
    if !weir_tests::needs("a_caller_that_blocks_or_ignores", "python3") {
        return;
    }
    let block = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})";
    let ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)";
    for inherited in [block, ignore] {
        let place = Place::new();
        let start =
            format!("import os, signal, sys\n{inherited}\nos.execvp(sys.argv[1], sys.argv[1:])");
        // The job wants the signal, whatever it has inherited.
        let job = "import signal, sys\n\
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n\
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})\n\
            print('ready', flush=True)\n\
            while True: signal.pause()\n";
        let weir = place.weir().under(&["python3", "-c", &start]).job(&["python3", "-c", job]);
        let running = weir.spawn();
        eventually("the job runs", || place.at("l").exists() && place.log() == "ready\n");
        running.signal("TERM");
        running.wait().exits(5).says("");
    }
}

#[test]
fn a_stopped_weir_loses_nothing() {
    let place = Place::new();
    let weir = place.bare().option("log", "l").option("quota", "8M").option("min-free", "0");
    let running = weir.sh("echo $$ >pid.new; mv pid.new pid; exec seq 1 500000").spawn();
    eventually("the job runs", || place.at("pid").exists());
    let pid = String::from_utf8(place.read("pid")).unwrap();
    let state = format!("/proc/{}/stat", pid.trim());
    for _ in 0..3 {
        running.signal("STOP");
        // The pipe fills, and the job waits: blocking, not failing.
        let mut asleep = 0;
        eventually("the job waits, or has written everything", || {
            let stat = std::fs::read_to_string(&state).unwrap_or_default();
            asleep = if stat.contains(") S ") { asleep + 1 } else { 0 };
            asleep == 20 || stat.is_empty() || stat.contains(") Z ")
        });
        running.signal("CONT");
    }
    running.wait().exits(0).says("");
    let expected: String = (1..=500_000).map(|n| format!("{n}\n")).collect();
    assert!(place.log() == expected);
}
