//! The receipt: how the job ended, and what became of its output.

use weir_common::sys::process::End;
use weir_common::{ArtifactId, Capture, Counts, Errno, JobEnd};
use weir_tests::{Place, QUOTA};

#[test]
fn it_tells_of_a_job_that_exits() {
    let place = Place::new();
    let weir = place.weir().option("run-id", "r").option("attempt-id", "a");
    weir.option("receipt", "r.json").sh("echo hi; exit 7").run().exits(7).says("");
    let receipt = place.receipt("r.json");
    assert_eq!((receipt.run_id.as_str(), receipt.attempt_id.as_str()), ("r", "a"));
    assert_eq!(receipt.log_artifact_id, ArtifactId::of(&receipt.run_id, &receipt.attempt_id));
    assert_eq!(receipt.job, JobEnd::Ended(End::Code(7)));
    assert_eq!(receipt.capture, Capture::Complete);
    assert_eq!(receipt.counts, Counts { start_bytes: 0, kept_bytes: 3, dropped_bytes: 0 });
    assert!(receipt.started_at_ms <= receipt.finished_at_ms);
    assert!(receipt.usage.resident_bytes_max > 0);
    assert_eq!(place.mode("r.json"), 0o600);
    assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"]);
}

#[test]
fn it_tells_of_a_job_that_was_killed_and_cut() {
    let place = Place::new();
    let script = "head -c 65537 /dev/zero; kill -9 $$";
    place.weir().option("receipt", "r.json").sh(script).run().dies_by(9);
    let receipt = place.receipt("r.json");
    assert_eq!(receipt.job, JobEnd::Ended(End::Signal { number: 9, core_dumped: false }));
    assert_eq!(receipt.capture, Capture::Truncated);
    let kept = QUOTA as u64;
    assert_eq!(receipt.counts, Counts { start_bytes: 0, kept_bytes: kept, dropped_bytes: 1 });
}

#[test]
fn it_tells_weirs_own_127_from_the_jobs() {
    let place = Place::new();
    place.weir().option("receipt", "job.json").sh("exit 127").run().exits(127);
    assert_eq!(place.receipt("job.json").job, JobEnd::Ended(End::Code(127)));
    let place = Place::new();
    place.weir().option("receipt", "weir.json").job(&["no-such-command"]).run().exits(127);
    assert_eq!(place.receipt("weir.json").job, JobEnd::NeverStarted(Errno::ENOENT));
    assert_eq!(place.receipt("weir.json").capture, Capture::Complete);
}

#[test]
fn it_counts_the_cpu_time_of_the_job() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    place.weir().option("receipt", "r.json").sh(script).run().exits(0);
    assert!(place.receipt("r.json").usage.user.as_millis() > 0);
}

#[test]
fn under_a_root_it_has_the_attempts_name() {
    let place = Place::new();
    let weir = place.weir().option("attempt-id", "Ab-1").option("receipt-root", "receipts");
    weir.sh("exit 1").run().exits(1);
    assert_eq!(place.receipt("receipts/Ab/Ab-1.json").job, JobEnd::Ended(End::Code(1)));
    assert_eq!((place.mode("receipts"), place.mode("receipts/Ab")), (0o700, 0o700));
}

#[test]
fn one_that_is_there_is_never_replaced() {
    let place = Place::new();
    std::fs::write(place.at("r.json"), "earlier").unwrap();
    place.weir().option("receipt", "r.json").sh("echo hi").run().refused("log-sealed");
    assert_eq!(place.names(), ["r.json"]);
    assert_eq!(place.read("r.json"), b"earlier");

    let place = Place::new();
    let done = place.weir().option("receipt", "r.json").sh("echo other >r.json").run();
    done.exits(0).says("weir: warning: another receipt took its name meanwhile, and stays\n");
    assert_eq!(place.read("r.json"), b"other\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn it_cannot_take_the_place_of_the_log_or_its_records() {
    for name in ["l", ".l.truncated.json", ".l.fifo", ".l.truncated.tmp", ".l.truncated.tmp~"] {
        for spelling in ["", "./", "../{}/"] {
            let place = Place::new();
            let here = place.path().file_name().unwrap().to_string_lossy().into_owned();
            let receipt = spelling.replace("{}", &here) + name;
            let weir = place.bare().option("log", "l").option("min-free", "0");
            weir.option("receipt", &receipt).sh("echo hi").run().refused("usage");
            assert_eq!(place.names(), [""; 0], "{receipt}");
        }
    }
    // A log that has the name of the receipt's draft.
    let place = Place::new();
    let weir = place.bare().option("log", ".r.receipt.tmp").option("min-free", "0");
    weir.option("receipt", "r").sh("echo hi").run().refused("usage");
    assert_eq!(place.names(), [""; 0]);
}
