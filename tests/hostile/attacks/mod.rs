//! Names planted and swapped between any two of weir's calls: each attack is a test, and
//! is made at every moment.
//!
//! strace stops weir behind its n-th call of a kind; the attacker strikes, and weir goes on.

mod planted;
mod swapped;

use std::os::unix::fs::MetadataExt;
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
    /// As strace has written it down.
    line: String,
    call: String,
    nth: usize,
    at: usize,
    /// The next call removes a name that this one has looked at: nothing can come in
    /// between for weir to notice, since no system has one call for both.
    is_blind: bool,
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
    /// The names that the attacker has made, with what they led to.
    planted: Vec<Named>,
    /// Whether the log was proven to be intact before the attacker struck.
    proven: bool,
}

/// A name, and the inode, mode and owner of what it leads to.
type Named = (String, u64, u32, u32);

impl Scene<'_> {
    /// Makes the attack at every moment of a run, and looks at each outcome.
    fn sweep(&self) {
        let (moments, proof_at) = self.moments();
        assert!(moments.len() > 20, "{moments:?}");
        let mut planted = 0;
        for moment in &moments {
            let outcome = self.strike(moment, moment.at >= proof_at);
            let context = format!("{} at {moment:?}", self.attack);
            outcome.must_be_sound(&context);
            if !moment.is_blind {
                outcome.must_have_left_what_was_planted(&context);
            }
            planted += outcome.planted.len();
        }
        println!("{} moments, {planted} names planted: {}", moments.len(), self.attack);
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
            let is_blind = calls.get(at + 1).is_some_and(|next| next.starts_with("unlinkat("));
            Moment { line: (*line).to_owned(), call, nth, at, is_blind }
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
        let mut planted = Vec::new();
        if stopped() {
            let strace = running.pid();
            let children = format!("/proc/{strace}/task/{strace}/children");
            let weir = std::fs::read_to_string(children).unwrap();
            let before = named(&place);
            self.attack(&place);
            planted = named(&place).into_iter().filter(|one| !before.contains(one)).collect();
            planted.retain(|one| !self.is_weirs_by_right(one));
            weir_tests::send("CONT", weir.trim().parse().unwrap());
        }
        let done = running.wait();
        Outcome { place, done, planted, proven }
    }

    fn attack(&self, place: &Place) {
        let words = [self.attacker, &["sh", "-c", self.attack]].concat();
        let mut shell = Command::new(words[0]);
        shell.args(&words[1..]).current_dir(place.path()).stderr(Stdio::null());
        // What cannot be done at this moment is no attack.
        shell.status().unwrap();
    }

    /// Whether weir may take it for what a killed start of the same user has left, or
    /// rightly writes to it.
    fn is_weirs_by_right(&self, (name, _, mode, _): &Named) -> bool {
        let (is_fifo, is_file) = (mode & 0o170000 == 0o010000, mode & 0o170000 == 0o100000);
        let own = self.attacker.is_empty();
        own && (name == ".l.fifo" && is_fifo || name == ".l.truncated.tmp" && is_file)
    }
}

/// What there is.
fn named(place: &Place) -> Vec<Named> {
    let names = place.names().into_iter().map(|name| name.trim_end_matches('/').to_owned());
    let look = |name: String| {
        let status = place.at(&name).symlink_metadata().ok()?;
        Some((name, status.ino(), status.mode(), status.uid()))
    };
    names.filter_map(look).collect()
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
        for name in ["victim", "theirs"] {
            assert_eq!(place.read(name), SAFE.as_bytes(), "{context}");
        }
        assert_eq!(place.mode("victim"), 0o644, "{context}");
        if let Some(fact) = published(&place.at(".l.truncated.json")) {
            assert!(!fact.quota_reached, "{context}");
            self.must_be_complete(&fact, &context);
        }
    }

    fn must_have_left_what_was_planted(&self, attack: &str) {
        let now = named(&self.place);
        for one in &self.planted {
            assert!(now.contains(one), "{attack}: {one:?} is gone: {now:?} {:?}", self.done);
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

/// A place with something to lose: a file that only its owner may write, and another.
fn with_victim(place: &Place) {
    for name in ["victim", "theirs"] {
        std::fs::write(place.at(name), SAFE).unwrap();
    }
    place.set_mode("victim", 0o644);
}

/// Whether strace can stop a weir of any user.
fn possible(test: &str) -> bool {
    weir_tests::needs_root(test) && weir_tests::needs(test, "strace")
}
