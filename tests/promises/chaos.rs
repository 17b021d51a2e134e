//! Hundreds of attempts whose dispatcher, weir or job is killed at random moments: what is
//! left on disk never says more than what happened, and every attempt can be started again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use weir_common::sys::process::{self, End, Pid};
use weir_common::{
    ArtifactId, AttemptId, Capture, Fact, JobEnd, LogName, Receipt, RunId, receipt_name,
    receipt_shard,
};
use weir_tests::{Place, QUOTA, Weir, dispatcher_binary, eventually, needs, weir_binary};

const RECORDER: &str = include_str!("../jobs/recorder.py");
const LENGTHS: [u64; 8] = [0, 1, 5000, 65_535, 65_536, 65_537, 200_000, 131_072];
const AT_ONCE: usize = 16;
/// Far more than it takes: it only ends what hangs.
const DEADLINE: Duration = Duration::from_secs(900);

const HUP: i32 = 1;
const USR1: i32 = 10;
const KILL: i32 = 9;
const USR2: i32 = 12;
const ALRM: i32 = 14;
const TERM: i32 = 15;
const CONT: i32 = 18;
const STOP: i32 = 19;
const RT_40: i32 = 40;

/// Numbers that look random and are the same in every run: xorshift64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Whom a blow hits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Dispatcher,
    /// With its attempt's id.
    Weir(String),
    Job,
}

/// Every weir and every job that has to do with this place.
fn victims(place: &Path) -> Vec<(Pid, Victim)> {
    let place = place.to_str().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found = pids.filter_map(|number: i32| {
        let words = std::fs::read_to_string(format!("/proc/{number}/cmdline")).ok()?;
        let words: Vec<&str> = words.split('\0').collect();
        if !words.iter().any(|word| word.starts_with(place)) {
            return None;
        }
        let victim = match Path::new(words[0]).file_name()?.to_str()? {
            "python3" => Victim::Job,
            "dispatcher" => Victim::Dispatcher,
            _ => {
                let at = words.iter().position(|word| *word == "--attempt-id")?;
                Victim::Weir(words[at + 1].to_owned())
            }
        };
        Some((Pid::from_raw(number)?, victim))
    });
    found.collect()
}

/// What the blows have done.
#[derive(Default)]
struct Blows {
    counts: BTreeMap<&'static str, u32>,
    /// The attempts whose weir was killed.
    killed: BTreeSet<String>,
    /// Every signal that a job may have died of.
    signals: BTreeSet<i32>,
}

impl Blows {
    fn total(&self) -> u32 {
        self.counts.values().sum()
    }

    /// Hits somebody, if anybody of the chosen kind is there.
    fn strike(&mut self, place: &Path, dispatcher: &Child, chance: &mut Chance) {
        if chance.below(25) == 0 {
            let _ = process::send(pid_of(dispatcher), chance.of(&[KILL, KILL, TERM]));
            *self.counts.entry("dispatcher").or_default() += 1;
            return;
        }
        let wants_weir = chance.below(2) == 0;
        let candidates: Vec<(Pid, Victim)> = victims(place)
            .into_iter()
            .filter(|(_, victim)| match victim {
                Victim::Dispatcher => false,
                Victim::Weir(_) => wants_weir,
                Victim::Job => !wants_weir,
            })
            .collect();
        if candidates.is_empty() {
            return;
        }
        let (pid, victim) = &candidates[chance.below(candidates.len())];
        let signal = match victim {
            Victim::Weir(_) => {
                chance.of(&[KILL, KILL, KILL, KILL, TERM, HUP, USR1, USR2, ALRM, RT_40])
            }
            _ => chance.of(&[KILL, KILL, TERM, HUP, USR1, STOP]),
        };
        if process::send(*pid, signal).is_err() {
            return;
        }
        self.signals.insert(signal);
        match victim {
            Victim::Weir(attempt) => {
                if signal == KILL {
                    self.killed.insert(attempt.clone());
                }
                *self.counts.entry("weir").or_default() += 1;
            }
            _ => *self.counts.entry("job").or_default() += 1,
        }
        if signal == STOP {
            std::thread::sleep(Duration::from_micros(chance.below(5000) as u64));
            let _ = process::send(*pid, CONT);
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

struct Scene {
    place: Place,
    jobs: usize,
}

impl Scene {
    fn new(jobs: usize) -> Scene {
        let place = Place::new();
        std::fs::write(place.at("recorder.py"), RECORDER).unwrap();
        std::fs::create_dir(place.at("notes")).unwrap();
        Scene { place, jobs }
    }

    fn job(&self, number: &str) -> Vec<String> {
        let at = |name| self.place.at(name).display().to_string();
        let words = ["python3".into(), "-SE".into(), at("recorder.py"), number.into(), at("notes")];
        words.to_vec()
    }

    fn start_dispatcher(&self) -> Child {
        let said = |name| File::options().append(true).create(true).open(self.place.at(name));
        let mut command = Command::new(dispatcher_binary());
        command.arg("--weir").arg(weir_binary()).args(["--quota", "64K", "--min-free", "0"]);
        command.arg(self.place.at("root")).arg(self.jobs.to_string()).arg(AT_ONCE.to_string());
        command.args(self.job("{}")).env("WEIR_GRACE", "20ms");
        command.stdin(Stdio::null()).stdout(said("said").unwrap()).stderr(said("told").unwrap());
        command.spawn().unwrap()
    }

    /// Lets a dispatcher run all jobs, under blows, and starts it again whenever one has
    /// killed it.
    fn run(&self, blows_max: u32, chance: &mut Chance) -> (Blows, ExitStatus) {
        let mut blows = Blows::default();
        let mut dispatcher = self.start_dispatcher();
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < deadline, "it never ended, after {:?}", blows.counts);
            match dispatcher.try_wait().unwrap() {
                Some(status) if status.signal().is_none() => return (blows, status),
                Some(_) => dispatcher = self.start_dispatcher(),
                None if blows.total() < blows_max => {
                    blows.strike(self.place.path(), &dispatcher, chance);
                }
                None => {}
            }
            std::thread::sleep(Duration::from_micros(chance.below(8000) as u64));
        }
    }

    /// weir itself, for an attempt that was started before.
    fn again(&self, attempt: &Attempt, job: &[String]) -> Weir {
        let words: Vec<&str> = job.iter().map(String::as_str).collect();
        let weir = self.place.bare().option("root", self.place.at("root/logs"));
        let weir = weir.option("receipt-root", self.place.at("root/receipts"));
        let weir = weir.option("run-id", attempt.run.as_str());
        let weir = weir.option("attempt-id", attempt.attempt.as_str());
        weir.option("quota", "64K").option("min-free", "0").option("sync", "none").job(&words)
    }
}

/// One attempt, and what it has left on disk.
struct Attempt {
    number: u64,
    run: RunId,
    attempt: AttemptId,
    shard: PathBuf,
    name: LogName,
    log: Vec<u8>,
    fact: Option<Fact>,
    receipt: Option<Receipt>,
    /// How much of its output was certainly, and how much was possibly, written; `None`
    /// when its job has not come so far as to note it.
    noted: Option<(u64, u64)>,
}

impl Attempt {
    /// Reads what there is of an attempt; `None` when there is not even a log.
    fn read(scene: &Scene, number: u64, n: u32) -> Option<Attempt> {
        let run: RunId = format!("job-{number}").parse().unwrap();
        let attempt: AttemptId = format!("job-{number}.{n}").parse().unwrap();
        let artifact = ArtifactId::of(&run, &attempt);
        let shard = scene.place.at("root/logs").join(artifact.shard());
        let receipts = scene.place.at("root/receipts").join(receipt_shard(&attempt));
        let name = LogName::of(&artifact);
        let log = std::fs::read(shard.join(name.as_os_str())).ok()?;
        let note = std::fs::read(scene.place.at("notes").join(artifact.as_str()));
        let number_in = |note: &[u8]| u64::from_ne_bytes(note.try_into().unwrap());
        let record = |path: &Path| {
            if let Ok(found) = std::fs::symlink_metadata(path) {
                assert_eq!((found.mode() & 0o7777, found.nlink()), (0o600, 1), "{path:?}");
            }
        };
        let (fact, receipt) = (shard.join(name.fact()), receipts.join(receipt_name(&attempt)));
        record(&fact);
        record(&receipt);
        Some(Attempt {
            log,
            fact: Fact::read(&fact).unwrap(),
            receipt: Receipt::read(&receipt).unwrap(),
            noted: note.ok().map(|note| match note.len() {
                0 => (0, 0),
                _ => (number_in(&note[..8]), number_in(&note[8..])),
            }),
            number,
            run,
            attempt,
            shard,
            name,
        })
    }

    fn expected(&self, length: usize) -> Vec<u8> {
        (0..length as u64).map(|at| ((at + self.number) % 251) as u8).collect()
    }

    /// Every promise about what is on disk, whatever has happened.
    fn check(&self, blows: &Blows) {
        let what = self.attempt.as_str();
        let (out, out_max) = self.noted.unwrap_or_default();
        let log_bytes = self.log.len() as u64;
        assert!(log_bytes <= QUOTA as u64, "{what}: {log_bytes} bytes");
        assert!(self.log == self.expected(self.log.len()), "{what}: the log is no prefix");
        assert!(log_bytes <= out_max, "{what}: {log_bytes} bytes of at most {out_max}");
        if let Some(fact) = &self.fact {
            assert_eq!((&fact.run_id, &fact.attempt_id), (&self.run, &self.attempt));
            let counts = fact.counts.unwrap();
            assert_eq!((counts.start_bytes, counts.kept_bytes), (0, log_bytes), "{what}");
            let stream_bytes = counts.kept_bytes + counts.dropped_bytes;
            assert!((out..=out_max).contains(&stream_bytes), "{what}: {counts:?} {out} {out_max}");
            assert_eq!(fact.quota_reached, stream_bytes > QUOTA as u64, "{what}: {counts:?}");
            assert!(log_bytes == stream_bytes.min(QUOTA as u64), "{what}: {counts:?}");
        }
        let Some(receipt) = &self.receipt else {
            // Or a new dispatcher was so quick as to take the lock of a log that its weir had
            // only just made, and so to keep that weir from running anything.
            let never_ran = self.noted.is_none() && !self.shard.join(self.name.fifo()).exists();
            assert!(blows.killed.contains(what) || never_ran, "{what} has no receipt");
            return;
        };
        let fact = self.fact.as_ref().unwrap_or_else(|| panic!("{what}: a receipt and no fact"));
        let capture = if fact.quota_reached { Capture::Truncated } else { Capture::Complete };
        assert_eq!((receipt.capture, Some(receipt.counts)), (capture, fact.counts), "{what}");
        match receipt.job {
            JobEnd::Ended(End::Code(code)) => {
                let length = LENGTHS[self.number as usize % LENGTHS.len()];
                assert_eq!(u64::from(code), self.number % 5, "{what}");
                // Its child may have been killed before it had written the rest.
                let left_to_child = if self.number % 4 == 2 { length.min(1000) } else { 0 };
                assert!((length - left_to_child..=length).contains(&out), "{what}: {out}");
            }
            JobEnd::Ended(End::Signal { number, .. }) => {
                assert!(blows.signals.contains(&number), "{what} died of {number}");
            }
            JobEnd::NeverStarted(errno) => panic!("{what} never started: {errno}"),
        }
    }

    /// Whether all of its job's output was written.
    fn is_whole(&self) -> bool {
        let length = LENGTHS[self.number as usize % LENGTHS.len()];
        self.noted.is_some_and(|(out, _)| out == length)
    }

    /// The names in its shard that are its own.
    fn names(&self, blows: &Blows) -> BTreeSet<std::ffi::OsString> {
        let mut names = BTreeSet::from([self.name.as_os_str().to_owned()]);
        if self.fact.is_some() {
            names.insert(self.name.fact());
        }
        if blows.killed.contains(self.attempt.as_str()) {
            names.insert(self.name.fifo());
        }
        names
    }

    /// Starts it again under the same ids.
    fn restart(&self, scene: &Scene) {
        let what = self.attempt.as_str();
        let job = scene.job(&self.number.to_string());
        let mut weir = scene.again(self, &job);
        if self.fact.is_some() || self.receipt.is_some() {
            scene.again(self, &["true".into()]).run().refused("log-sealed");
            let same = Attempt::read(scene, self.number, self.last_part()).unwrap();
            assert!(same.log == self.log && same.fact == self.fact, "{what}");
            assert_eq!(same.receipt, self.receipt, "{what}");
            if self.receipt.is_some() {
                return;
            }
            // Killed between its two records.
            weir = weir.flag("fresh");
        }
        weir.run().exits((self.number % 5) as i32);
        let start = if self.fact.is_some() { 0 } else { self.log.len() };
        let length = LENGTHS[self.number as usize % LENGTHS.len()] as usize;
        let kept = length.min(QUOTA - start);
        let now = Attempt::read(scene, self.number, self.last_part()).unwrap();
        assert!(now.log == [&self.log[..start], &self.expected(kept)].concat(), "{what}");
        let fact = now.fact.unwrap();
        let counts = fact.counts.unwrap();
        assert_eq!(fact.quota_reached, kept < length, "{what}");
        assert_eq!((counts.start_bytes, counts.kept_bytes), (start as u64, kept as u64), "{what}");
        assert_eq!(counts.dropped_bytes, (length - kept) as u64, "{what}");
        let end = JobEnd::Ended(End::Code((self.number % 5) as u8));
        assert_eq!(now.receipt.unwrap().job, end, "{what}");
        assert!(!self.shard.join(self.name.fifo()).exists(), "{what}");
    }

    fn last_part(&self) -> u32 {
        self.attempt.as_str().rsplit('.').next().unwrap().parse().unwrap()
    }
}

#[test]
fn whoever_is_killed_what_is_left_is_true_and_can_be_started_again() {
    if !needs("whoever_is_killed", "python3") {
        return;
    }
    let (jobs, blows_max) = match std::env::var_os("WEIR_SOAK") {
        Some(_) => (1000, 1500),
        None => (200, 250),
    };
    let scene = Scene::new(jobs);
    let (blows, status) = scene.run(blows_max, &mut Chance(0x9e37_79b9_7f4a_7c15));
    let told = String::from_utf8_lossy(&scene.place.read("told")).into_owned();
    assert_eq!(status.code(), Some(1), "{told}");
    eventually("everything has ended", || victims(scene.place.path()).is_empty());

    let attempts: Vec<Attempt> = (1..=jobs as u64)
        .flat_map(|number| (1..).map_while(move |n| Some((number, n))).take(1000))
        .filter_map(|(number, n)| Attempt::read(&scene, number, n))
        .collect();
    let mut names: BTreeMap<PathBuf, BTreeSet<std::ffi::OsString>> = BTreeMap::new();
    for attempt in &attempts {
        attempt.check(&blows);
        names.entry(attempt.shard.clone()).or_default().extend(attempt.names(&blows));
    }
    for (shard, names) in &names {
        for entry in std::fs::read_dir(shard).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(names.contains(&name), "{name:?} is nobody's");
        }
    }
    let ended: BTreeSet<u64> =
        attempts.iter().filter(|one| one.receipt.is_some()).map(|one| one.number).collect();
    assert_eq!(ended.len(), jobs, "every job has ended once");
    // A child that is late loses its output only where it was killed itself, which is rare: had
    // weir left before the end, none would have got its last bytes out.
    let exited = |one: &&Attempt| {
        let end = one.receipt.as_ref().map(|receipt| receipt.job);
        one.number % 4 == 2 && matches!(end, Some(JobEnd::Ended(End::Code(_))))
    };
    let late = attempts.iter().filter(exited);
    let (whole, short): (Vec<_>, Vec<_>) = late.partition(|one| one.is_whole());
    assert!(
        whole.len() > short.len(),
        "{} late ones are whole, {} short",
        whole.len(),
        short.len()
    );
    attempts.iter().for_each(|attempt| attempt.restart(&scene));

    let count = |holds: fn(&Attempt) -> bool| attempts.iter().filter(|one| holds(one)).count();
    eprintln!(
        "{jobs} jobs, {} attempts, blows {:?}: {} ended, {} lost ({} of them with a fact); facts: {} \
         true, {} false",
        attempts.len(),
        blows.counts,
        count(|one| one.receipt.is_some()),
        count(|one| one.receipt.is_none()),
        count(|one| one.receipt.is_none() && one.fact.is_some()),
        count(|one| one.fact.as_ref().is_some_and(|fact| fact.quota_reached)),
        count(|one| one.fact.as_ref().is_some_and(|fact| !fact.quota_reached)),
    );
}
