//! Power cuts: acknowledged facts survive, none is ever torn, none claims more than the
//! log holds.
//!
//! Three kinds of them, each of which loses what the others keep: the file system's
//! journal ends in the middle ([`journal`]), writes reach the disk in another order or
//! not at all ([`reordered`]), a whole machine is gone ([`guest`]). Each is also shown to
//! lose what `--sync none` does not put on disk: what can lose nothing proves nothing.

mod attempt;
mod block_log;
mod guest;
mod journal;
mod reordered;

use attempt::{Attempt, JOB, Sync};
use std::path::Path;
use weir_common::sys::process::End;
use weir_common::{Fact, JobEnd, Receipt};
use weir_tests::{Done, Place};

/// Numbers that are the same in every run: the seed is `WEIR_POWER_SEED`, or 1.
struct Dice(u64);

impl Dice {
    fn new(stream: u64) -> Dice {
        Dice(stream.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// Of the seed; what is printed makes a failure repeatable.
    fn seeded(what: &str, stream: u64) -> Dice {
        let seed: u64 = std::env::var("WEIR_POWER_SEED").map_or(1, |seed| seed.parse().unwrap());
        println!("{what}: WEIR_POWER_SEED={seed}");
        Dice::new(seed.wrapping_mul(1000) + stream)
    }

    /// A number below a bound: splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A place off the disk that loses its power, with the job.
fn desk() -> Place {
    let desk = Place::new();
    desk.program("job", JOB);
    desk
}

/// The bytes of an attempt's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Records {
    fact: Option<Vec<u8>>,
    receipt: Option<Vec<u8>>,
}

impl Records {
    fn read(attempt: Attempt, under: &Path) -> Records {
        let receipt = attempt.receipt(under).and_then(|path| content(&path));
        Records { fact: content(&attempt.fact(under)), receipt }
    }
}

/// What a file holds. Without a journal a name may lead to what its inode was before, such
/// as a FIFO, which would be waited for: that holds nothing.
fn content(path: &Path) -> Option<Vec<u8>> {
    match std::fs::symlink_metadata(path).ok()?.is_file() {
        true => std::fs::read(path).ok(),
        false => Some(Vec::new()),
    }
}

/// What a weir that has ended has promised; `None` where it has promised nothing.
fn promised(attempt: Attempt, under: &Path, done: &Done) -> Option<Records> {
    let events = done.stdout();
    // Whatever has become of the disk, the job's end is weir's.
    if events.contains("{\"event\":\"exited\"") {
        done.exits(attempt.code());
    }
    let published = events.matches("{\"event\":\"published\"").count();
    let records = 1 + usize::from(attempt.receipt(under).is_some());
    // A record that is there, but could not be put on disk, comes with a warning.
    let is_safe = published == records && !events.contains("{\"event\":\"warning\"");
    is_safe.then(|| Records::read(attempt, under))
}

/// An attempt that was begun, and what it has promised.
#[derive(Clone)]
struct Begun {
    attempt: Attempt,
    promised: Option<Records>,
}

/// What was seen after power cuts.
#[derive(Default)]
struct Seen {
    cuts: usize,
    attempts: usize,
    promises: usize,
    /// Facts that were there.
    facts: usize,
    /// Promised records that were not.
    lost: Vec<String>,
    /// Records that are torn, or say what is not so.
    false_records: Vec<String>,
    /// Facts whose log does not hold what they claim.
    short_logs: Vec<String>,
}

impl Seen {
    /// Looks at a disk after a cut, which `cut` names.
    fn look(&mut self, cut: &str, under: &Path, begun: &[Begun]) {
        self.cuts += 1;
        for Begun { attempt, promised } in begun {
            self.attempts += 1;
            self.promises += usize::from(promised.is_some());
            let found = Records::read(*attempt, under);
            self.facts += usize::from(found.fact.is_some());
            let which = format!("{cut}: {attempt:?}");
            if let Some(promised) = promised {
                let both = [(&promised.fact, &found.fact), (&promised.receipt, &found.receipt)];
                for (promised, found) in both {
                    match (promised, found) {
                        (Some(_), None) => self.lost.push(which.clone()),
                        (Some(said), Some(says)) if said != says => {
                            self.false_records.push(format!("{which}: it says something else now"));
                        }
                        _ => {}
                    }
                }
            }
            if let Err(why) = must_be_true(*attempt, &found) {
                self.false_records.push(format!("{which}: {why}"));
            }
            let (log, _) = attempt.end();
            let is_short = content(&attempt.log(under)) != Some(log);
            if is_short && (found.fact.is_some() || found.receipt.is_some()) {
                self.short_logs.push(which);
            }
        }
    }

    /// Says how much was seen; one that was never there would be in no danger.
    fn tell(&self, what: &str) {
        println!(
            "{what}: {} cuts, {} attempts, {} promises, {} facts; {} lost, {} false, {} short logs",
            self.cuts,
            self.attempts,
            self.promises,
            self.facts,
            self.lost.len(),
            self.false_records.len(),
            self.short_logs.len()
        );
        assert!(self.promises > 0 || self.cuts == 0, "{what}: nothing was promised");
    }

    /// What `--sync` promises has been kept.
    fn must_be_kept(&self, what: &str, sync: Sync) {
        self.tell(what);
        let nothing: [&str; 0] = [];
        match sync {
            Sync::Full => {
                assert_eq!(self.lost, nothing, "{what}");
                assert_eq!(self.false_records, nothing, "{what}");
                assert_eq!(self.short_logs, nothing, "{what}");
            }
            Sync::Records => {
                assert_eq!(self.lost, nothing, "{what}");
                assert_eq!(self.false_records, nothing, "{what}");
                // Not its promise, and the proof that a short log would be seen.
                assert!(!self.short_logs.is_empty(), "{what}: it cannot see a short log");
            }
            // The proof that what is not put on disk is lost.
            Sync::None => assert!(!self.lost.is_empty(), "{what}: it cannot see a loss"),
        }
    }
}

/// Runs an attempt to its end.
fn run(attempt: Attempt, desk: &Place, (under, sync): (&Path, Sync)) -> std::io::Result<Begun> {
    attempt.prepare(under)?;
    let done = attempt.weir(desk, "job", (under, sync)).run();
    Ok(Begun { attempt, promised: promised(attempt, under, &done) })
}

/// Whatever an attempt's records are, they are whole and say what was.
fn must_be_true(attempt: Attempt, found: &Records) -> Result<(), String> {
    let (_, counts) = attempt.end();
    if let Some(fact) = &found.fact {
        let fact = Fact::decode(fact).map_err(|why| format!("fact: {why}: {fact:?}"))?;
        let is_cut = counts.dropped_bytes > 0;
        if fact.counts != Some(counts) || fact.quota_reached != is_cut || !attempt.has(&fact) {
            return Err(format!("it was {counts:?}, not {fact:?}"));
        }
    }
    if let Some(receipt) = &found.receipt {
        let receipt = Receipt::decode(receipt).map_err(|why| format!("receipt: {why}"))?;
        let code = JobEnd::Ended(End::Code(attempt.code() as u8));
        if receipt.counts != counts || receipt.job != code {
            return Err(format!("it was {counts:?}, not {receipt:?}"));
        }
    }
    Ok(())
}
