//! Records get their names in the best way that the system has, found out at the start.

use std::process::Command;
use weir_tests::{Done, Place, Weir, needs};

/// A weir with a receipt, under strace, which notes these calls in `trace` and answers
/// some of them with faults.
fn traced(test: &str, place: &Place, calls: &str, faults: &[&str]) -> Option<Weir> {
    if !needs(test, "strace") {
        return None;
    }
    let calls = format!("trace={calls}");
    let mut under = vec!["strace", "-f", "-qq", "-o", "trace", "-b", "execve", "-e", &calls];
    for fault in faults {
        under.extend(["-e", fault]);
    }
    Some(place.weir().option("receipt", "r.json").sh("echo hi").under(&under))
}

const NAMING: &str = "openat,linkat,renameat2,fsync,fdatasync";

fn with_faults(test: &str, place: &Place, faults: &[&str]) -> Option<Done> {
    traced(test, place, NAMING, faults).map(Weir::run)
}

fn trace(place: &Place) -> String {
    String::from_utf8_lossy(&place.read("trace")).into_owned()
}

/// A fault for strace that takes away every unnamed file of a run with a receipt.
fn no_unnamed_files(test: &str) -> Option<String> {
    let place = Place::new();
    with_faults(test, &place, &[])?.exits(0);
    let unnamed_at: Vec<usize> = trace(&place)
        .lines()
        .filter(|line| line.contains("openat("))
        .zip(1..)
        .filter(|(line, _)| line.contains("O_TMPFILE"))
        .map(|(_, at)| at)
        .collect();
    let &[first, second] = unnamed_at.as_slice() else { panic!("{unnamed_at:?}") };
    // The named draft of the fact is an openat more before the receipt's.
    let (last, step) = (second + 1, second + 1 - first);
    Some(format!("inject=openat:error=EOPNOTSUPP:when={first}..{last}+{step}"))
}

fn published_all_the_same(place: &Place, done: &Done) {
    done.exits(0).says("");
    assert!(!place.fact().quota_reached);
    assert_eq!(place.receipt("r.json").counts.kept_bytes, 3);
    assert_eq!(place.names(), [".l.truncated.json", "l", "r.json", "trace"]);
    assert_eq!((place.mode(".l.truncated.json"), place.mode("r.json")), (0o600, 0o600));
}

#[test]
fn without_unnamed_files_a_draft_is_linked() {
    let test = "without_unnamed_files";
    let Some(fault) = no_unnamed_files(test) else { return };
    let place = Place::new();
    let Some(done) = with_faults(test, &place, &[&fault]) else { return };
    let trace = trace(&place);
    assert_eq!(trace.matches("(INJECTED)").count(), 2, "{trace}");
    assert!(
        trace
            .lines()
            .filter(|line| line.contains("(INJECTED)"))
            .all(|line| line.contains("O_TMPFILE"))
    );
    // Both have got a name of their own (which strace sees only as root).
    let drafts = trace.lines().filter(|line| line.contains("O_WRONLY|O_CREAT|O_EXCL|O_LARGEFILE"));
    assert_eq!(drafts.count(), 2, "{trace}");
    published_all_the_same(&place, &done);
}

#[test]
fn a_killed_starts_draft_is_replaced_and_anything_else_blocks() {
    let test = "a_killed_starts_draft_is_replaced";
    let Some(fault) = no_unnamed_files(test) else { return };
    let place = Place::new();
    // The leftovers are looked at with one openat more each.
    std::fs::write(place.at(".r.json.receipt.tmp"), "half a rec").unwrap();
    let done = with_faults(test, &place, &[&fault]).unwrap();
    published_all_the_same(&place, &done);

    let place = Place::new();
    std::fs::create_dir(place.at(".l.truncated.tmp")).unwrap();
    let done = with_faults(test, &place, &[&fault]).unwrap();
    done.refused("records-unsupported");
    assert!(
        done.stderr().contains("something has its draft's name, and it is a directory"),
        "{done:?}"
    );
    assert_eq!(place.names(), [".l.truncated.tmp/", "trace"]);
}

#[test]
fn two_starts_with_one_receipt_do_not_spoil_each_others_draft() {
    let test = "two_starts_with_one_receipt";
    let Some(fault) = no_unnamed_files(test) else { return };
    let place = Place::new();
    std::fs::write(place.at("go"), "").unwrap();
    let job = "touch started; while [ -e go ]; do sleep 0.01; done; echo hi";
    let first = traced(test, &place, NAMING, &[&fault]).unwrap().sh(job).spawn();
    weir_tests::eventually("the first one runs", || place.at("started").exists());
    let other = place.bare().option("log", "other").option("receipt", "r.json");
    let under =
        ["strace", "-f", "-qq", "-o", "trace2", "-b", "execve", "-e", "trace=openat", "-e", &fault];
    other.option("min-free", "0").under(&under).sh("true").run().refused("log-busy");
    std::fs::remove_file(place.at("go")).unwrap();
    first.wait().exits(0).says("");
    assert_eq!(place.receipt("r.json").counts.kept_bytes, 3);
    assert!(!place.at("other").exists());
}

#[test]
fn without_links_a_draft_is_renamed_without_replacing() {
    let test = "without_links";
    let place = Place::new();
    let Some(done) = with_faults(test, &place, &["inject=linkat:error=EPERM"]) else { return };
    let trace = trace(&place);
    assert!(trace.contains("INJECTED"));
    assert!(trace.contains("renameat2(") && trace.contains("RENAME_NOREPLACE"), "{trace}");
    published_all_the_same(&place, &done);
}

#[test]
fn where_neither_works_weir_refuses_at_the_start() {
    let test = "where_neither_works";
    let place = Place::new();
    let faults = ["inject=linkat:error=EPERM", "inject=renameat2:error=EINVAL"];
    let Some(done) = with_faults(test, &place, &faults) else { return };
    done.refused("records-unsupported");
    assert_eq!(place.names(), ["trace"]);
}

#[test]
fn syncs_come_in_the_promised_order() {
    let place = Place::new();
    let Some(done) = with_faults("syncs_come_in_order", &place, &[]) else { return };
    done.exits(0);
    // Log data; then for each record its content, its name, its link, its directory.
    let trace = trace(&place);
    let steps: Vec<&str> = trace
        .lines()
        .filter(|line| !line.contains("EEXIST"))
        .filter_map(|line| {
            ["fdatasync(", "fsync(", "linkat("].into_iter().find(|call| line.contains(call))
        })
        .collect();
    let record = ["fsync(", "linkat(", "fsync(", "fsync("];
    assert_eq!(steps, [&["fdatasync("][..], &record, &record].concat(), "{trace}");
}

#[test]
fn less_is_synced_when_less_is_asked_for() {
    for (sync, calls) in [("records", 6), ("none", 0)] {
        let place = Place::new();
        let every = "fsync,fdatasync,sync_file_range,syncfs,sync,msync";
        let Some(weir) = traced("less_is_synced", &place, every, &[]) else { return };
        weir.option("sync", sync).run().exits(0);
        let trace = trace(&place);
        let synced = trace.lines().filter(|line| line.contains("sync(")).count();
        assert_eq!(synced, calls, "{sync}: {trace}");
        assert!(!trace.contains("fdatasync("), "{sync}: {trace}");
    }
}

#[test]
fn a_log_that_cannot_be_synced_has_no_fact() {
    let place = Place::new();
    let Some(done) =
        with_faults("a_log_that_cannot_be_synced", &place, &["inject=fdatasync:error=EIO"])
    else {
        return;
    };
    done.exits(0);
    // EIO in glibc's words, and in musl's.
    let told = ["Input/output error", "I/O error"]
        .map(|reason| done.stderr().contains(&format!("it could not be put on disk: {reason}\n")));
    assert!(told.contains(&true), "{done:?}");
    assert_eq!(place.fact_of("l"), None);
    let receipt = String::from_utf8(place.read("r.json")).unwrap();
    assert!(receipt.contains("\"captureError\":\"EIO\""), "{receipt}");
}

#[test]
fn a_reader_never_sees_half_a_fact() {
    let place = Place::new();
    // A reader that looks all the time; what it sees is nothing or all of it.
    let script = "while :; do [ -e stop ] && last=1; cat .l*.truncated.json 2>/dev/null && echo; \
                  [ -n \"$last\" ] && break; done >seen";
    let mut reader =
        Command::new("sh").args(["-c", script]).current_dir(place.path()).spawn().unwrap();
    for n in 0..50 {
        let log = format!("l{n}");
        let weir = place.bare().option("log", &log).option("min-free", "0").option("sync", "none");
        weir.sh("echo hi").run().exits(0);
    }
    std::fs::write(place.at("stop"), "").unwrap();
    reader.wait().unwrap();
    let seen = String::from_utf8(place.read("seen")).unwrap().replace("}{", "}\n{");
    let facts = seen.lines().filter(|line| !line.is_empty());
    let whole = |fact: &&str| weir_common::Fact::decode(fact.as_bytes()).is_ok();
    let (facts, torn): (Vec<&str>, Vec<&str>) = facts.partition(whole);
    assert_eq!(torn, [""; 0]);
    assert!(facts.len() >= 50, "{} facts seen", facts.len());
}

#[test]
fn a_call_that_fails_before_the_start_is_a_refusal_that_leaves_nothing() {
    let test = "a_call_that_fails_before_the_start";
    // What is made, opened and looked at before the job. Removing is left out: a
    // removal that fails leaves something, of course.
    for call in [
        "openat",
        "fcntl",
        "fstat",
        "newfstatat",
        "fsync",
        "fchmod",
        "mkdirat",
        "mknodat",
        "flock",
        "fallocate",
        "pipe2",
        "signalfd4",
    ] {
        for error in ["EIO", "EMFILE"] {
            let mut refused = 0;
            for n in 1.. {
                let place = Place::new();
                let fault = format!("inject={call}:error={error}:when={n}");
                let calls = format!("trace={call}");
                if !needs(test, "strace") {
                    return;
                }
                let under = ["strace", "-qq", "-o", "trace", "-e", &calls, "-e", &fault];
                let weir = place.bare().option("root", "root").option("receipt-root", "receipts");
                let done = weir.option("min-free", "0").under(&under).sh("exit 3").run();
                if !trace(&place).contains("(INJECTED)") {
                    done.exits(3);
                    break;
                }
                if done.stderr().contains("error[") {
                    assert_eq!(place.names(), ["trace"], "{fault}: {done:?}");
                    done.exits(125);
                    refused += 1;
                } else {
                    done.exits(3);
                }
            }
            assert!(refused > 0, "{call} {error}");
        }
    }
}
