//! The example dispatchers: what they believe, what they survive, how many they manage.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;
use weir_common::sys::process::End;
use weir_common::{ArtifactId, JobEnd, LogName};
use weir_tests::{Place, dispatcher_binary, eventually, is_root, needs, weir_binary};

#[derive(Clone, Copy, Debug)]
enum Language {
    Rust,
    Python,
}

/// Both, where Python is there.
fn languages(test: &str) -> Vec<Language> {
    match needs(test, "python3") {
        true => vec![Language::Rust, Language::Python],
        false => vec![Language::Rust],
    }
}

const PYTHON: &str = include_str!("../../launcher/examples/dispatcher.py");

/// A dispatcher for jobs under `root`, four at a time.
fn dispatcher(place: &Place, language: Language, jobs: usize, job: &[&str]) -> Command {
    let mut command = match language {
        Language::Rust => {
            let mut command = Command::new(dispatcher_binary());
            command.arg("--weir").arg(weir_binary());
            command
        }
        Language::Python => {
            std::fs::write(place.at("dispatcher.py"), PYTHON).unwrap();
            let mut command = Command::new("python3");
            command.arg("dispatcher.py").env("WEIR_BIN", weir_binary());
            command
        }
    };
    command.current_dir(place.path()).stdin(Stdio::null());
    command.env("WEIR_QUOTA", "64K").env("WEIR_MIN_FREE", "0").env("WEIR_SYNC", "none");
    command.args(["root", &jobs.to_string(), "4"]).args(job);
    command
}

fn sh(script: &str) -> [&str; 5] {
    ["sh", "-c", script, "sh", "{}"]
}

#[track_caller]
fn sums_up(output: &Output, code: i32, summary: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{summary}\n"), "{output:?}");
    assert_eq!(output.status.code(), Some(code), "{output:?}");
}

/// The content of one attempt's log.
fn log(place: &Place, job: usize, attempt: usize) -> Vec<u8> {
    let artifact = artifact(job, attempt);
    let name = LogName::of(&artifact).as_os_str().to_string_lossy().into_owned();
    place.read(&format!("root/logs/{}/{name}", artifact.shard()))
}

fn artifact(job: usize, attempt: usize) -> ArtifactId {
    let (run, attempt) = (format!("job-{job}"), format!("job-{job}.{attempt}"));
    ArtifactId::of(&run.parse().unwrap(), &attempt.parse().unwrap())
}

#[test]
fn every_job_is_told_of_as_it_ended() {
    // The sixth leaves somebody behind who holds the output until weir has left.
    let script = "case $1 in
        3) exit 7;;
        4) kill -9 $$;;
        5) head -c 70000 /dev/zero;;
        6) (while kill -0 $PPID 2>/dev/null; do sleep 0.01; done; echo late) & echo early; exit;;
        esac; echo job $1";
    for language in languages("every_job_is_told_of") {
        let place = Place::new();
        let mut command = dispatcher(&place, language, 12, &sh(script));
        let output = command.env("WEIR_GRACE", "10ms").output().unwrap();
        let summary = "12 jobs: 10 ended with 0, 2 otherwise, 0 refused; \
                       11 logs complete, 1 cut, 0 unknown; 0 attempts lost";
        sums_up(&output, 1, summary);
        assert_eq!(log(&place, 1, 1), b"job 1\n");
        assert_eq!(log(&place, 6, 1), b"early\nlate\n", "{language:?}");
        let receipt = place.receipt("root/receipts/jo/job-4.1.json");
        assert_eq!(receipt.job, JobEnd::Ended(End::Signal { number: 9, core_dumped: false }));
    }
}

#[test]
fn a_job_that_cannot_be_started_is_told_from_one_that_is_refused() {
    for language in languages("a_job_that_cannot_be_started") {
        let place = Place::new();
        let output = dispatcher(&place, language, 2, &["no-such-command"]).output().unwrap();
        let summary = "2 jobs: 0 ended with 0, 2 otherwise, 0 refused; \
                       2 logs complete, 0 cut, 0 unknown; 0 attempts lost";
        sums_up(&output, 1, summary);

        let place = Place::new();
        let mut command = dispatcher(&place, language, 2, &["true"]);
        let output = command.env("WEIR_QUOTA", "1").output().unwrap();
        let summary = "2 jobs: 0 ended with 0, 0 otherwise, 2 refused; \
                       0 logs complete, 0 cut, 0 unknown; 0 attempts lost";
        sums_up(&output, 2, summary);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("quota-out-of-range: WEIR_QUOTA=1: 1 bytes are not"), "{told}");
    }
}

#[test]
fn a_killed_dispatcher_is_followed_by_one_that_goes_on_where_it_was() {
    let test = "a_killed_dispatcher_is_followed";
    for first in languages(test) {
        for second in languages(test) {
            let place = Place::new();
            let script = "echo $1 >>ran; until [ -e go ]; do sleep 0.01; done; echo job $1";
            let ran = || match place.at("ran").exists() {
                true => String::from_utf8(place.read("ran")).unwrap(),
                false => String::new(),
            };
            let mut command = dispatcher(&place, first, 8, &sh(script));
            let mut killed = command.stderr(Stdio::null()).spawn().unwrap();
            eventually("four run", || ran().lines().count() == 4);
            killed.kill().unwrap();
            killed.wait().unwrap();
            let mut command = dispatcher(&place, second, 8, &sh(script));
            let follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            File::create(place.at("go")).unwrap();
            let output = follower.wait_with_output().unwrap();
            let summary = "8 jobs: 8 ended with 0, 0 otherwise, 0 refused; \
                           8 logs complete, 0 cut, 0 unknown; 0 attempts lost";
            sums_up(&output, 0, summary);
            let mut once: Vec<String> = ran().lines().map(str::to_owned).collect();
            once.sort();
            assert_eq!(once.join(" "), "1 2 3 4 5 6 7 8", "{first:?}, {second:?}");
        }
    }
}

#[test]
fn an_attempt_whose_weir_is_killed_is_lost_and_never_runs_after_all() {
    for language in languages("an_attempt_whose_weir_is_killed") {
        let place = Place::new();
        let script = "if mkdir first 2>/dev/null; then kill -9 $PPID; exit; fi; \
                      until [ -e go ]; do sleep 0.01; done; echo job $1";
        let mut command = dispatcher(&place, language, 1, &sh(script));
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let second = artifact(1, 2);
        let shard = place.at("root/logs").join(second.shard());
        let fifo = shard.join(LogName::of(&second).fifo());
        eventually("the second attempt runs", || fifo.exists());
        let late = place.bare().option("root", place.at("root/logs")).option("run-id", "job-1");
        let late = late.option("attempt-id", "job-1.1").option("min-free", "0");
        late.sh("echo twice >twice").run().refused("log-busy");
        File::create(place.at("go")).unwrap();
        let output = running.wait_with_output().unwrap();
        let summary = "1 jobs: 1 ended with 0, 0 otherwise, 0 refused; \
                       1 logs complete, 0 cut, 0 unknown; 1 attempts lost";
        sums_up(&output, 0, summary);
        assert_eq!(log(&place, 1, 2), b"job 1\n");
        assert!(!place.at("twice").exists());
    }
}

#[test]
fn wrong_words_are_told_with_the_usage() {
    for (words, reason) in [
        (vec![], "ROOT is missing"),
        (vec!["root", "0", "1", "true"], "JOBS is no count"),
        (vec!["root", "1", "1"], "COMMAND is missing"),
        (vec!["--nonsense"], "unknown option --nonsense"),
    ] {
        let place = Place::new();
        let mut command = Command::new(dispatcher_binary());
        let output = command.args(words).current_dir(place.path()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with(&format!("dispatcher: {reason}\nUsage: ")), "{told}");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn the_python_one_is_short() {
    assert!(PYTHON.lines().count() < 60, "{} lines", PYTHON.lines().count());
    assert!(PYTHON.lines().all(|line| line.len() <= 100));
}

/// What the attempts that run cost: proportional set size, in bytes, as far as that can be
/// looked at.
fn memory_of_weirs(dispatcher: &Child) -> Option<Vec<u64>> {
    if !is_root() {
        // weir lets nobody else look.
        return None;
    }
    let children = Path::new("/proc").join(dispatcher.id().to_string()).join("task");
    let threads = std::fs::read_dir(children).unwrap().flatten();
    let pids = threads.flat_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap();
        children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let sizes = pids.map(|pid| {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let pss = maps.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        let kib: u64 = pss.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
        kib << 10
    });
    Some(sizes.collect())
}

#[test]
fn hundreds_of_attempts_at_once_lose_nothing() {
    let is_soak = std::env::var_os("WEIR_SOAK").is_some();
    let jobs: usize = if is_soak { 1000 } else { 200 };
    let place = Place::new();
    let gate = place.at("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // Open in both directions, so that no open of a job waits: its read does.
    let mut gate = File::options().read(true).write(true).open(gate).unwrap();
    let script = "echo job $1; read line <gate; head -c $(($1 * 100)) /dev/zero; exit $(($1 % 7))";
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 4096; exec \"$@\"", "sh"]).arg(dispatcher_binary());
    command.arg("--weir").arg(weir_binary()).args(["--quota", "64K", "--min-free", "0"]);
    command.args(["root", &jobs.to_string(), &jobs.to_string()]).args(sh(script));
    command.current_dir(place.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let begun = Instant::now();
    let running = command.spawn().unwrap();
    let logs: Vec<_> = (1..=jobs)
        .map(|job| {
            let artifact = artifact(job, 1);
            let name = LogName::of(&artifact);
            place.at("root/logs").join(artifact.shard()).join(name.as_os_str())
        })
        .collect();
    let waits = |log: &Path| std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let mut waiting = BTreeSet::new();
    eventually("all run at once", || {
        waiting.extend((0..jobs).filter(|at| waits(&logs[*at])));
        waiting.len() == jobs
    });
    let (all_run, memory) = (begun.elapsed(), memory_of_weirs(&running));
    gate.write_all(&vec![b'\n'; jobs]).unwrap();
    let output = running.wait_with_output().unwrap();
    let all_ended = begun.elapsed();

    let well = jobs / 7;
    // Job n writes `job n` and a hundred times n bytes.
    let length = |job: usize| format!("job {job}\n").len() + job * 100;
    let cut = (1..=jobs).filter(|job| length(*job) > weir_tests::QUOTA).count();
    let summary = format!(
        "{jobs} jobs: {well} ended with 0, {} otherwise, 0 refused; {} logs complete, {cut} cut, 0 \
         unknown; 0 attempts lost",
        jobs - well,
        jobs - cut
    );
    sums_up(&output, 1, &summary);
    for (job, path) in (1..).zip(&logs) {
        let mut expected = format!("job {job}\n").into_bytes();
        expected.resize(length(job).min(weir_tests::QUOTA), 0);
        assert!(std::fs::read(path).unwrap() == expected, "the log of job {job}");
        let receipt = place.receipt(&format!("root/receipts/jo/job-{job}.1.json"));
        assert_eq!(receipt.job, JobEnd::Ended(End::Code((job % 7) as u8)), "job {job}");
        let stream_bytes = receipt.counts.kept_bytes + receipt.counts.dropped_bytes;
        assert_eq!(stream_bytes, length(job) as u64, "job {job}");
    }
    eprintln!("{jobs} at once: all run after {all_run:?}, all ended after {all_ended:?}");
    if let Some(sizes) = memory {
        assert_eq!(sizes.len(), jobs, "one process per attempt");
        let mean = sizes.iter().sum::<u64>() / jobs as u64;
        eprintln!(
            "{jobs} at once: {mean} bytes (PSS) per attempt, {:?} at most",
            sizes.iter().max()
        );
        // A debug build has more; with glibc a release build has about 100 KiB.
        assert!(mean <= 128 << 10 || !is_soak, "{mean} bytes per attempt");
    }
}
