//! Power cuts of a disk that writes in whatever order it likes: all that it has flushed
//! is there, and of what came later each page or not.

use super::attempt::{Attempt, Sync};
use super::block_log::{Durable, Event, LoggedDisk, empty_image, mount};
use super::{Begun, Dice, Seen, desk, run};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_tests::{FileSystem, Place, eventually, needs, needs_root, succeed};

/// How many attempts run on the disk, two at a time.
const ATTEMPTS: u32 = 30;

/// A file system, and how large its disk is.
#[derive(Clone, Copy)]
struct Kind {
    file_system: FileSystem,
    bytes: u64,
    /// Whether it is mended before it is mounted after a cut, as a system does at its start.
    is_mended: bool,
}

const EXT4: Kind = Kind { file_system: FileSystem::Ext4, bytes: 64 << 20, is_mended: false };
const XFS: Kind = Kind { file_system: FileSystem::Xfs, bytes: 300 << 20, is_mended: false };
const BTRFS: Kind = Kind { file_system: FileSystem::Btrfs, bytes: 128 << 20, is_mended: false };
/// It has no journal, with which a sync puts more on disk than it was asked to.
const EXT2: Kind = Kind { file_system: FileSystem::Ext2, is_mended: true, ..EXT4 };

/// Runs attempts on a disk, and returns them with all that has happened to it.
fn record(test: &str, kind: Kind, sync: Sync) -> Option<(Vec<Begun>, Vec<Event>)> {
    let name = kind.file_system.name();
    if !needs_root(test) || !needs(test, &format!("mkfs.{name}")) {
        return None;
    }
    let disk = LoggedDisk::needed(test, kind.bytes)?;
    succeed(Command::new(format!("mkfs.{name}")).arg(disk.device()));
    let (desk, next, begun) = (desk(), AtomicU32::new(1), Mutex::new(Vec::new()));
    let mounted = desk.at("mounted");
    std::fs::create_dir(&mounted).unwrap();
    mount(Path::new(disk.device()), "noatime", &mounted);
    succeed(Command::new("sync").arg("--file-system").arg(&mounted));
    disk.mark("start");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let number @ ..=ATTEMPTS = next.fetch_add(1, Ordering::Relaxed) {
                    let one = run(Attempt(number), &desk, (&mounted, sync)).unwrap();
                    assert!(one.promised.is_some(), "a disk with power, and no promise");
                    disk.mark(&number.to_string());
                    begun.lock().unwrap().push(one);
                }
            });
        }
    });
    disk.mark("end");
    succeed(Command::new("umount").arg(&mounted));
    Some((begun.into_inner().unwrap(), disk.events()))
}

/// Where to cut, in order: anywhere, right after a promise, or where the most is pending.
fn cuts(events: &[Event], count: usize, dice: &mut Dice) -> Vec<usize> {
    let is = |event: &Event, text: &str| matches!(event, Event::Mark(mark) if mark == text);
    let start = events.iter().position(|event| is(event, "start")).unwrap() + 1;
    let end = events.iter().position(|event| is(event, "end")).unwrap();
    let all = |is_one: fn(&[Event]) -> bool| -> Vec<usize> {
        let within = (start..end).filter(|at| is_one(&events[at - 1..=*at]));
        within.collect()
    };
    let places = [
        (start..end).collect(),
        all(|pair| matches!(pair, [Event::Mark(_), _])),
        all(|pair| matches!(pair, [Event::Write { .. }, Event::Flush])),
    ];
    let mut pick = |cut: usize| {
        let of: &Vec<usize> = &places[cut % places.len()];
        // Without a flush that puts anything on disk there is no third kind.
        let of = if of.is_empty() { &places[0] } else { of };
        of[dice.below(of.len() as u64) as usize]
    };
    let mut cuts: Vec<usize> = (0..count).map(&mut pick).collect();
    cuts.sort();
    cuts
}

/// What was begun, with the promises that were made before the cut.
fn until(begun: &[Begun], before: &[Event]) -> Vec<Begun> {
    let has_promised = |attempt: Attempt| {
        let mark = attempt.0.to_string();
        before.iter().any(|event| matches!(event, Event::Mark(text) if *text == mark))
    };
    let as_it_was = |one: &Begun| Begun {
        attempt: one.attempt,
        promised: one.promised.clone().filter(|_| has_promised(one.attempt)),
    };
    begun.iter().map(as_it_was).collect()
}

fn reorder(test: &str, kind: Kind, (sync, count): (Sync, usize)) {
    let Some((begun, events)) = record(test, kind, sync) else { return };
    let mut dice = Dice::seeded(test, 100 + sync as u64);
    let (place, mut durable, mut seen) = (Place::new(), Durable::default(), Seen::default());
    let (mut left_out, mut reordered) = (0, 0);
    let mounted = place.at("mounted");
    std::fs::create_dir(&mounted).unwrap();
    for cut in cuts(&events, count, &mut dice) {
        durable.advance(&events, cut);
        let image = empty_image(&place, kind.bytes);
        let lost = durable.image(&image, &events[durable.until..cut], &mut dice);
        (left_out, reordered) = (left_out + lost, reordered + usize::from(lost > 0));
        if kind.is_mended {
            // 1: all that was wrong is mended.
            let done = Command::new("e2fsck").arg("-fy").arg(&image).output().unwrap();
            assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
        }
        mount(&image, "loop,noatime", &mounted);
        let what = format!("{} cut before event {cut}", kind.file_system.name());
        seen.look(&what, &mounted, &until(&begun, &events[..cut]));
        eventually("nobody uses the disk", || {
            Command::new("umount").arg(&mounted).status().unwrap().success()
        });
    }
    let what = format!("{} --sync {}, reordered", kind.file_system.name(), sync.name());
    println!("{what}: {} events; {left_out} pages lost in {reordered} states", events.len());
    seen.must_be_kept(&what, sync);
}

fn keep_what_was_acknowledged(test: &str, kind: Kind) {
    for plan in [(Sync::Full, 100), (Sync::Records, 15), (Sync::None, 15)] {
        reorder(test, kind, plan);
    }
}

#[test]
fn ext4_on_a_disk_that_reorders() {
    keep_what_was_acknowledged("ext4_on_a_disk_that_reorders", EXT4);
}

#[test]
fn ext2_on_a_disk_that_reorders() {
    keep_what_was_acknowledged("ext2_on_a_disk_that_reorders", EXT2);
}

#[test]
fn xfs_on_a_disk_that_reorders() {
    keep_what_was_acknowledged("xfs_on_a_disk_that_reorders", XFS);
}

#[test]
fn btrfs_on_a_disk_that_reorders() {
    keep_what_was_acknowledged("btrfs_on_a_disk_that_reorders", BTRFS);
}
