//! `--reserve`: the quota's room is the log's before the job starts, and only as long as
//! the job may need it.

use std::os::unix::fs::MetadataExt;
use weir_common::{Capture, Errno, Fact};
use weir_tests::{Place, noise, on_small_disk};

/// The sectors that a file has on a tmpfs, for a script.
const SECTORS: &str = "sectors() { stat -c %b small/l; }\n";

/// Fills the disk, writes more than the quota, and makes room for everything else again.
const FILLING_JOB: &str = "cat /dev/zero >small/filler 2>/dev/null; head -c 70000 content; exit 3";

fn run_filling_job(test: &str, option: &str) -> Option<(Place, String)> {
    let options = format!("--log small/l --quota 64K --min-free 0 --receipt small/r.json {option}");
    let script = format!("\"$weir\" run --quiet {options} -- sh -c '{FILLING_JOB}'; echo rc=$?");
    on_small_disk(test, "300k", &script)
}

#[test]
fn a_disk_filled_by_others_cannot_touch_what_is_reserved() {
    let Some((place, said)) = run_filling_job("a_disk_filled_by_others", "--reserve") else {
        return;
    };
    assert_eq!(said, "rc=3\n");
    assert!(place.read("out/l") == noise(65_536));
    let fact = Fact::read(&place.at("out/.l.truncated.json")).unwrap().expect("a fact");
    assert!(fact.quota_reached);
    assert_eq!(place.receipt("out/r.json").capture, Capture::Truncated);
    // Without it the same disk keeps nothing.
    let (place, said) = run_filling_job("a_disk_filled_by_others", "").unwrap();
    assert_eq!(said, "rc=3\n");
    assert_eq!(place.read("out/l"), b"");
    assert_eq!(place.receipt("out/r.json").capture, Capture::Failed(Some(Errno::ENOSPC)));
}

#[test]
fn what_the_job_did_not_need_is_given_back_at_the_end() {
    let script = format!(
        "{SECTORS}printf 12345 >small/l
        \"$weir\" run --log small/l --quota 64K --min-free 0 --reserve -- \
            sh -c 'stat -c \"%b %s\" small/l >during; head -c 5000 content'
        echo rc=$? during=$(cat during) after=$(sectors)"
    );
    let Some((place, said)) = on_small_disk("what_the_job_did_not_need", "300k", &script) else {
        return;
    };
    // 64 KiB are 128 sectors; 5,005 bytes are two pages.
    assert_eq!(said, "rc=0 during=128 5 after=16\n");
    assert!(place.read("out/l") == [b"12345", &noise(5000)[..]].concat());
    let fact = Fact::read(&place.at("out/.l.truncated.json")).unwrap().expect("a fact");
    assert!(!fact.quota_reached);
}

#[test]
fn the_background_drainer_gives_it_back_at_the_true_end() {
    let script = format!(
        "{SECTORS}\"$weir\" run --quiet --log small/l --quota 64K --min-free 0 --reserve --grace 0 -- \
            sh -c '(until [ -e go ]; do sleep 0.01; done; echo end) & echo begin'
        echo rc=$? left=$(sectors)
        touch go
        until [ -e small/.l.truncated.json ]; do sleep 0.01; done
        echo after=$(sectors)"
    );
    let Some((place, said)) = on_small_disk("the_background_drainer", "300k", &script) else {
        return;
    };
    assert_eq!(said, "rc=0 left=128\nafter=8\n");
    assert_eq!(place.read("out/l"), b"begin\nend\n");
}

#[test]
fn it_is_given_back_before_there_is_a_fact() {
    if !weir_tests::needs("it_is_given_back_before_there_is_a_fact", "strace") {
        return;
    }
    let place = Place::new();
    let under = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=ftruncate,linkat"];
    place.weir().flag("reserve").under(&under).sh("printf 12345").run().exits(0);
    let trace = String::from_utf8(place.read("trace")).unwrap();
    let calls: Vec<&str> = trace.lines().collect();
    let given_back =
        calls.iter().position(|call| call.contains("ftruncate(") && call.contains(", 5)"));
    // The last one, since names (which strace sees only as root) may be tried out before.
    let named = calls.iter().rposition(|call| call.contains("linkat(") && call.ends_with("= 0"));
    // Whoever sees the fact may count on a log that nobody changes any more.
    assert!(given_back.expect("a cut") < named.expect("a name"), "{trace}");
}

#[test]
fn a_refusal_gives_back_what_it_had_reserved_for_a_log_that_stays() {
    let script = format!(
        "{SECTORS}printf 12345 >small/l; mkdir small/.l.fifo
        \"$weir\" run --log small/l --quota 64K --min-free 0 --reserve -- true
        echo rc=$? after=$(sectors)"
    );
    let Some((place, said)) = on_small_disk("a_refusal_gives_back", "300k", &script) else {
        return;
    };
    assert!(said.starts_with("rc=125 after=8\nweir: error[fifo-blocked]: "), "{said}");
    assert_eq!(place.read("out/l"), b"12345");
}

#[test]
fn giving_back_never_lengthens_a_log_that_was_cut_meanwhile() {
    let script = "\"$weir\" run --log small/l --quota 64K --min-free 0 --reserve -- \
            sh -c 'head -c 5000 content; until [ $(stat -c %s small/l) = 5000 ]; do sleep 0.01; done; : >small/l'
        echo rc=$? length=$(stat -c %s small/l)";
    let Some((place, said)) = on_small_disk("giving_back_never_lengthens", "300k", script) else {
        return;
    };
    let doubt = "weir: log small/l may be incomplete: it was replaced, or its length changed, \
                 behind weir's back\n";
    assert_eq!(said, format!("rc=0 length=0\n{doubt}"));
    assert!(!place.at("out/.l.truncated.json").exists());
}

#[test]
fn what_others_have_added_to_the_log_is_not_cut() {
    let script = "\"$weir\" run --quiet --log small/l --quota 64K --min-free 0 --reserve -- \
            sh -c 'printf strange >>small/l'
        echo rc=$?";
    let Some((place, said)) = on_small_disk("what_others_have_added", "300k", script) else {
        return;
    };
    assert_eq!(said, "rc=0\n");
    assert_eq!(place.read("out/l"), b"strange");
    assert!(!place.at("out/.l.truncated.json").exists());
}

/// A reserving weir whose log cannot be allocated ahead, for this reason.
fn refused_with(test: &str, errno: &str) -> Option<(Place, String)> {
    if !weir_tests::needs(test, "strace") {
        return None;
    }
    let place = Place::new();
    let fault = format!("inject=fallocate:error={errno}:when=1");
    let under = ["strace", "-qq", "-o", "trace", "-e", "trace=fallocate", "-e", &fault];
    let done = place.weir().flag("reserve").under(&under).sh("true").run();
    assert!(String::from_utf8(place.read("trace")).unwrap().contains("(INJECTED)"));
    done.refused("capacity-unavailable");
    assert_eq!(place.names(), ["trace"]);
    Some((place, done.stderr()))
}

#[test]
fn where_nothing_can_be_reserved_the_start_is_refused() {
    let test = "where_nothing_can_be_reserved";
    for errno in ["ENOSPC", "EDQUOT", "EFBIG", "EOPNOTSUPP", "EPERM", "ENOSYS"] {
        let Some((place, said)) = refused_with(test, errno) else { return };
        let log = place.at("l").display().to_string();
        let expected = format!(
            "weir: error[capacity-unavailable]: cannot reserve 65536 bytes for log {log}: "
        );
        assert!(said.starts_with(&expected), "{said}");
        let wants_space = ["ENOSPC", "EDQUOT", "EFBIG"].contains(&errno);
        let hint = match wants_space {
            true => "hint: free some space, or lower --quota\n",
            false => {
                "hint: not every file system can allocate ahead; without --reserve it need not\n"
            }
        };
        assert!(said.ends_with(hint), "{said}");
    }
}

#[test]
fn a_full_log_has_nothing_left_to_reserve() {
    let place = Place::new();
    std::fs::write(place.at("l"), noise(65_536)).unwrap();
    place.weir().flag("reserve").sh("printf x; exit 2").run().exits(2);
    assert!(place.fact().quota_reached);
    assert_eq!(place.fact().counts.map(|counts| counts.dropped_bytes), Some(1));
    assert_eq!(std::fs::metadata(place.at("l")).unwrap().size(), 65_536);
}
