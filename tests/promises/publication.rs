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
    let place = Place::new();
    let Some(done) = with_faults(test, &place, &[]) else { return };
    done.exits(0);
    let unnamed_at: Vec<usize> = trace(&place)
        .lines()
        .filter(|line| line.contains("openat("))
        .zip(1..)
        .filter(|(line, _)| line.contains("O_TMPFILE"))
        .map(|(_, at)| at)
        .collect();
    let &[first, second] = unnamed_at.as_slice() else { panic!("{unnamed_at:?}") };
    // The named draft of the fact is an openat more before the receipt's.
    let fault = format!(
        "inject=openat:error=EOPNOTSUPP:when={first}..{0}+{1}",
        second + 1,
        second + 1 - first
    );
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
    for draft in [".l.truncated.tmp", ".r.json.tmp"] {
        assert!(trace.contains(&format!("\"{draft}\", O_WRONLY|O_CREAT|O_EXCL")), "{trace}");
    }
    published_all_the_same(&place, &done);
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
    // Log data; then for each record its content, its name, its directory.
    let trace = trace(&place);
    let steps: Vec<&str> = trace
        .lines()
        .filter(|line| !line.contains("\".\""))
        .filter_map(|line| {
            ["fdatasync(", "fsync(", "linkat("].into_iter().find(|call| line.contains(call))
        })
        .collect();
    let record = ["fsync(", "linkat(", "fsync("];
    assert_eq!(steps, [&["fdatasync("][..], &record, &record].concat(), "{trace}");
}

#[test]
fn less_is_synced_when_less_is_asked_for() {
    for (sync, calls) in [("records", 4), ("none", 0)] {
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
    assert!(done.stderr().contains("it could not be put on disk: Input/output error"), "{done:?}");
    assert_eq!(place.fact_of("l"), None);
    let receipt = String::from_utf8(place.read("r.json")).unwrap();
    assert!(receipt.contains("\"captureError\":\"EIO\""), "{receipt}");
}

#[test]
fn a_reader_never_sees_half_a_fact() {
    let place = Place::new();
    // A reader that looks all the time; what it sees is nothing or all of it.
    let script = "while [ ! -e stop ]; do cat .l*.truncated.json 2>/dev/null && echo; done >seen";
    let mut reader =
        Command::new("sh").args(["-c", script]).current_dir(place.path()).spawn().unwrap();
    for n in 0..50 {
        let log = format!("l{n}");
        let weir = place.bare().option("log", &log).option("min-free", "0").option("sync", "none");
        weir.sh("echo hi").run().exits(0);
    }
    std::fs::write(place.at("stop"), "").unwrap();
    reader.wait().unwrap();
    let seen = String::from_utf8(place.read("seen")).unwrap();
    let facts = seen.replace("}{", "}\n{");
    for fact in facts.lines().filter(|line| !line.is_empty()) {
        assert!(weir_common::Fact::decode(fact.as_bytes()).is_ok(), "{fact}");
    }
}
