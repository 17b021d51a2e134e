//! Names planted and swapped between any two of weir's calls: each attack is a test, and
//! is made at every moment.
//!
//! strace stops weir behind its n-th call of a kind; the attacker strikes, and weir goes on.

mod planted;
mod swapped;

use std::path::Path;
use std::process::{Command, Stdio};
use weir_common::Fact;
use weir_tests::{Done, Place, Weir, eventually};

/// What the job prints.
const OUTPUT: &str = "hi\nerr\n";
/// What is in the files that the attacker wants to be overwritten or removed.
const SAFE: &str = "safe\n";

/// Every call of weir's that has to do with names, or with what has them.
const CALLS: &str = "openat,newfstatat,fstat,fstatfs,flock,fchmod,mknodat,linkat,renameat2,\
                     unlinkat,fallocate,ftruncate,fsync,fdatasync";

/// Behind the n-th call of this name, and how many calls before it that was.
#[derive(Clone, Debug)]
struct Moment {
    call: String,
    nth: usize,
    at: usize,
}

/// One run and its attacker.
struct Scene<'s> {
    /// The words in front of the attacker's shell.
    attacker: &'s [&'s str],
    /// strace's own options: whom weir runs as.
    user: &'s [&'s str],
    /// Prepares the place.
    prepare: &'s dyn Fn(&Place),
    /// What the attacker does, for `sh -c`.
    attack: &'s str,
}

/// What has become of it.
struct Outcome {
    place: Place,
    done: Done,
    /// Whether the log was proven to be intact before the attacker struck.
    proven: bool,
}

impl Scene<'_> {
    /// Makes the attack at every moment of a run, and has each outcome looked at.
    fn sweep(&self, judge: impl Fn(&Outcome)) {
        let (moments, proof_at) = self.moments();
        assert!(moments.len() > 20, "{moments:?}");
        for moment in &moments {
            let outcome = self.strike(moment, moment.at >= proof_at);
            outcome.must_be_sound(&format!("{} at {moment:?}", self.attack));
            judge(&outcome);
        }
        println!("{} moments: {}", moments.len(), self.attack);
    }

    fn place(&self) -> Place {
        let place = Place::new();
        (self.prepare)(&place);
        place
    }

    fn weir(&self, place: &Place, inject: Option<&str>) -> Weir {
        let calls = format!("trace={CALLS}");
        let mut under = vec!["strace", "-qq", "-o", "trace", "-e", &calls];
        under.extend(self.user);
        under.extend(inject.into_iter().flat_map(|inject| ["-e", inject]));
        under.push("--");
        let weir = place.weir().option("log", "l").option("receipt", "r.json");
        weir.sh("echo hi; echo err >&2; exit 7").under(&under)
    }

    /// The moments of an undisturbed run, and at which of them the log is proven.
    fn moments(&self) -> (Vec<Moment>, usize) {
        let place = self.place();
        self.weir(&place, None).run().exits(7);
        let trace = String::from_utf8(place.read("trace")).unwrap();
        let calls: Vec<&str> = trace.lines().filter(|line| line.contains('(')).collect();
        let name = |line: &str| line.split('(').next().unwrap().to_owned();
        let moment = |(at, line): (usize, &&str)| {
            let call = name(line);
            let nth = calls[..=at].iter().filter(|before| name(before) == call).count();
            Moment { call, nth, at }
        };
        let proof = |line: &&str| line.starts_with("newfstatat(") && line.contains(", \"l\", ");
        let proof_at = calls.iter().rposition(proof).expect("the log is looked at");
        (calls.iter().enumerate().map(moment).collect(), proof_at)
    }

    fn strike(&self, moment: &Moment, proven: bool) -> Outcome {
        let place = self.place();
        let inject = format!("inject={}:signal=SIGSTOP:when={}", moment.call, moment.nth);
        let mut running = self.weir(&place, Some(&inject)).spawn();
        let stopped = || {
            let trace = std::fs::read_to_string(place.at("trace")).unwrap_or_default();
            trace.contains("stopped by SIGSTOP")
        };
        eventually("weir is stopped, or has ended", || stopped() || !running.runs());
        if stopped() {
            let strace = running.pid();
            let children = format!("/proc/{strace}/task/{strace}/children");
            let weir = std::fs::read_to_string(children).unwrap();
            let mut shell = Command::new(self.attacker.first().unwrap_or(&"sh"));
            let rest = self.attacker.iter().skip(1).copied();
            let words = match self.attacker {
                [] => vec!["-c", self.attack],
                _ => rest.chain(["sh", "-c", self.attack]).collect(),
            };
            shell.args(words).current_dir(place.path()).stderr(Stdio::null());
            shell.status().unwrap();
            weir_tests::send("CONT", weir.trim().parse().unwrap());
        }
        let done = running.wait();
        Outcome { place, done, proven }
    }
}

impl Outcome {
    /// What must hold whoever does whatever: weir refuses or runs the job, nothing that
    /// the attacker points at is touched, and no fact lies.
    fn must_be_sound(&self, attack: &str) {
        let Outcome { place, done, .. } = self;
        let context = format!("{attack}: {done:?} {:?}", place.names());
        match done.stderr().contains("weir: error[") {
            true => assert_eq!(done.code(), Some(125), "{context}"),
            false => assert_eq!(done.code(), Some(7), "{context}"),
        }
        assert_eq!(place.read("victim"), SAFE.as_bytes(), "{context}");
        assert_eq!(place.mode("victim"), 0o644, "{context}");
        if let Some(fact) = published(&place.at(".l.truncated.json")) {
            assert!(!fact.quota_reached, "{context}");
            self.must_be_complete(&fact, &context);
        }
    }

    /// The log that the fact speaks of holds every byte, unless it was changed after that
    /// was proven.
    fn must_be_complete(&self, fact: &Fact, context: &str) {
        if self.proven {
            return;
        }
        let log = self.place.at("l");
        assert!(log.symlink_metadata().unwrap().is_file(), "{context}");
        let (content, counts) = (self.place.read("l"), fact.counts.unwrap());
        assert_eq!(content.len() as u64, counts.start_bytes + counts.kept_bytes, "{context}");
        let text = String::from_utf8_lossy(&content);
        assert!(text.ends_with(OUTPUT), "{context}: {text:?}");
    }
}

/// A fact, if it is one: what an attacker has put there may be anything.
fn published(path: &Path) -> Option<Fact> {
    let is_file = path.symlink_metadata().is_ok_and(|status| status.is_file());
    is_file.then(|| Fact::read(path).ok().flatten()).flatten()
}

/// A place with something to lose.
fn with_victim(place: &Place) {
    std::fs::write(place.at("victim"), SAFE).unwrap();
    place.set_mode("victim", 0o644);
}

/// Whether strace can stop a weir of any user.
fn possible(test: &str) -> bool {
    weir_tests::needs_root(test) && weir_tests::needs(test, "strace")
}
