//! The command line and the environment: what is understood, and what is refused how.

use std::process::Command;
use weir_tests::{Done, Place, weir_binary};

/// Runs weir with exactly these words.
fn weir(place: &Place, words: &[&str]) -> Done {
    place.bare().words(words).run()
}

#[test]
fn wrong_words_are_refused_with_what_where_and_what_to_do() {
    let place = Place::new();
    for (words, said) in [
        (&[][..], "no command given\nhint: weir run --log FILE -- COMMAND, or weir --help"),
        (&["walk"], "unknown command walk\nhint: weir --help lists the commands"),
        (
            &["run", "--quotta", "1", "true"],
            "unknown option --quotta\nhint: weir run --help lists the options; the job's own options go behind COMMAND",
        ),
        (
            &["run", "-q", "true"],
            "unknown option -q\nhint: weir run --help lists the options; the job's own options go behind COMMAND",
        ),
        (
            &["run", "true"],
            "no log given\nhint: --log FILE, or --root DIR with --run-id and --attempt-id",
        ),
        (
            &["run", "--log", "l"],
            "no command given\nhint: weir run [OPTIONS] [--] COMMAND [ARG]..., or --shell STRING",
        ),
        (
            &["run", "--log"],
            "missing argument for option '--log'\nhint: weir run --help lists the options",
        ),
        (
            &["run", "--log", "l", "--shell", "true", "true"],
            "--shell and the command true: the two exclude each other",
        ),
        (
            &["run", "--log", "l", "--root", "r", "true"],
            "--root r: the two exclude each other (--log l)",
        ),
        (
            &["run", "--log", "l", "--receipt", "a", "--receipt-root", "b", "true"],
            "--receipt-root b: the two exclude each other (--receipt a)",
        ),
        (
            &["run", "--log", "directory/", "true"],
            "--log directory/: it does not end in a file name",
        ),
        (&["run", "--root", "", "true"], "--root : it is empty"),
        (&["run", "--log", "l", "--receipt-root", "", "true"], "--receipt-root : it is empty"),
        (&["run", "--log", "..", "true"], "--log ..: it does not end in a file name"),
        (
            &["run", "--log", "l", "--min-free", "2T", "true"],
            "--min-free 2T: it is more than 1 TiB",
        ),
        (
            &["run", "--log", "l", "--quota", "1.5M", "true"],
            "--quota 1.5M: it is not a size such as 65536, 64K, 64KiB or 66kB",
        ),
        (
            &["run", "--log", "l", "--profile", "huge", "true"],
            "--profile huge: it is not one of standalone, edge",
        ),
        (
            &["run", "--log", "l", "--sync", "some", "true"],
            "--sync some: it is not one of full, records, none",
        ),
        (
            &["run", "--log", "l", "--stdin", "file", "true"],
            "--stdin file: it is not one of inherit, null",
        ),
        (
            &["run", "--log", "l", "--tee=maybe", "true"],
            "--tee maybe: it is neither true nor false",
        ),
        (
            &["run", "--log", "l", "--log-fd", "x", "true"],
            "--log-fd x: it is not the number of a descriptor",
        ),
        (
            &["run", "--log", "l", "--log-fd", "0", "true"],
            "--log-fd 0: descriptor 0 is the job's standard input",
        ),
        (
            &["run", "--log", "l", "--log-fd", "1", "--fresh", "true"],
            "--log-fd 1: a log that is open already cannot be started over with --fresh",
        ),
        (&["run", "--log", "l", "--status-fd", "99", "true"], "--status-fd 99: it is not open"),
        (
            &["run", "--log", "l", "--status-fd", "0", "true"],
            "--status-fd 0: descriptor 0 is the job's standard input",
        ),
        (
            &["run", "--log", "l", "--log-fd", "1", "--status-fd", "1", "true"],
            "--status-fd 1: it is the log, by --log-fd",
        ),
        (
            &["run", "--log", "l", "--tee", "--status-fd", "1", "true"],
            "--status-fd 1: standard output has the copy of --tee",
        ),
        (
            &["run", "--log", "l", "--run-id", "a/b", "true"],
            "--run-id a/b: \"a/b\" is not a run id: a letter or digit, then up to 127 of A-Z a-z 0-9 . _ : -",
        ),
        (
            &["run", "--log", "l", "--attempt-id", "", "true"],
            "--attempt-id : \"\" is not an attempt id: a letter or digit, then up to 127 of A-Z a-z 0-9 . _ : -",
        ),
    ] {
        let done = weir(&place, words);
        // On standard output, when that has the events: the refusal is told there too.
        done.exits(125).says(&format!("weir: error[usage]: {said}\n"));
        assert_eq!(place.names(), [""; 0], "{words:?}");
    }
}

#[test]
fn a_quota_outside_its_range_has_a_code_of_its_own() {
    let place = Place::new();
    for (quota, said) in [
        ("65535", "65535 bytes are not between 64 KiB (65536) and 1 GiB (1073741824)"),
        ("0", "0 bytes are not between 64 KiB (65536) and 1 GiB (1073741824)"),
        ("1025M", "1074790400 bytes are not between 64 KiB (65536) and 1 GiB (1073741824)"),
        ("99E", "it is larger than any size can be"),
    ] {
        let done = weir(&place, &["run", "--log", "l", "--quota", quota, "true"]);
        done.exits(125)
            .says(&format!("weir: error[quota-out-of-range]: --quota {quota}: {said}\n"));
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn a_log_whose_fact_would_have_too_long_a_name_is_refused() {
    let place = Place::new();
    let longest = "l".repeat(239);
    weir(&place, &["run", "--log", &longest, "--min-free", "0", "true"]).exits(0).says("");
    let done = weir(&place, &["run", "--log", &"l".repeat(240), "--min-free", "0", "true"]);
    done.refused("usage");
    assert_eq!(place.names().len(), 2);
}

#[test]
fn quotas_and_profiles_mean_what_they_say() {
    for (options, maximum) in [
        (&[][..], 64 << 20),
        (&["--profile", "edge"], 4 << 20),
        (&["--profile", "standalone"], 64 << 20),
        (&["--profile", "edge", "--quota", "70kB"], 70_000),
        (&["--quota", "1G"], 1 << 30),
        (&["--quota=128KiB"], 128 << 10),
        (&["--quota", "64K", "--quota", "65K"], 65 << 10),
    ] {
        let place = Place::new();
        let words = [&["run", "--log", "l", "--min-free", "0"], options, &["true"]].concat();
        weir(&place, &words).exits(0).says("");
        assert_eq!(place.fact().quota.bytes(), maximum, "{options:?}");
    }
}

#[test]
fn the_words_of_the_job_are_its_own() {
    let place = Place::new();
    let words = ["run", "--log", "l", "--min-free", "0", "echo", "--quota", "x", "--", "-h"];
    weir(&place, &words).exits(0).says("");
    assert_eq!(place.log(), "--quota x -- -h\n");
    let place = Place::new();
    place.program("--tool", "echo tool \"$@\"\n");
    let weir = place.weir().env("PATH", format!("{}:/usr/bin:/bin", place.path().display()));
    weir.job(&["--tool", "--log"]).run().exits(0).says("");
    assert_eq!(place.log(), "tool --log\n");
}

#[test]
fn every_option_can_come_from_the_environment() {
    let place = Place::new();
    std::fs::write(place.at("input"), "input").unwrap();
    std::fs::create_dir(place.at("there")).unwrap();
    let weir = place
        .bare()
        .env("WEIR_ROOT", "root")
        .env("WEIR_RUN_ID", "r")
        .env("WEIR_ATTEMPT_ID", "attempt")
        .env("WEIR_PROFILE", "edge")
        .env("WEIR_QUOTA", "64K")
        .env("WEIR_MIN_FREE", "0")
        .env("WEIR_RECEIPT_ROOT", "receipts")
        .env("WEIR_SYNC", "none")
        .env("WEIR_STATUS_FD", "2")
        .env("WEIR_TEE", "yes")
        .env("WEIR_SHELL", "pwd; cat; head -c 70000 /dev/zero")
        .env("WEIR_CHDIR", "there")
        .env("WEIR_STDIN", "null")
        .env("WEIR_QUIET", "1")
        .env("WEIR_AFTER_EXIT", "kill")
        .env("WEIR_GRACE", "1ms")
        .env("WEIR_SIGNAL_SCOPE", "group")
        .env("WEIR_SUBREAPER", "1")
        .env("WEIR_REOPENABLE", "1")
        .env("WEIR_FRESH", "on");
    let done = weir.stdin(std::fs::File::open(place.at("input")).unwrap()).run();
    done.exits(0);
    let receipt = place.receipt("receipts/at/attempt.json");
    assert_eq!(receipt.run_id.as_str(), "r");
    let pwd = format!("{}/there\n", std::fs::canonicalize(place.path()).unwrap().display());
    assert!(done.stdout().starts_with(&pwd));
    assert_eq!(done.stdout.len(), 65_536);
    // Events, and no line about the cut.
    assert!(done.stderr().lines().all(|line| line.starts_with("{\"event\":")), "{done:?}");
}

#[test]
fn the_command_line_wins_over_the_environment() {
    let place = Place::new();
    let weir = place.bare().words(&[
        "run",
        "--log",
        "mine",
        "--quota",
        "65K",
        "--tee=false",
        "--receipt",
        "r.json",
    ]);
    let weir = weir
        .env("WEIR_MIN_FREE", "0")
        .env("WEIR_QUOTA", "128K")
        .env("WEIR_LOG", "other")
        .env("WEIR_ROOT", "root")
        .env("WEIR_TEE", "true")
        .env("WEIR_RECEIPT_ROOT", "receipts")
        .env("WEIR_SHELL", "echo shell");
    weir.job(&["echo", "command"]).run().exits(0).says("");
    assert_eq!(place.names(), [".mine.truncated.json", "mine", "r.json"]);
    assert_eq!(place.read("mine"), b"command\n");
    assert_eq!(place.fact_of("mine").unwrap().quota.bytes(), 65 << 10);
}

#[test]
fn a_wrong_variable_is_named_and_an_empty_one_is_none() {
    let place = Place::new();
    let done = place.bare().env("WEIR_LOG", "l").env("WEIR_QUOTA", "lots").sh("true").run();
    done.exits(125).says(
        "weir: error[usage]: WEIR_QUOTA=lots: it is not a size such as 65536, 64K, 64KiB or 66kB\n",
    );
    let weir = place.bare().env("WEIR_LOG", "l").env("WEIR_QUOTA", "").env("WEIR_MIN_FREE", "0");
    weir.sh("true").run().exits(0).says("");
    let done = place.bare().env("WEIR_LOG", "l").env("WEIR_ROOT", "r").sh("true").run();
    done.exits(125)
        .says("weir: error[usage]: WEIR_ROOT=r: the two exclude each other (WEIR_LOG=l)\n");
}

#[test]
fn help_fits_a_screen_and_goes_to_standard_output() {
    for words in [&["--help"][..], &["-h"], &["help"], &["run", "--help"], &["run", "-h"]] {
        let output = Command::new(weir_binary()).args(words).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() <= 40 && text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains("Example:"), "{text}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(weir_binary()).arg("--help").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "weir: error[system]: cannot print: No space left on device\n");
}
