//! Power cuts by the file system's own shutdown: it drops whatever its journal has not
//! put on disk yet, and every later write or sync fails.

use super::attempt::{Attempt, Sync};
use super::{Begun, Dice, Records, Seen, desk, run};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use weir_tests::{Disk, FileSystem, Place, eventually, needs, succeed};

/// FS_IOC_SHUTDOWN with FS_SHUTDOWN_FLAGS_NOLOGFLUSH, for every path on standard input.
const CUTTER: &str = r#"
import fcntl, os, struct, sys
for path in sys.stdin:
    there = os.open(path.rstrip("\n"), os.O_RDONLY)
    fcntl.ioctl(there, 0x8004587D, struct.pack("I", 2))
    os.close(there)
    print("cut", flush=True)
"#;

/// A process that is ready to cut at once.
struct Cutter {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Cutter {
    fn new() -> Cutter {
        let mut python = Command::new("python3");
        python.args(["-c", CUTTER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = python.spawn().unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Cutter { process, orders, answers }
    }

    fn cut(&mut self, mounted: &Path) {
        writeln!(self.orders, "{}", mounted.display()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "cut\n");
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// When the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// As soon as a few attempts, one after the other, have ended: nothing that is put
    /// on disk later can help what the last of them has left out.
    Ended,
    /// While several attempts run beside each other.
    Running,
    /// As soon as a background drainer has published.
    Drained,
}

/// A disk that loses its power again and again.
struct Rounds {
    disk: Disk,
    cutter: Cutter,
    desk: Place,
    sync: Sync,
    dice: Dice,
    next: AtomicU32,
}

impl Rounds {
    fn needed(test: &str, file_system: FileSystem, sync: Sync) -> Option<Rounds> {
        if !needs(test, "python3") {
            return None;
        }
        // Nothing but weir itself puts anything on disk meanwhile.
        let options = if file_system == FileSystem::Ext4 { "commit=300" } else { "" };
        let disk = Disk::needed(test, file_system, options, &[])?;
        let desk = desk();
        desk.program("holder", HOLDER);
        succeed(Command::new("mkfifo").arg(desk.at("gate")));
        let dice = Dice::seeded(test, sync as u64);
        Some(Rounds { disk, cutter: Cutter::new(), desk, sync, dice, next: AtomicU32::new(1) })
    }

    fn attempt(&self) -> Attempt {
        Attempt(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs, cuts, and looks; `count` times.
    fn cut(&mut self, count: usize, when: When, seen: &mut Seen) {
        for _ in 0..count {
            let round = self.next.load(Ordering::Relaxed);
            let under = self.disk.path().join(format!("from-{round}"));
            std::fs::create_dir(&under).unwrap();
            succeed(Command::new("sync").arg("--file-system").arg(&under));
            let begun = match when {
                When::Ended => self.ended(&under),
                When::Running => self.running(&under),
                When::Drained => self.drained(&under),
            };
            // A background drainer may not be quite gone.
            eventually("nobody uses the disk", || {
                let mut unmount = Command::new("umount");
                unmount.arg("--quiet").arg(self.disk.path()).stderr(Stdio::null());
                unmount.status().unwrap().success()
            });
            self.disk.mount();
            seen.look(&format!("{when:?} {}", under.display()), &under, &begun);
            std::fs::remove_dir_all(&under).unwrap();
        }
    }

    fn ended(&mut self, under: &Path) -> Vec<Begun> {
        let mut begun = Vec::new();
        for _ in 0..=self.dice.below(3) {
            let one = run(self.attempt(), &self.desk, (under, self.sync));
            begun.push(one.unwrap());
        }
        self.cutter.cut(&self.disk.path());
        let all_promised = begun.iter().all(|one| one.promised.is_some());
        assert!(all_promised, "a disk with power, and no promise");
        begun
    }

    fn running(&mut self, under: &Path) -> Vec<Begun> {
        let moment = Duration::from_micros(self.dice.below(30_000));
        let (is_cut, begun) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let (next, desk, sync) = (&self.next, &self.desk, self.sync);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_cut.load(Ordering::Relaxed) {
                        let attempt = Attempt(next.fetch_add(1, Ordering::Relaxed));
                        // What cannot even be laid out comes after the cut.
                        let one = run(attempt, desk, (under, sync));
                        begun.lock().unwrap().extend(one);
                    }
                });
            }
            std::thread::sleep(moment);
            self.cutter.cut(&self.disk.path());
            is_cut.store(true, Ordering::Relaxed);
        });
        begun.into_inner().unwrap()
    }

    fn drained(&mut self, under: &Path) -> Vec<Begun> {
        let attempt = self.attempt();
        attempt.prepare(under).unwrap();
        let gate = self.desk.at("gate");
        let weir = attempt.weir(&self.desk, "holder", (under, self.sync));
        let done = weir.env("WEIR_GRACE", "0").env("GATE", &gate).run();
        done.exits(attempt.code());
        assert!(!done.stdout().contains("drained"), "it did not linger: {}", done.stdout());
        std::fs::write(&gate, "go\n").unwrap();
        // It goes when all is published.
        let fifo = attempt.fifo(under);
        eventually("the drainer ends", || !fifo.exists());
        let promised = Records::read(attempt, under);
        self.cutter.cut(&self.disk.path());
        assert!(promised.fact.is_some(), "a disk with power, and no fact");
        vec![Begun { attempt, promised: Some(promised) }]
    }
}

/// The job, while its output is held until the gate opens.
const HOLDER: &str = "#!/bin/sh
{ read -r go <\"$GATE\"; seq -s \",$1,\" 1 \"$2\"; } &
exit \"$3\"
";

fn keep_what_was_acknowledged(test: &str, file_system: FileSystem) {
    let plans = [
        (Sync::Full, [(60, When::Ended), (60, When::Running), (20, When::Drained)]),
        (Sync::Records, [(15, When::Ended), (15, When::Running), (5, When::Drained)]),
        (Sync::None, [(10, When::Ended), (5, When::Running), (5, When::Drained)]),
    ];
    for (sync, plan) in plans {
        let Some(mut rounds) = Rounds::needed(test, file_system, sync) else { return };
        for (count, when) in plan {
            let mut seen = Seen::default();
            rounds.cut(count, when, &mut seen);
            let what = format!("{} --sync {} {when:?}", file_system.name(), sync.name());
            seen.must_be_kept(&what, sync);
        }
    }
}

#[test]
fn ext4_whose_journal_ends() {
    keep_what_was_acknowledged("ext4_whose_journal_ends", FileSystem::Ext4);
}

#[test]
fn xfs_whose_journal_ends() {
    keep_what_was_acknowledged("xfs_whose_journal_ends", FileSystem::Xfs);
}
