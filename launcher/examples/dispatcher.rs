//! A small dispatcher: it runs many jobs under weir, a few at a time, and knows in the end how
//! each of them ended and whether its log is complete, even if it was killed in between.
//!
//! ```sh
//! cargo build
//! cargo run --example dispatcher -- --weir target/debug/weir /tmp/twenty 20 4 \
//!     sh -c 'echo this is job {}; sleep 1'
//! ```
//!
//! Kill it with `kill -9`, and start it again with the same words: it goes on where it was,
//! and the jobs do not notice.
//!
//! Every execution of job 7 is an attempt with an id of its own: `job-7.1`, `job-7.2`, and so
//! on. What has become of an attempt is on disk, and nothing else is believed:
//!
//! | log | its lock | receipt | the attempt |
//! |---|---|---|---|
//! | none | | none | has not begun, and is started |
//! | there | held | | runs, or a background process still holds its output |
//! | there | free | there | has ended; without a fact nobody knows whether the log is complete |
//! | there | free | none | is lost, since its weir was killed; the next one takes its place |
//!
//! The log of a lost attempt stays locked while the dispatcher lives, so that a weir of that
//! attempt that comes late is refused, and does not run the job once more.
//!
//! The one surprise: a job whose weir was killed goes on until its next write. What is lost
//! may have done anything, and may be at it still.
//!
//! `dispatcher.py` beside this file keeps to the same rules, in the same directories.
#![forbid(unsafe_code)]

use serde_json::Value;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, fs, thread};
use weir_common::sys::files::{self, Lock};
use weir_common::sys::process::End;
use weir_common::{ArtifactId, AttemptId, Errno, Fact, JobEnd, LogName, Receipt, RunId};
use weir_common::{receipt_name, receipt_shard};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "Usage: dispatcher [--weir PATH] [--quota SIZE] [--min-free SIZE] \
                     ROOT JOBS AT_ONCE COMMAND [ARG]...\n\
                     {} in COMMAND and its arguments becomes the job's number.";
/// How often a job is looked at until it is given up: a lost attempt costs two.
const TURNS_MAX: u32 = 200;
/// Between two looks at a log that is held.
const PAUSE: Duration = Duration::from_millis(50);
/// One thread waits for each running attempt, and needs little.
const STACK_BYTES: usize = 128 << 10;

fn main() -> ExitCode {
    dispatch().unwrap_or_else(|why| {
        tell(&format!("dispatcher: {why}"));
        ExitCode::from(2)
    })
}

fn dispatch() -> Result<ExitCode> {
    let words = env::args_os().skip(1);
    let order = Order::from_words(words).map_err(|why| format!("{why}\n{USAGE}"))?;
    for root in [&order.logs, &order.receipts] {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(root);
        made.map_err(|why| cannot("make", root, why.into()))?;
    }
    let board = Mutex::new(Board::default());
    let next = || at(&board).take_job(order.jobs);
    let work = || {
        while let Some(job) = next() {
            let outcome = order.see_through(job, &board);
            at(&board).note(job, &outcome);
        }
    };
    thread::scope(|scope| {
        for others in 1..order.at_once.min(order.jobs) {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            if let Err(why) = thread.spawn_scoped(scope, work) {
                tell(&format!("dispatcher: no more than {others} at once: {why}"));
                break;
            }
        }
        work();
    });
    Ok(at(&board).sum_up())
}

/// Says something on standard error, where nobody has to listen.
fn tell(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// What to run, and how.
struct Order {
    weir: PathBuf,
    weir_options: Vec<OsString>,
    logs: PathBuf,
    receipts: PathBuf,
    jobs: u32,
    at_once: u32,
    command: Vec<OsString>,
}

impl Order {
    fn from_words(mut words: impl Iterator<Item = OsString>) -> Result<Order> {
        let (mut weir, mut weir_options) = (PathBuf::from("weir"), Vec::new());
        let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let root = loop {
            let word = next("ROOT")?;
            match word.to_str() {
                Some("--weir") => weir = next("the path of weir")?.into(),
                Some("--quota" | "--min-free") => weir_options.extend([word, next("a size")?]),
                Some(other) if other.starts_with('-') => Err(format!("unknown option {other}"))?,
                _ => break PathBuf::from(word),
            }
        };
        let mut number = |what: &str| {
            let number = next(what)?.to_str().and_then(|word| word.parse().ok());
            number.filter(|number| *number > 0).ok_or_else(|| format!("{what} is no count"))
        };
        let (jobs, at_once) = (number("JOBS")?, number("AT_ONCE")?);
        let command = [next("COMMAND")?].into_iter().chain(words).collect();
        let (logs, receipts) = (root.join("logs"), root.join("receipts"));
        Ok(Order { weir, weir_options, logs, receipts, jobs, at_once, command })
    }

    /// Sees one job through, with as many attempts as it takes. An error says why that
    /// cannot go on; then others may try, so the locks are let go.
    fn see_through(&self, job: u32, board: &Mutex<Board>) -> Result<(JobEnd, Option<Fact>)> {
        let (mut number, mut refusal, mut locks) = (1, None, Vec::new());
        for _ in 0..TURNS_MAX {
            let (attempt, next) = (self.attempt(job, number)?, self.attempt(job, number + 1)?);
            match (attempt.look_when_free(&next)?, refusal.take()) {
                (State::Ended(end, fact), _) => {
                    at(board).locks.append(&mut locks);
                    return Ok((end, fact));
                }
                (State::Lost(lock), _) => {
                    locks.extend(lock);
                    at(board).lost += 1;
                    number += 1;
                }
                (State::NotBegun, Some(why)) => Err(why)?,
                (State::NotBegun, None) => refusal = self.run_weir(job, &attempt)?,
            }
        }
        Err(format!("given up, with {} attempts lost", number - 1))?
    }

    fn attempt(&self, job: u32, number: u32) -> Result<Attempt> {
        let run_id: RunId = format!("job-{job}").parse()?;
        let id: AttemptId = format!("job-{job}.{number}").parse()?;
        let artifact = ArtifactId::of(&run_id, &id);
        let (shard, name) = (self.logs.join(artifact.shard()), LogName::of(&artifact));
        let (log, fact) = (shard.join(name.as_os_str()), shard.join(name.fact()));
        let receipt = self.receipts.join(receipt_shard(&id)).join(receipt_name(&id));
        Ok(Attempt { run_id, id, log, fact, receipt })
    }

    /// Runs an attempt under weir, until weir leaves. Returns the reason to give up, for
    /// the case that nothing is on disk.
    fn run_weir(&self, job: u32, attempt: &Attempt) -> Result<Option<String>> {
        let fill_in = |word: &OsString| match word.to_str() {
            Some(text) => text.replace("{}", &job.to_string()).into(),
            None => word.clone(),
        };
        let mut weir = Command::new(&self.weir)
            // Whatever the environment says: fresh, it would run an ended attempt again.
            .args(["run", "--fresh=false", "--quiet", "--status-fd", "1"])
            .args(["--run-id", attempt.run_id.as_str(), "--attempt-id", attempt.id.as_str()])
            .args([OsStr::new("--root"), self.logs.as_ref()])
            .args([OsStr::new("--receipt-root"), self.receipts.as_ref()])
            .args(&self.weir_options)
            .arg("--")
            .args(self.command.iter().map(fill_in))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // The status lines tell all that is said there.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| cannot("start", &self.weir, why.into()))?;
        let mut refusal = Value::Null;
        // Only weir has the other end: the lines end when it leaves.
        let lines = weir.stdout.take().into_iter().flat_map(|told| BufReader::new(told).lines());
        for line in lines.map_while(io::Result::ok) {
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            match event["event"].as_str() {
                Some("refused") => refusal = event,
                Some("warning") => tell(&format!("{}: {}", attempt.id, event["message"])),
                _ => {}
            }
        }
        let status = weir.wait()?;
        let told = |key: &str| refusal[key].as_str().unwrap_or_default();
        Ok(match (told("code"), status.code()) {
            // Another weir was quicker, or this one was killed.
            ("log-busy" | "log-sealed", _) | ("", None) => None,
            ("", Some(_)) => Some(format!("weir left nothing, with {status}")),
            (code, _) => Some(format!("{code}: {}", told("message"))),
        })
    }
}

/// One execution of a job, and where it leaves what.
struct Attempt {
    run_id: RunId,
    id: AttemptId,
    log: PathBuf,
    fact: PathBuf,
    receipt: PathBuf,
}

/// What the disk says of an attempt.
enum State {
    NotBegun,
    /// Without a fact nobody knows whether the log is complete.
    Ended(JobEnd, Option<Fact>),
    /// With the log's lock, unless another dispatcher has that.
    Lost(Option<OwnedFd>),
}

impl Attempt {
    /// Waits while another process has the log's lock: the records may still come. Once
    /// the next attempt is there, it is a dispatcher that has it, since this one is lost.
    fn look_when_free(&self, next: &Attempt) -> Result<State> {
        loop {
            match self.look()? {
                Some(state) => return Ok(state),
                None if next.has_begun() => return Ok(State::Lost(None)),
                None => thread::sleep(PAUSE),
            }
        }
    }

    fn has_begun(&self) -> bool {
        [&self.log, &self.receipt].into_iter().any(|path| path.symlink_metadata().is_ok())
    }

    /// Takes the lock, and then looks for the receipt; `None` when the lock is held.
    fn look(&self) -> Result<Option<State>> {
        let fail = |errno| cannot("look at", &self.log, errno);
        let log = match files::open_record_at(files::here(), &self.log) {
            Err(Errno::ENOENT) => None,
            opened => Some(opened.map_err(fail)?),
        };
        if let Some(log) = &log {
            let lock = files::lock(log).map_err(fail)?;
            // A weir that is refused removes its log, and has the lock meanwhile.
            if lock == Lock::Busy || files::status(log).map_err(fail)?.links == 0 {
                return Ok(None);
            }
        }
        Ok(Some(match (Receipt::read(&self.receipt)?, log) {
            (Some(receipt), _) => State::Ended(receipt.job, Fact::read(&self.fact).unwrap_or(None)),
            (None, Some(lock)) => State::Lost(Some(lock)),
            (None, None) => State::NotBegun,
        }))
    }
}

fn cannot(what: &str, path: &Path, errno: Errno) -> String {
    let hint = match errno {
        Errno::EMFILE => " (ulimit -n is too low for so many at once)",
        _ => "",
    };
    format!("cannot {what} {}: {errno}{hint}", path.display())
}

/// Everything that is known so far.
#[derive(Default)]
struct Board {
    taken: u32,
    /// Jobs: ended with 0, ended otherwise, refused.
    ends: [u32; 3],
    /// Logs: complete, cut, unknown.
    logs: [u32; 3],
    lost: u32,
    /// Of lost attempts of jobs that have ended. They are held as long as this lives.
    locks: Vec<OwnedFd>,
}

fn at(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    fn take_job(&mut self, jobs: u32) -> Option<u32> {
        let job = Some(self.taken + 1).filter(|job| *job <= jobs)?;
        self.taken = job;
        Some(job)
    }

    /// Counts a job, and says what has become of it.
    fn note(&mut self, job: u32, outcome: &Result<(JobEnd, Option<Fact>)>) {
        let (kind, told) = match outcome {
            Ok((JobEnd::Ended(End::Code(0)), _)) => (0, "exit 0".to_owned()),
            Ok((JobEnd::Ended(End::Code(code)), _)) => (1, format!("exit {code}")),
            Ok((JobEnd::Ended(End::Signal { number, .. }), _)) => (1, format!("signal {number}")),
            Ok((JobEnd::NeverStarted(errno), _)) => (1, format!("not started: {errno}")),
            Err(why) => (2, format!("refused: {why}")),
        };
        self.ends[kind] += 1;
        if let Ok((_, fact)) = outcome {
            let kind = fact.as_ref().map_or(2, |fact| usize::from(fact.quota_reached));
            self.logs[kind] += 1;
        }
        let ended: u32 = self.ends.iter().sum();
        let (running, lost) = (self.taken - ended, self.lost);
        tell(&format!("job-{job}: {told} ({ended} ended, {running} running, {lost} lost)"));
    }

    fn sum_up(&self) -> ExitCode {
        let ([well, otherwise, refused], [complete, cut, unknown]) = (self.ends, self.logs);
        let (jobs, lost) = (self.taken, self.lost);
        let _ = writeln!(
            io::stdout(),
            "{jobs} jobs: {well} ended with 0, {otherwise} otherwise, {refused} refused; \
             {complete} logs complete, {cut} cut, {unknown} unknown; {lost} attempts lost"
        );
        match (refused, otherwise) {
            (0, 0) => ExitCode::SUCCESS,
            (0, _) => ExitCode::FAILURE,
            _ => ExitCode::from(2),
        }
    }
}
