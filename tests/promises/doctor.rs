//! `weir doctor`: what it says of a directory is what a run finds there.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use weir_tests::{Place, is_root, needs, on_small_disk, weir_binary};

/// What the doctor says: its exit status, standard output and standard error.
type Said = (i32, String, String);

fn doctor(place: &Place, under: &[&str], words: &[&str]) -> Said {
    let weir = weir_binary().to_str().unwrap();
    let all: Vec<&str> = [under, &[weir, "doctor"], words].concat();
    let mut command = Command::new(all[0]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WEIR_")) {
        command.env_remove(name);
    }
    let output = command.args(&all[1..]).current_dir(place.path()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Each check with its verdict, and its code if it was refused.
fn verdicts(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let mut said: Vec<String> = checks
        .map(|check| {
            let word = |key: &str| check[key].as_str().unwrap_or("").to_owned();
            format!("{} {} {}", word("check"), word("verdict"), word("code")).trim().to_owned()
        })
        .collect();
    said.push(format!("would start {}", report["wouldStart"]));
    said
}

const ALL_IS_WELL: [&str; 9] = [
    "directory ok",
    "space ok",
    "inodes ok",
    "log ok",
    "fact ok",
    "fifo ok",
    "sync ok",
    "reserve ok",
    "would start true",
];

#[test]
fn a_good_directory_is_good_in_every_respect_and_nothing_is_left_in_it() {
    let script =
        "mkdir small/logs; \"$weir\" doctor --min-free 0 --quota 64K small/logs; echo rc=$?
        stat -c 'by %u' small/logs";
    let Some((place, said)) = on_small_disk("a_good_directory", "300k", script) else { return };
    let owner = said.lines().last().unwrap().strip_prefix("by ").unwrap();
    let inodes = said.lines().nth(2).unwrap();
    assert!(inodes.starts_with("inodes             ok       "), "{said}");
    let way = "a file without a name, which a link names";
    let space = "307200 bytes are free, 65536 needed (65536 for the log, 0 to stay free)";
    let expected = format!(
        "directory          ok       small/logs: owner {owner}, mode 0755\n\
         space              ok       {space}\n\
         {inodes}\n\
         log                ok       made and locked\n\
         fact               ok       {way}\n\
         fifo               ok       made, and opened at both ends\n\
         sync               warning  in memory: a power cut takes everything\n\
         reserve            ok       could be allocated ahead\n\
         A run would start.\n\
         rc=0\n\
         by {owner}\n"
    );
    assert_eq!(said, expected);
    assert_eq!(place.names(), ["content", "out/", "out/logs/", "small/"]);
}

#[test]
fn a_missing_root_is_made_and_removed_again() {
    let place = Place::new();
    let words = ["--json", "--min-free", "0", "--root", "root", "--receipt-root", "receipts"];
    let (code, said, _) = doctor(&place, &[], &words);
    assert_eq!(code, 0, "{said}");
    let mut expected = ALL_IS_WELL.to_vec();
    expected.insert(3, "receipt directory ok");
    expected.insert(6, "receipt ok");
    assert_eq!(verdicts(&said), expected);
    assert!(said.contains("\"detail\":\".: owner "), "{said}");
    assert!(said.contains("; a run makes root/"), "{said}");
    assert_eq!(place.names(), [""; 0]);
}

/// What the doctor and a run say of the same place with the same options and the same
/// faults of the system: the run's code, if it is refused.
fn both(place: &Place, under: &[&str], words: &[&str]) -> (Said, Option<String>) {
    let said = doctor(place, under, &[&["--json"], words].concat());
    // A directory without `--root` before it is that of a log.
    let (last, options) = words.split_last().unwrap();
    let log = format!("{last}/l");
    let place_of_log = match words.contains(&"--root") {
        true => &[*last][..],
        false => &["--log", &log],
    };
    let words = [&["run"], options, place_of_log].concat();
    let done = place.bare().under(under).words(&words).sh("exit 7").run();
    let code = done.stderr().split_once("error[").map(|(_, rest)| {
        done.exits(125);
        rest.split_once(']').unwrap().0.to_owned()
    });
    if code.is_none() {
        done.exits(7);
    }
    (said, code)
}

/// Both are refused, for the same reason.
fn both_refuse(place: &Place, under: &[&str], words: &[&str], code: &str) {
    let ((exit, report, said), of_run) = both(place, under, words);
    assert_eq!((exit, said.as_str()), (1, ""), "{report}");
    let first = verdicts(&report).into_iter().find(|check| check.contains(" refused "));
    let first = first.as_deref().and_then(|check| check.rsplit(' ').next().map(str::to_owned));
    assert_eq!((first.as_deref(), of_run.as_deref()), (Some(code), Some(code)), "{report}");
    assert!(report.starts_with("{\"wouldStart\":false,"), "{report}");
}

#[test]
fn the_doctor_refuses_the_directories_that_a_run_refuses() {
    let place = Place::new();
    for (name, mode) in [("open", 0o777), ("shared", 0o1777), ("closed", 0o700)] {
        std::fs::create_dir(place.at(name)).unwrap();
        place.set_mode(name, mode);
    }
    std::os::unix::fs::symlink("closed", place.at("link")).unwrap();
    std::fs::write(place.at("file"), "").unwrap();
    for (words, code) in [
        (&["open"][..], "directory-unsafe"),
        (&["missing"], "system"),
        (&["file"], "system"),
        (&["--root", "open"], "directory-unsafe"),
        (&["--root", "shared"], "directory-unsafe"),
        (&["--root", "link"], "directory-unsafe"),
        (&["--root", "file"], "directory-unsafe"),
        (&["--root", "missing/root"], "system"),
        (&["--min-free", "1T", "closed"], "capacity-unavailable"),
        (&["--receipt", "file", "--min-free", "0", "closed"], "log-sealed"),
        (&["--receipt", "open/r", "--min-free", "0", "closed"], "directory-unsafe"),
        (&["--receipt-root", "shared", "--min-free", "0", "closed"], "directory-unsafe"),
    ] {
        both_refuse(&place, &[], words, code);
    }
    assert_eq!(place.names(), ["closed/", "file", "link", "open/", "shared/"]);
    if !is_root() {
        place.set_mode("closed", 0o500);
        both_refuse(&place, &[], &["--min-free", "0", "closed"], "system");
    }
}

#[test]
fn a_sticky_directory_will_do_for_a_log() {
    let place = Place::new();
    std::fs::create_dir(place.at("shared")).unwrap();
    place.set_mode("shared", 0o1777);
    let ((exit, report, _), of_run) = both(&place, &[], &["--min-free", "0", "shared"]);
    assert_eq!((exit, of_run), (0, None), "{report}");
    assert_eq!(verdicts(&report), ALL_IS_WELL);
}

/// Words in front of a command that make these calls of its fail, always.
fn failing<'a>(calls: &'a str, faults: &[&'a str]) -> Vec<&'a str> {
    let mut under = vec!["strace", "-f", "-qq", "-b", "execve", "-o", "/dev/null", "-e", calls];
    under.extend(faults.iter().flat_map(|fault| ["-e", fault]));
    under
}

#[test]
fn the_doctor_finds_what_the_system_refuses_as_a_run_does() {
    if !needs("the_doctor_finds", "strace") {
        return;
    }
    let calls = "trace=mknodat,linkat,renameat2,fallocate,flock";
    for (option, faults, code) in [
        ("", &["inject=mknodat:error=EPERM"][..], "fifo-unsupported"),
        (
            "",
            &["inject=linkat:error=EPERM", "inject=renameat2:error=EINVAL"],
            "records-unsupported",
        ),
        ("--reserve", &["inject=fallocate:error=EOPNOTSUPP"], "capacity-unavailable"),
        ("", &["inject=fallocate:error=ENOSPC"], "capacity-unavailable"),
        ("", &["inject=flock:error=ENOLCK"], "system"),
    ] {
        let place = Place::new();
        let words: Vec<&str> =
            [option, "--min-free", "0", "."].into_iter().filter(|word| !word.is_empty()).collect();
        both_refuse(&place, &failing(calls, faults), &words, code);
        assert_eq!(place.names(), [""; 0], "{faults:?}");
    }
}

#[test]
fn what_a_run_would_start_without_is_a_warning() {
    if !needs("what_a_run_would_start_without", "strace") {
        return;
    }
    let place = Place::new();
    let under = failing("trace=fdatasync,fallocate", &["inject=fdatasync:error=EIO"]);
    let (exit, report, _) = doctor(&place, &under, &["--json", "--min-free", "0", "."]);
    assert_eq!(exit, 0, "{report}");
    let mut expected = ALL_IS_WELL;
    expected[6] = "sync warning";
    assert_eq!(verdicts(&report), expected);
    let under = failing("trace=fallocate", &["inject=fallocate:error=EOPNOTSUPP"]);
    let (exit, report, _) = doctor(&place, &under, &["--json", "--min-free", "0", "."]);
    assert_eq!(exit, 0, "{report}");
    let mut expected = ALL_IS_WELL;
    expected[7] = "reserve warning";
    assert_eq!(verdicts(&report), expected);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn what_there_is_no_space_for_is_not_allocated() {
    let place = Place::new();
    for option in ["--json", "--reserve"] {
        let words = ["--json", option, "--min-free", "1T", "."];
        let (exit, report, _) = doctor(&place, &[], &words);
        assert_eq!(exit, 1, "{report}");
        let mut expected = ALL_IS_WELL.to_vec();
        expected[1] = "space refused capacity-unavailable";
        expected[8] = "would start false";
        // A log that others write may need what is left.
        expected.remove(7);
        assert_eq!(verdicts(&report), expected, "{option}");
    }
}

#[test]
fn only_what_is_to_be_put_on_disk_is() {
    if !needs("only_what_is_to_be_put_on_disk", "strace") {
        return;
    }
    let place = Place::new();
    for (sync, fault, said) in [
        ("full", "fdatasync", "warning  there would be no fact: No space left on device"),
        ("full", "fsync", "warning  a power cut may take facts: No space left on device"),
        ("records", "fdatasync", "warning  of records only: a power cut may take logs"),
    ] {
        let fault = format!("inject={fault}:error=ENOSPC");
        let under = failing("trace=fdatasync,fsync", &[&fault]);
        let words = ["--min-free", "0", "--sync", sync, "."];
        let (exit, report, _) = doctor(&place, &under, &words);
        assert_eq!(exit, 0, "{report}");
        assert!(report.contains(&format!("\nsync               {said}\n")), "{report}");
    }
}

#[test]
fn the_variables_of_runs_are_heeded_and_the_words_win() {
    let place = Place::new();
    std::fs::create_dir(place.at("root")).unwrap();
    let with = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = Command::new(weir_binary());
        command.current_dir(place.path()).arg("doctor").args(words);
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let said = |output: &std::process::Output| String::from_utf8(output.stdout.clone()).unwrap();
    let variables = [("WEIR_ROOT", "root"), ("WEIR_MIN_FREE", "0"), ("WEIR_LOG", "ignored/l")];
    let output = with(&variables, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("; a run makes root/"), "{}", said(&output));
    let output = with(&variables, &["."]);
    assert!(said(&output).starts_with("directory          ok       .: owner "));
    let output = with(&variables, &["--min-free", "1T", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(place.names(), ["root/"]);
}

#[test]
fn words_that_make_no_sense_are_refused() {
    let place = Place::new();
    for (words, expected) in [
        (&[][..], "no directory given\nhint: weir doctor DIR, or weir doctor --root DIR\n"),
        (&["a", "b"], "a second directory b\nhint: one at a time\n"),
        (&["--tee", "a"], "unknown option --tee\nhint: weir doctor --help lists the options\n"),
        (
            &["--json=yes", "a"],
            "unexpected argument for option '--json': \"yes\"\n\
             hint: weir doctor --help lists the options\n",
        ),
        (
            &["a", "--quota"],
            "missing argument for option '--quota'\nhint: weir doctor --help lists the options\n",
        ),
        (
            &["--root", "r", "a"],
            "--root r: it excludes a directory of logs that are named by --log\n",
        ),
        (
            &["--quota", "many", "a"],
            "--quota many: it is not a size such as 65536, 64K, 64KiB or 66kB\n",
        ),
    ] {
        let (exit, report, said) = doctor(&place, &[], words);
        assert_eq!((exit, report.as_str()), (125, ""), "{words:?}");
        assert_eq!(said, format!("weir: error[usage]: {expected}"), "{words:?}");
    }
    let (exit, help, _) = doctor(&place, &[], &["--help"]);
    assert_eq!(exit, 0);
    assert!(help.starts_with("Usage: weir doctor [OPTIONS] DIR\n"), "{help}");
    assert!(Path::new(place.path()).read_dir().unwrap().next().is_none());
}
