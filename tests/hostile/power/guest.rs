//! Power cuts of a whole machine: a virtual one, killed in the middle.
//!
//! `images/contract/guest` brings its kernel.

use super::attempt::{Attempt, JOB, Sync};
use super::{Begun, Dice, Records, Seen};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use weir_tests::{Disk, FileSystem, needs, weir_binary};

/// More than run until the power is cut.
const ATTEMPTS: u32 = 100;

/// An emulated machine may hang while it boots: it is started again then, which counts
/// for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the machine runs: `attempt NUMBER CODE RECORDS WORD...`. An attempt is done when
/// weir has ended as its job has, and has published all records.
const ATTEMPT: &str = r#"attempt() {
    number=$1 code=$2 records=$3
    shift 3
    said=$(/mnt/weir run --status-fd 1 "$@")
    [ $? -eq "$code" ] || { echo "it exits with something else: $said"; return; }
    case $said in *warning*) return ;; esac
    [ "$(echo "$said" | grep -c '"event":"published"')" -eq "$records" ] && echo "DONE $number"
}
"#;

fn kernel(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/contract/guest").join(name)
}

/// A program or a script on the machine's disk.
fn put(disk: &Disk, name: &str, content: &[u8]) {
    let path = disk.path().join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A disk with all that the machine needs, not mounted.
fn disk(test: &str, sync: Sync) -> Option<Disk> {
    let disk = Disk::needed(test, FileSystem::Ext4, "", &[])?;
    let (here, there) = (disk.path().join("run"), Path::new("/mnt/run"));
    std::fs::create_dir(&here).unwrap();
    put(&disk, "weir", &std::fs::read(weir_binary()).unwrap());
    put(&disk, "job", JOB.as_bytes());
    let mut go = ATTEMPT.to_owned();
    for attempt in (1..=ATTEMPTS).map(Attempt) {
        attempt.prepare(&here).unwrap();
        let records = 1 + u32::from(attempt.receipt(&here).is_some());
        let words = attempt.words(there, "/mnt/job", sync).join(" ");
        go += &format!("attempt {} {} {records} {words}\n", attempt.0, attempt.code());
    }
    put(&disk, "go", go.as_bytes());
    disk.unmount();
    Some(disk)
}

/// A machine that runs.
struct Machine {
    emulator: Child,
    /// Whole lines of its console, which is always read.
    console: Receiver<String>,
}

impl Machine {
    fn start(disk: &Path) -> Machine {
        // Whoever kills the test has no machine left over.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-user-config"]);
        // Not a smaller one: without its timers the kernel may wait for them for ever.
        qemu.args(["-M", "pc,accel=tcg", "-m", "256"]);
        qemu.args(["-display", "none", "-no-reboot", "-serial", "stdio"]);
        qemu.arg("-kernel").arg(kernel("kernel")).arg("-initrd").arg(kernel("initrd"));
        qemu.args(["-append", "console=ttyS0 panic=-1 quiet no_timer_check lpj=4000000"]);
        let drive = format!("id=d,file={},format=raw,if=none,cache=writeback", disk.display());
        qemu.args(["-drive", &drive, "-device", "virtio-blk-pci,drive=d"]);
        let mut emulator = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stream = BufReader::new(emulator.stdout.take().unwrap());
        let (told, console) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|_| line.ends_with(b"\n")) {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                // Whoever has stopped listening has seen enough.
                let _ = told.send(text);
                line.clear();
            }
        });
        Machine { emulator, console }
    }

    /// Waits until it has told so many lines that begin like this; returns all lines, and
    /// whether it has.
    fn tells(&self, count: usize, what: &str) -> (Vec<String>, bool) {
        let deadline = Instant::now() + PATIENCE;
        let (mut told, mut times) = (Vec::new(), 0);
        while times < count {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.console.recv_timeout(left) else { return (told, false) };
            times += usize::from(line.starts_with(what));
            told.push(line);
        }
        (told, true)
    }

    /// Cuts its power, and returns what it has told by then.
    fn cut(mut self) -> Vec<String> {
        self.emulator.kill().unwrap();
        self.emulator.wait().unwrap();
        self.console.iter().collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

/// One power cut, somewhat after so many attempts are done; `None` where the machine has
/// not booted.
fn cut(disk: &Disk, done: usize, later: Duration) -> Option<Vec<Begun>> {
    let machine = Machine::start(&disk.image());
    if let (told, false) = machine.tells(1, "READY") {
        println!("a machine has not booted: {told:?}");
        return None;
    }
    let (mut told, is_done) = machine.tells(done, "DONE ");
    assert!(is_done, "it never came so far: {told:?}");
    std::thread::sleep(later);
    told.extend(machine.cut());
    let strange: Vec<&String> = told.iter().filter(|line| !line.starts_with("DONE ")).collect();
    assert!(strange.is_empty(), "{strange:?}");
    disk.mount();
    let under = disk.path().join("run");
    let begun = (1..=ATTEMPTS).map(Attempt).map(|attempt| {
        let is_done = told.contains(&format!("DONE {}", attempt.0));
        // That there are records was told, not what they say.
        let found = Records::read(attempt, &under);
        let promised = is_done.then(|| Records {
            fact: Some(found.fact.unwrap_or_default()),
            receipt: attempt.receipt(&under).map(|_| found.receipt.unwrap_or_default()),
        });
        Begun { attempt, promised }
    });
    Some(begun.collect())
}

fn cuts(test: &str, sync: Sync, count: usize) {
    let needed = ["qemu-system-x86_64", kernel("initrd").to_str().unwrap()].map(str::to_owned);
    if !needed.iter().all(|tool| needs(test, tool)) {
        return;
    }
    let mut dice = Dice::seeded(test, 200 + sync as u64);
    let (mut seen, mut boots) = (Seen::default(), 0);
    while seen.cuts < count {
        boots += 1;
        assert!(boots <= count + 5, "it does not boot");
        let Some(disk) = disk(test, sync) else { return };
        let done = 1 + dice.below(16) as usize;
        // None, every other time: then nothing that comes later can help.
        let later = Duration::from_millis(dice.below(2) * dice.below(100));
        if let Some(begun) = cut(&disk, done, later) {
            seen.look(&format!("boot {boots}"), &disk.path().join("run"), &begun);
        }
    }
    println!("guest --sync {}: {boots} boots", sync.name());
    seen.must_be_kept(&format!("guest --sync {}", sync.name()), sync);
}

#[test]
fn a_machine_that_is_killed_keeps_what_was_acknowledged() {
    cuts("a_machine_that_is_killed_keeps_what_was_acknowledged", Sync::Full, 20);
}

#[test]
fn a_machine_that_is_killed_loses_what_is_not_put_on_disk() {
    cuts("a_machine_that_is_killed_loses_what_is_not_put_on_disk", Sync::None, 3);
}
