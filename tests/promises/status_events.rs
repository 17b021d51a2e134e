//! `--status-fd`: one JSON line per event, in order.

use std::io::Read;
use weir_common::ArtifactId;
use weir_tests::{Place, full_pipe};

fn events(place: &Place, script: &str) -> Vec<String> {
    let weir =
        place.weir().option("run-id", "r").option("attempt-id", "a").option("status-fd", "1");
    let done = weir.option("receipt", "r.json").sh(script).run();
    done.stdout().lines().map(str::to_owned).collect()
}

#[test]
fn a_run_is_told_from_admission_to_publication() {
    let place = Place::new();
    let events = events(&place, "echo $$; head -c 70000 /dev/zero; kill -TERM $$");
    let log = place.at("l");
    let artifact = ArtifactId::of(&"r".parse().unwrap(), &"a".parse().unwrap());
    let pid = String::from_utf8_lossy(&place.read("l")).lines().next().unwrap().to_owned();
    assert_eq!(
        events[0],
        format!(
            "{{\"event\":\"admitted\",\"runId\":\"r\",\"attemptId\":\"a\",\"logArtifactId\":\"{artifact}\",\"log\":\"{}\"}}",
            log.display()
        )
    );
    assert_eq!(events[1], format!("{{\"event\":\"started\",\"pid\":{pid}}}"));
    // Either of these two may be the first.
    let mut middle = events[2..4].to_vec();
    middle.sort();
    let dropped = 70_000 + pid.len() + 1 - 65_536;
    assert_eq!(
        middle[0],
        format!("{{\"event\":\"drained\",\"keptBytes\":65536,\"droppedBytes\":{dropped}}}")
    );
    assert_eq!(middle[1], "{\"event\":\"exited\",\"signal\":15}");
    assert_eq!(
        events[4..],
        [
            format!(
                "{{\"event\":\"published\",\"record\":\"fact\",\"path\":\"{}\"}}",
                place.at(".l.truncated.json").display()
            ),
            "{\"event\":\"published\",\"record\":\"receipt\",\"path\":\"r.json\"}".to_owned(),
        ]
    );
}

#[test]
fn an_exit_and_a_drain_come_in_the_order_in_which_they_happen() {
    // Each waits for the other's event before it happens.
    let wait = |event| format!("until grep -q {event} events; do sleep 0.01; done");
    let drained_first = format!("exec >/dev/null 2>&1; {}; exit 3", wait("drained"));
    let exited_first = format!("({}) & exit 3", wait("exited"));
    for (script, order) in
        [(drained_first, ["drained", "exited"]), (exited_first, ["exited", "drained"])]
    {
        let place = Place::new();
        let events = std::fs::File::create(place.at("events")).unwrap();
        place.weir().option("status-fd", "1").stdout(events).sh(&script).run().exits(3).says("");
        let events = String::from_utf8(place.read("events")).unwrap();
        let names: Vec<&str> = events.lines().filter_map(|line| line.split('"').nth(3)).collect();
        assert_eq!(names, [&["admitted", "started"], &order[..], &["published"]].concat());
    }
}

#[test]
fn a_refusal_is_told_too() {
    let place = Place::new();
    std::fs::create_dir(place.at("l")).unwrap();
    let told = events(&place, "echo hi");
    let expected = format!(
        "{{\"event\":\"refused\",\"code\":\"log-unsafe\",\"message\":\"cannot open log {}: it is a directory\"}}",
        place.at("l").display()
    );
    assert_eq!(told, [expected]);
    let place = Place::new();
    let done = place
        .bare()
        .option("log", "l")
        .option("status-fd", "1")
        .option("quota", "1")
        .sh("true")
        .run();
    assert_eq!(
        done.stdout(),
        "{\"event\":\"refused\",\"code\":\"quota-out-of-range\",\"message\":\"--quota 1: 1 bytes are \
         not between 64 KiB (65536) and 1 GiB (1073741824)\"}\n"
    );
}

#[test]
fn a_failed_start_is_told_as_one() {
    let place = Place::new();
    let weir = place.weir().option("status-fd", "1").job(&["no-such-command"]);
    let stdout = weir.run().stdout();
    let names: Vec<&str> = stdout.lines().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(names, ["admitted", "refused", "drained", "published"]);
}

#[test]
fn a_path_that_json_must_escape_is_escaped() {
    let place = Place::new();
    let weir = place.bare().option("log", "a\"\\\n\u{7f}é").option("min-free", "0");
    let stdout = weir.option("status-fd", "1").sh("true").run().stdout();
    let first: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["log"], "a\"\\\n\u{7f}é");
}

#[test]
fn a_reader_that_is_gone_stops_nothing() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    place
        .weir()
        .option("status-fd", "1")
        .stdout(writer)
        .sh("echo hi; exit 2")
        .run()
        .exits(2)
        .says("");
    assert_eq!(place.log(), "hi\n");
    assert!(!place.fact().quota_reached);
}

#[test]
fn a_reader_that_does_not_read_stops_nothing() {
    let place = Place::new();
    let (mut reader, writer) = full_pipe();
    place
        .weir()
        .option("status-fd", "1")
        .stdout(writer)
        .sh("echo hi; exit 2")
        .run()
        .exits(2)
        .says("");
    let mut piped = Vec::new();
    reader.read_to_end(&mut piped).unwrap();
    assert!(piped.iter().all(|byte| *byte == 0));
    assert!(!place.fact().quota_reached);
}

#[test]
fn the_job_does_not_get_the_status_descriptor() {
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" 8>events", "sh"];
    place
        .weir()
        .option("status-fd", "8")
        .under(&under)
        .sh("ls /proc/self/fd")
        .run()
        .exits(0)
        .says("");
    assert!(!place.log().lines().any(|line| line == "8"), "{}", place.log());
    let events = String::from_utf8(place.read("events")).unwrap();
    assert_eq!(events.lines().count(), 5, "{events}");
}
