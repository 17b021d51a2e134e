//! The QingLong 3 protocol: a client of its own, in Node, checks every line of it; here is
//! what an ordinary user's client cannot bring about.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use weir_tests::{Place, Running, Weir, eventually, is_root, needs, needs_namespaces, weir_binary};

/// Nobody in particular.
const ORDINARY: &str = "65534";
const TOKEN: &str = "secret-0123456789_0123456789-secret";

#[test]
fn a_client_of_its_own_finds_every_line_of_the_protocol_kept() {
    let test = "a_client_of_its_own";
    if !needs(test, "node") {
        return;
    }
    let place = Place::new();
    place.set_mode(".", 0o755);
    let files = [
        ("client.mjs", include_str!("../conformance/client.mjs")),
        ("ql3.mjs", include_str!("../conformance/ql3.mjs")),
    ];
    for (name, content) in files {
        std::fs::write(place.at(name), content).unwrap();
        place.set_mode(name, 0o644);
    }
    std::fs::copy(weir_binary(), place.at("weir")).unwrap();
    place.set_mode("weir", 0o755);
    std::fs::create_dir(place.at("scratch")).unwrap();
    place.set_mode("scratch", 0o1777);

    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", "node"]);
            command
        }
        false => Command::new("node"),
    };
    command.args(["--test-reporter=tap", "ql3.mjs"]).current_dir(place.path());
    command.env("WEIR_BIN", place.at("weir")).env("TMPDIR", place.at("scratch"));
    command.env("HOME", place.at("scratch")).stdin(Stdio::null());
    let output = command.output().unwrap();
    let tap = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |what: &str| {
        let line = tap.lines().find_map(|line| line.strip_prefix(&format!("# {what} ")));
        line.and_then(|count| count.parse::<u32>().ok())
    };
    // From each `not ok` on to the next test.
    let failed = tap.split("\n# Subtest: ").filter(|told| told.contains("\nnot ok "));
    let failed: Vec<&str> = failed.collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stderr}", failed.join("\n"));
    assert_eq!((count("fail"), count("skipped"), count("todo")), (Some(0), Some(0), Some(0)));
    assert!(count("pass").unwrap() >= 390, "{:?} passed", count("pass"));
    eprintln!("{} checks of the protocol passed", count("pass").unwrap());
}

/// A client whose directories are here, with a quota of 64 KiB and the log `l`.
struct Client<'p> {
    place: &'p Place,
    under: Vec<&'p str>,
    output: Option<Stdio>,
    error: Option<Stdio>,
}

fn client(place: &Place) -> Client<'_> {
    for name in ["outputs", "receipts"] {
        std::fs::create_dir_all(place.at(name)).unwrap();
    }
    let log = File::options().append(true).create(true).open(place.at("outputs/l")).unwrap();
    log.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
    let error = Some(log.try_clone().unwrap().into());
    Client { place, under: Vec::new(), output: Some(log.into()), error }
}

impl<'p> Client<'p> {
    fn under(mut self, words: &[&'p str]) -> Client<'p> {
        self.under = words.to_vec();
        self
    }

    fn output(self, output: impl Into<Stdio>) -> Client<'p> {
        Client { output: Some(output.into()), ..self }
    }

    /// Standard error is the test's, and not the log.
    fn heard(self) -> Client<'p> {
        Client { error: None, ..self }
    }

    fn weir(self, job: &[&str]) -> Weir {
        let at = |name: &str| self.place.at(name);
        let mut weir = self.place.bare().words(&[&["ql3", "argv"], job].concat());
        weir = weir.under(&self.under).env("QL3_OUTPUT_QUOTA_FIFO", at("outputs/fifo"));
        for (name, value) in [
            ("RECEIPT_RUN_ID", "run-1"),
            ("RECEIPT_ATTEMPT_ID", "attempt-1"),
            ("RECEIPT_CALLBACK_SEQUENCE", "7"),
            ("RECEIPT_CALLBACK_TOKEN", TOKEN),
            ("RECEIPT_STARTED_AT_MS", "5"),
            ("OUTPUT_QUOTA_REMAINING_BYTES", "65536"),
            ("OUTPUT_MAXIMUM_BYTES", "65536"),
            ("OUTPUT_ARTIFACT_ID", "local-0123456789abcdef0123456789abcd"),
        ] {
            weir = weir.env(&format!("QL3_{name}"), value);
        }
        for (name, file) in [
            ("RECEIPT_TARGET", "receipts/receipt"),
            ("RECEIPT_TEMPORARY", "receipts/receipt.tmp"),
            ("OUTPUT_TRUNCATION_TARGET", "outputs/fact"),
            ("OUTPUT_TRUNCATION_TEMPORARY", "outputs/fact.tmp"),
        ] {
            weir = weir.env(&format!("QL3_{name}"), at(file));
        }
        if let Some(output) = self.output {
            weir = weir.stdout(output);
        }
        if let Some(error) = self.error {
            weir = weir.stderr(error);
        }
        weir
    }

    fn sh(self, script: &str) -> Weir {
        self.weir(&["sh", "-c", script])
    }
}

/// The fact, but for its time, and whether it is there.
fn fact(place: &Place) -> Option<String> {
    let fact = std::fs::read_to_string(place.at("outputs/fact")).ok()?;
    let (fact, at_ms) = fact.split_once(",\"observedAtMs\":").unwrap();
    assert!(at_ms.strip_suffix('}').unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
    Some(fact.to_owned())
}

fn expected_fact(quota_reached: bool) -> Option<String> {
    Some(format!(
        "{{\"schemaVersion\":1,\"runId\":\"run-1\",\"attemptId\":\"attempt-1\",\"logArtifactId\":\
         \"local-0123456789abcdef0123456789abcd\",\"maximumBytes\":65536,\
         \"quotaReached\":{quota_reached}"
    ))
}

/// The exit code that the receipt tells, if there is one.
fn receipt(place: &Place) -> Option<u8> {
    let receipt = std::fs::read_to_string(place.at("receipts/receipt")).ok()?;
    let before = format!(
        "{{\"schemaVersion\":1,\"runId\":\"run-1\",\"attemptId\":\"attempt-1\",\
         \"callbackSequence\":7,\"token\":\"{TOKEN}\",\"startedAtMs\":5,\"finishedAtMs\":"
    );
    let (at_ms, code) =
        receipt.strip_prefix(&before).unwrap().split_once(",\"exitCode\":").unwrap();
    assert!(at_ms.parse::<u64>().unwrap() > 1_700_000_000_000);
    Some(code.strip_suffix('}').unwrap().parse().unwrap())
}

fn names(place: &Place) -> Vec<String> {
    let mut names = place.names();
    names.retain(|name| name.starts_with("outputs/") || name.starts_with("receipts/"));
    names
}

const ALL: [&str; 5] = ["outputs/", "outputs/fact", "outputs/l", "receipts/", "receipts/receipt"];

/// Calls that name records, traced, of which some fail.
fn traced(place: &Place, faults: &[&str]) -> String {
    let calls = "trace=openat,linkat,renameat2";
    let mut under = vec!["strace", "-f", "-qq", "-o", "trace", "-b", "execve", "-e", calls];
    for fault in faults {
        under.extend(["-e", fault]);
    }
    client(place).under(&under).sh("echo hi; exit 3").run().exits(3);
    String::from_utf8_lossy(&place.read("trace")).into_owned()
}

/// The fault for strace that takes away the unnamed files, which are the first two and in
/// a row: those of the fact and the receipt.
fn no_unnamed_files() -> String {
    let place = Place::new();
    let trace = traced(&place, &[]);
    let opened = trace.lines().filter(|line| line.contains("openat(")).zip(1..);
    let unnamed: Vec<i32> =
        opened.filter(|(line, _)| line.contains("O_TMPFILE")).map(|(_, at)| at).collect();
    let &[first, second] = unnamed.as_slice() else { panic!("{unnamed:?}") };
    // The named draft of the fact is an openat more before the receipt's.
    let (last, step) = (second + 1, second + 1 - first);
    format!("inject=openat:error=EOPNOTSUPP:when={first}..{last}+{step}")
}

#[test]
fn without_unnamed_files_a_record_is_moved_and_never_linked() {
    if !needs("without_unnamed_files_a_record_is_moved", "strace") {
        return;
    }
    let place = Place::new();
    let trace = traced(&place, &[&no_unnamed_files()]);
    assert_eq!(trace.matches("(INJECTED)").count(), 2, "{trace}");
    assert!(!trace.contains("linkat("), "{trace}");
    // There and back to see that it works, and then to its name, for each of the two.
    assert_eq!(trace.matches("RENAME_NOREPLACE").count(), 6, "{trace}");
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
    assert_eq!(place.read("outputs/l"), b"hi\n");
    assert_eq!(names(&place), ALL);
}

#[test]
fn a_full_disk_costs_the_fact_and_nothing_else() {
    let test = "ql3_a_full_disk";
    let Some(unshare) = needs_namespaces(test) else { return };
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    let job =
        "head -c 50000 /dev/zero >outputs/other; head -c 60000 /dev/zero; echo rc=$? >rc; exit 4";
    let mount = "mount -t tmpfs -o size=80k t outputs && exec >>outputs/l 2>&1 && \"$@\"; code=$?; \
                 cp -a outputs/. out && exit $code";
    std::fs::create_dir(place.at("out")).unwrap();
    let under = [&unshare[..], &["sh", "-c", mount, "sh"]].concat();
    client(&place).under(&under).sh(job).run().exits(4);
    assert_eq!(place.read("rc"), b"rc=0\n");
    let log = place.read("out/l");
    assert!(log.len() > 1000 && log.len() < 60_000 && log.iter().all(|byte| *byte == 0));
    assert_eq!(receipt(&place), Some(4));
    let mut left = place.names();
    left.retain(|name| name.starts_with("out/"));
    assert_eq!(left, ["out/", "out/l", "out/other"]);
}

#[test]
fn a_record_for_which_there_is_no_room_at_first_is_tried_again() {
    let test = "a_record_for_which_there_is_no_room_at_first";
    let Some(unshare) = needs_namespaces(test) else { return };
    let place = Place::new();
    std::fs::create_dir(place.at("receipts")).unwrap();
    std::fs::create_dir(place.at("out")).unwrap();
    let mount = "mount -t tmpfs -o size=64k t receipts; head -c 100000 /dev/zero >receipts/full; \
                 \"$@\"; code=$?; cp -a receipts/. out && exit $code";
    let under = [&unshare[..], &["sh", "-c", mount, "sh"]].concat();
    for (job, published) in [("rm receipts/full; exit 4", true), ("exit 4", false)] {
        let done = client(&place).heard().under(&under).sh(job).run();
        done.exits(4);
        // What stands on a disk of its own is told, and the log is not.
        assert!(done.stderr().contains("cannot reserve receipt"), "{done:?}");
        assert_eq!(place.at("out/receipt").exists(), published, "{done:?}");
        assert_eq!(fact(&place), expected_fact(false));
        assert_eq!(place.read("outputs/l"), b"");
        for file in ["out/receipt", "out/full", "outputs/fact"] {
            let _ = std::fs::remove_file(place.at(file));
        }
    }
}

#[test]
fn two_on_one_log_never_write_at_once() {
    let place = Place::new();
    let first = client(&place).sh("until [ -e go ]; do sleep 0.01; done; echo first");
    let first = first.spawn();
    eventually("the first runs", || place.at("outputs/fifo").exists());
    let done = client(&place).heard().sh("echo second; touch ran").run();
    done.exits(125);
    let said = "weir: error[log-busy]: cannot lock standard output: another process has it\n";
    done.says(said);
    // Nor is that said in a log.
    client(&place).sh("echo second; touch ran").run().exits(125);
    File::create(place.at("go")).unwrap();
    first.wait().exits(0);
    assert_eq!(place.read("outputs/l"), b"first\n");
    assert_eq!(names(&place), ALL);
    assert!(!place.at("ran").exists());
}

#[test]
fn what_another_start_has_written_before_the_lock_counts() {
    let test = "what_another_start_has_written_before_the_lock";
    if !needs(test, "strace") {
        return;
    }
    let place = Place::new();
    let late = "inject=flock:delay_enter=2000000:when=1";
    let under = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=flock", "-e", late];
    let late = client(&place).under(&under).sh("echo late; exit 7").spawn();
    let mut looks = 0;
    eventually("it comes to its lock", || {
        looks = if is_stopped_by_tracer(&late) { looks + 1 } else { 0 };
        looks == 50
    });
    client(&place).sh("head -c 65536 /dev/zero").run().exits(0);
    late.wait().exits(7);
    assert_eq!(place.read("outputs/l").len(), 65_536);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(0)));
}

/// Whether a weir that strace runs is stopped at this moment: for long only where one of
/// its calls is delayed.
fn is_stopped_by_tracer(strace: &Running) -> bool {
    let children = format!("/proc/{0}/task/{0}/children", strace.pid());
    let weir = std::fs::read_to_string(children).unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{}/status", weir.trim()));
    status.is_ok_and(|status| status.contains("(tracing stop)"))
}

#[test]
fn without_proc_the_log_is_locked_all_the_same() {
    let test = "ql3_without_proc";
    let Some(unshare) = needs_namespaces(test) else { return };
    let place = Place::new();
    let without = "mount -t tmpfs t /proc; exec \"$@\"";
    let under = [&unshare[..], &["sh", "-c", without, "sh"]].concat();
    // Who else holds the log is asked with another description of it, in a file system that
    // both see.
    let script = "exec 1>&-; flock -n outputs/l true; echo locked=$? >locked; exit 4";
    client(&place).under(&under).sh(script).run().exits(4);
    assert_eq!(place.read("locked"), b"locked=1\n");
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(4)));
}

#[test]
fn a_log_that_is_longer_than_the_quota_is_refused_and_stays() {
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    std::fs::write(place.at("outputs/l"), vec![b'x'; 65_537]).unwrap();
    let done = client(&place).heard().sh("touch ran").run();
    done.exits(125).says(
        "weir: error[log-over-quota]: cannot continue log standard output: it has 65537 bytes \
         already, the quota is 65536\n",
    );
    client(&place).sh("touch ran").run().exits(125);
    assert_eq!(place.read("outputs/l").len(), 65_537);
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    assert!(!place.at("ran").exists());
}

#[test]
fn what_remains_is_never_more_than_the_log_has_room_for() {
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    std::fs::write(place.at("outputs/l"), vec![b'x'; 65_000]).unwrap();
    // The client's number says 65536 still.
    client(&place).sh("head -c 1000 /dev/zero").run().exits(0);
    assert_eq!(place.read("outputs/l").len(), 65_536);
    assert_eq!(fact(&place), expected_fact(true));
    // Nor more than the client says.
    for (job, quota_reached) in [("head -c 100 /dev/zero", false), ("head -c 101 /dev/zero", true)]
    {
        let place = Place::new();
        let weir = client(&place).sh(job).env("QL3_OUTPUT_QUOTA_REMAINING_BYTES", "100");
        weir.run().exits(0);
        assert_eq!(place.read("outputs/l").len(), 100);
        assert_eq!(fact(&place), expected_fact(quota_reached));
    }
}

#[test]
fn a_client_that_still_has_the_log_open_is_not_in_the_way_of_its_next_try() {
    let place = Place::new();
    let first = client(&place);
    let log = File::options().append(true).open(place.at("outputs/l")).unwrap();
    let first = first.output(log.try_clone().unwrap()).sh("touch ran; exec sleep 1000").spawn();
    eventually("the first runs", || place.at("ran").exists());
    let children = format!("/proc/{0}/task/{0}/children", first.pid());
    let job = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    first.signal("KILL");
    first.wait().dies_by(9);
    weir_tests::send("KILL", job);
    client(&place).sh("echo hi").run().exits(0);
    assert_eq!(place.read("outputs/l"), b"hi\n");
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(0)));
    drop(log);
}

#[test]
fn on_a_terminal_it_says_why_it_refuses() {
    let test = "on_a_terminal_it_says_why_it_refuses";
    if !needs(test, "script") {
        return;
    }
    let mut command = Command::new("script");
    command.arg("-qec").arg(format!("'{}' ql3 shell", weir_binary().display())).arg("/dev/null");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "weir: error[usage]: QL3_RECEIPT_RUN_ID: it is not set\r\n";
    assert_eq!((said.as_str(), output.status.code()), (expected, Some(125)));
}

#[test]
fn nothing_is_proven_of_a_log_that_is_gone_or_was_changed_or_is_no_file() {
    for script in ["rm outputs/l", "echo more >>outputs/l", ": >outputs/l"] {
        let place = Place::new();
        let drained = "until [ -s outputs/l ]; do sleep 0.01; done";
        let script = format!("echo hi; {drained}; {script}; exit 3");
        client(&place).sh(&script).run().exits(3);
        assert_eq!((fact(&place), receipt(&place)), (None, Some(3)), "{script}");
    }
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    client(&place).output(writer).heard().sh("echo hi; exit 3").run().exits(3).says("");
    assert_eq!(std::io::read_to_string(reader).unwrap(), "hi\n");
    assert_eq!((fact(&place), receipt(&place)), (None, Some(3)));
    let place = Place::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let script = "head -c 1000000 /dev/zero && exit 3";
    client(&place).output(full).heard().sh(script).run().exits(3).says("");
    assert_eq!((fact(&place), receipt(&place)), (None, Some(3)));
}

#[test]
fn a_closed_standard_output_is_refused() {
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    let done = client(&place).under(&under).heard().sh("touch ran").run();
    done.exits(125);
    done.says("weir: error[log-unsafe]: cannot use standard output as log: it is closed\n");
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    assert!(!place.at("ran").exists());
}

#[test]
fn without_a_quota_the_job_has_the_clients_descriptors_closed_ones_too() {
    for (closed, left) in [(">&-", "0 2"), ("2>&-", "0 1"), ("<&- >&- 2>&-", "")] {
        let place = Place::new();
        let close = format!("exec \"$@\" {closed}");
        let under = ["sh", "-c", &close, "sh"];
        let job = "for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && set -- \"$@\" $n; done; \
                   echo \"$@\" >open; exit 3";
        let weir = client(&place).under(&under).sh(job).env("QL3_OUTPUT_QUOTA_FIFO", "");
        weir.run().exits(3);
        assert_eq!(place.read("open"), format!("{left}\n").as_bytes(), "{closed}");
        assert_eq!(receipt(&place), Some(3), "{closed}");
    }
}

#[test]
fn bytes_that_a_log_holds_are_never_written_over() {
    let place = Place::new();
    std::fs::create_dir(place.at("outputs")).unwrap();
    std::fs::write(place.at("outputs/l"), "before").unwrap();
    let log = || File::options().write(true).open(place.at("outputs/l")).unwrap();
    let done = client(&place).output(log()).heard().sh("touch ran").run();
    done.exits(125).says(
        "weir: error[log-unsafe]: cannot use standard output as log: it is not in append mode, \
         and what it holds would be overwritten\n",
    );
    assert_eq!(place.read("outputs/l"), b"before");
    assert!(!place.at("ran").exists());
}

#[test]
fn nothing_is_said_in_a_file_that_may_be_the_log() {
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    client(&place).under(&under).sh("touch ran").run().exits(125);
    assert_eq!(place.read("outputs/l"), b"");
    let (reader, writer) = std::io::pipe().unwrap();
    let both = client(&place).output(writer.try_clone().unwrap());
    let both = Client { error: Some(writer.into()), ..both };
    both.sh("true").env("QL3_OUTPUT_MAXIMUM_BYTES", "1").run().exits(125);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

#[test]
fn a_small_limit_of_files_leaves_the_records_what_they_need() {
    let place = Place::new();
    // In blocks of 512 bytes; with room for the records' longest, it would not do.
    let under = ["sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"];
    let job = "head -c 100 /dev/zero; exit 3";
    client(&place).under(&under).sh(job).run().exits(3);
    assert_eq!(place.read("outputs/l").len(), 100);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
}

#[test]
fn a_refusal_says_what_is_wrong_but_never_the_token() {
    let place = Place::new();
    for (name, value, says) in [
        (
            "RECEIPT_CALLBACK_TOKEN",
            "short.secret",
            ": it is not a token: 32 to 128 of A-Z a-z 0-9 _ -",
        ),
        (
            "RECEIPT_CALLBACK_SEQUENCE",
            "07",
            "=07: it is not a whole number from 1, without a zero in front",
        ),
        ("OUTPUT_QUOTA_REMAINING_BYTES", "65537", "=65537: it is not a whole number up to 65536"),
        ("RECEIPT_TARGET", "r", "=r: it is not an absolute path"),
        ("RECEIPT_TARGET", "/r/.", "=/r/.: it does not end in a file name"),
        ("RECEIPT_TEMPORARY", "/r", "=/r: it is not in the directory of QL3_RECEIPT_TARGET"),
        ("OUTPUT_QUOTA_FIFO", "/f", "=/f: it is not beside QL3_OUTPUT_TRUNCATION_TARGET"),
        (
            "RECEIPT_RUN_ID",
            "",
            "=: \"\" is not a run id: a letter or digit, then up to 127 of A-Z a-z 0-9 . _ : -",
        ),
    ] {
        let name = format!("QL3_{name}");
        let done = client(&place).heard().sh("touch ran").env(&name, value).run();
        done.exits(125).says(&format!("weir: error[usage]: {name}{says}\n"));
    }
    let done = client(&place).heard().sh("true").env("QL3_OUTPUT_MAXIMUM_BYTES", "65535").run();
    done.exits(125).says(
        "weir: error[quota-out-of-range]: QL3_OUTPUT_MAXIMUM_BYTES=65535: 65535 bytes are not \
         between 64 KiB (65536) and 1 GiB (1073741824)\n",
    );
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    assert!(!place.at("ran").exists());
}

#[test]
fn names_of_which_one_is_in_the_others_way_are_refused() {
    for (name, clash) in [
        ("RECEIPT_TEMPORARY", "receipts/receipt"),
        ("OUTPUT_TRUNCATION_TEMPORARY", "outputs/fact"),
        ("OUTPUT_QUOTA_FIFO", "outputs/fact"),
        ("OUTPUT_QUOTA_FIFO", "outputs/fact.tmp"),
        ("OUTPUT_QUOTA_FIFO", "outputs/fact.tmp~"),
    ] {
        let place = Place::new();
        let name = format!("QL3_{name}");
        let weir = client(&place).heard().sh("touch ran").env(&name, place.at(clash));
        let done = weir.run();
        done.refused("usage");
        assert!(done.stderr().ends_with("it is the name of another file of this attempt\n"));
        assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    }
    // By another path to the same directory.
    let place = Place::new();
    std::os::unix::fs::symlink("outputs", place.at("same")).unwrap();
    let weir = client(&place).heard().sh("touch ran");
    let weir = weir.env("QL3_RECEIPT_TARGET", place.at("same/fact"));
    let done = weir.env("QL3_RECEIPT_TEMPORARY", place.at("same/other")).run();
    done.refused("usage");
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
}

/// A job that has ended and left somebody behind who holds the output.
fn held(place: &Place, holder: &str) -> Running {
    let script = format!("({holder}) & echo $! >holder.new; mv holder.new holder; exit 3");
    let running = client(place).sh(&script).spawn();
    eventually("the job has ended", || {
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        place.at("holder").exists() && std::fs::read_to_string(children).unwrap().is_empty()
    });
    running
}

#[test]
fn a_term_after_the_jobs_end_leaves_holders_their_time() {
    // They have got it too, and clean up: to close their output then would be to kill them.
    let place = Place::new();
    let cleans_up = "trap 'touch heard' TERM; until [ -e go ]; do sleep 0.01; done; echo late";
    let mut running = held(&place, cleans_up);
    let holder = String::from_utf8(place.read("holder")).unwrap().trim().parse().unwrap();
    running.signal("TERM");
    weir_tests::send("TERM", holder);
    eventually("the holder has got it", || place.at("heard").exists());
    // weir has read its own by now: only what waits for it could be read later.
    eventually("weir has read its own", || pending_signals(running.pid()) == 0);
    assert!(running.runs());
    File::create(place.at("go")).unwrap();
    running.wait().exits(3);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
    assert_eq!(place.read("outputs/l"), b"late\n");
}

/// The signals that wait to be taken by a process.
fn pending_signals(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t")).unwrap();
    u64::from_str_radix(pending, 16).unwrap()
}

#[test]
fn what_ends_of_itself_after_the_jobs_end_is_waited_for() {
    let place = Place::new();
    let running = held(&place, "until [ -e go ]; do sleep 0.01; done; echo late");
    assert_eq!(names(&place), ["outputs/", "outputs/fifo", "outputs/l", "receipts/"]);
    File::create(place.at("go")).unwrap();
    running.wait().exits(3);
    assert_eq!((fact(&place), receipt(&place)), (expected_fact(false), Some(3)));
    assert_eq!(place.read("outputs/l"), b"late\n");
}

#[test]
fn weir_keeps_nothing_of_the_clients() {
    // weir lets nobody else look.
    if !weir_tests::needs_root("weir_keeps_nothing_of_the_clients") {
        return;
    }
    let place = Place::new();
    let script = "until [ -e go ]; do sleep 0.01; done";
    for quota in ["outputs/fifo", ""] {
        let fifo =
            if quota.is_empty() { String::new() } else { place.at(quota).display().to_string() };
        let weir = client(&place).sh(script).env("QL3_OUTPUT_QUOTA_FIFO", &fifo);
        let running = weir.spawn();
        let process = format!("/proc/{}", running.pid());
        let children = format!("{process}/task/{}/children", running.pid());
        eventually("the job runs", || {
            let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
            let job = read(&children);
            read(&format!("/proc/{}/cmdline", job.trim())).starts_with("sh\0")
                && std::fs::read_link(format!("{process}/cwd")).unwrap() == Path::new("/")
        });
        // Its own: the directories and drafts, the log twice (kept bytes and lock), the
        // FIFO's reader, signals and the two flags of the drainer's thread.
        let expected: &[&str] = match quota {
            "" => &[
                "/dev/null",
                "/dev/null",
                "/dev/null",
                "HERE/receipts",
                "HERE/receipts/",
                "anon_inode",
            ],
            _ => &[
                "/dev/null",
                "/dev/null",
                "/dev/null",
                "HERE/outputs",
                "HERE/outputs/",
                "HERE/outputs/fifo",
                "HERE/outputs/l",
                "HERE/outputs/l",
                "HERE/receipts",
                "HERE/receipts/",
                "anon_inode",
                "anon_inode",
                "anon_inode",
            ],
        };
        // The flags are made when the job runs already.
        let held = || weir_tests::held_by(&place, Path::new(&process));
        eventually("it holds what it needs", || held().len() >= expected.len());
        assert_eq!(held(), expected);
        File::create(place.at("go")).unwrap();
        running.wait().exits(0);
        std::fs::remove_file(place.at("go")).unwrap();
        std::fs::remove_file(place.at("receipts/receipt")).unwrap();
    }
}
