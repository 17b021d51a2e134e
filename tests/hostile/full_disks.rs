//! Disks that are full, or fill up: refused at the start with nothing left, or run and
//! told truly. Records whose room was reserved make it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use weir_common::{Capture, Errno};
use weir_tests::{Disk, FileSystem, Place, Weir, noise};

/// A weir whose receipt is on the same disk as its log.
pub(crate) fn weir(place: &Place) -> Weir {
    place.weir().option("receipt", place.at("r.json"))
}

/// Takes every byte that is left to a file, in ever smaller steps.
pub(crate) fn fill(path: &Path) {
    let mut filler = File::options().append(true).create(true).open(path).unwrap();
    for size in [1 << 20, 64 << 10, 4096, 512, 1] {
        while filler.write_all(&vec![1; size]).is_ok() {}
    }
    // What is promised only, and not yet there, is found out here.
    let _ = filler.sync_all();
}

/// Runs where there may be too little: with nothing left of a refusal, or with everything
/// there that a run must leave. Says whether it ran.
#[track_caller]
fn refused_or_whole(what: &str, place: &Place, before: &[String]) -> bool {
    let beside = Place::new();
    let ran = beside.at("ran");
    let done = weir(place).sh(&format!("echo hi; : >{}; exit 3", ran.display())).run();
    if !ran.exists() {
        done.refused("capacity-unavailable");
        assert_eq!(place.names(), before, "{what}");
        return false;
    }
    done.exits(3);
    let mut names = [&[".l.truncated.json", "l", "r.json"].map(str::to_owned), before].concat();
    names.sort();
    assert_eq!(place.names(), names, "{what}: {done:?}");
    // One byte less than its output is a failure that is told, and no run without a fact.
    assert_eq!(done.stderr(), "", "{what}");
    assert_eq!(place.log(), "hi\n", "{what}");
    assert!(!place.fact().quota_reached, "{what}");
    assert_eq!(place.receipt("r.json").capture, Capture::Complete, "{what}");
    true
}

#[test]
fn however_few_inodes_there_are_it_is_refused_or_whole() {
    // The root and the place take two; then a log, a FIFO, and two records.
    let mut ran = Vec::new();
    for inodes in 3..=10 {
        let options = format!("size=2m,nr_inodes={inodes}");
        let Some(disk) = Disk::needed("few_inodes", FileSystem::Tmpfs, &options, &[]) else {
            return;
        };
        ran.push(refused_or_whole(&options, &disk.place(), &[]));
    }
    assert_eq!(ran, [false, false, false, true, true, true, true, true]);
}

#[test]
fn however_few_inodes_ext4_has_left_it_is_refused_or_whole() {
    let Some(disk) = Disk::needed("few_inodes", FileSystem::Ext4, "", &["-N", "16"]) else {
        return;
    };
    let place = disk.place();
    let others = Place::within(&disk.path());
    let mut taken = 0;
    while File::create(others.at(&taken.to_string())).is_ok() {
        taken += 1;
    }
    let mut ran = Vec::new();
    for free in 0..=6 {
        if free > 0 {
            std::fs::remove_file(others.at(&(free - 1).to_string())).unwrap();
        }
        ran.push(refused_or_whole(&format!("{free} inodes"), &place, &[]));
        for name in place.names() {
            std::fs::remove_file(place.at(&name)).unwrap();
        }
    }
    assert_eq!(ran, [false, false, false, false, true, true, true]);
}

#[test]
fn however_few_bytes_there_are_it_is_refused_or_whole() {
    // The quota of 64 KiB is asked for at the start; 16 pages are that.
    let mut ran = Vec::new();
    for pages in 1..=22 {
        let options = format!("size={}k", pages * 4);
        let Some(disk) = Disk::needed("few_bytes", FileSystem::Tmpfs, &options, &[]) else {
            return;
        };
        ran.push(refused_or_whole(&options, &disk.place(), &[]));
    }
    // No size that is refused is larger than one that is not.
    assert!(ran.is_sorted() && !ran[14] && ran[15], "{ran:?}");
}

/// A log that may still grow by three bytes needs next to no room at admission, so that
/// what is left decides.
#[test]
fn however_few_blocks_are_left_it_is_refused_or_records_what_it_did() {
    for file_system in [FileSystem::Ext4, FileSystem::Ext2, FileSystem::Xfs, FileSystem::Tmpfs] {
        // Without the blocks that only root gets, which weir does not count on.
        let (options, mkfs): (_, &[_]) = match file_system {
            FileSystem::Tmpfs => ("size=8m", &[]),
            FileSystem::Xfs => ("", &[]),
            _ => ("", &["-m", "0"]),
        };
        let Some(disk) = Disk::needed("few_blocks", file_system, options, mkfs) else { return };
        let (name, place) = (file_system.name(), disk.place());
        // Before there is no inode for it any more.
        File::create(place.at("l")).unwrap();
        place.set_mode("l", 0o600);
        let filler = disk.path().join("filler");
        fill(&filler);
        let mut ran = Vec::new();
        while ran.len() < 80 && ran.iter().filter(|ran| **ran).count() < 8 {
            ran.push(replayed(name, &place));
            let cut = File::options().write(true).open(&filler).unwrap();
            cut.set_len(cut.metadata().unwrap().len() - 4096).unwrap();
            // Only then can ext4 use it again.
            cut.sync_all().unwrap();
        }
        assert!(!ran[0] && ran.ends_with(&[true; 8]), "{name}: {ran:?}");
    }
}

/// One start on a log with room for a few bytes more, whatever is left of the disk.
fn replayed(what: &str, place: &Place) -> bool {
    let beside = Place::new();
    let ran = beside.at("ran");
    // A hole: it has a length, and takes no room.
    let log = File::options().write(true).open(place.at("l")).unwrap();
    log.set_len(0).unwrap();
    log.set_len(65_533).unwrap();
    let done = weir(place).sh(&format!(": >{}; echo hi; exit 3", ran.display())).run();
    if !ran.exists() {
        done.refused("capacity-unavailable");
        assert_eq!(place.names(), ["l"], "{what}");
        assert_eq!(place.read("l").len(), 65_533, "{what}");
        return false;
    }
    done.exits(3);
    let receipt = place.receipt("r.json");
    match receipt.capture {
        Capture::Complete => {
            assert!(!place.fact().quota_reached, "{what}");
            assert_eq!(place.read("l").len(), 65_536, "{what}");
        }
        Capture::Failed(Some(Errno::ENOSPC)) => {
            assert_eq!(place.fact_of("l"), None, "{what}");
            assert_eq!(place.names(), ["l", "r.json"], "{what}");
        }
        other => panic!("{what}: {other:?}"),
    }
    for name in place.names().into_iter().filter(|name| name != "l") {
        std::fs::remove_file(place.at(&name)).unwrap();
    }
    true
}

/// The job's output, of which everything is in the log when it fills the disk.
const THEN_FILL: &str = "cat content; until [ $(wc -c <$0) -eq 65536 ]; do sleep 0.01; done; \
    touch fill; until [ -e filled ]; do sleep 0.01; done; exit 5";

/// Fills what a log is on when it has its bytes, before its records are due.
#[track_caller]
pub(crate) fn records_make_it(what: &str, place: &Place, filler: &Path) {
    let beside = Place::new();
    std::fs::write(beside.at("content"), noise(70_000)).unwrap();
    let log = place.at("l").display().to_string();
    let weir = beside.bare().option("log", &log).option("quota", "64K").option("min-free", "0");
    let weir = weir.option("receipt", place.at("r.json"));
    let running = weir.job(&["sh", "-c", THEN_FILL, &log]).spawn();
    weir_tests::eventually("the log has its bytes", || beside.at("fill").exists());
    // Twice: what was promised for the first is free again when it is on disk.
    fill(filler);
    fill(filler);
    File::create(beside.at("filled")).unwrap();
    running.wait().exits(5);
    assert!(place.read("l") == noise(65_536), "{what}");
    assert!(place.fact_of("l").expect(what).quota_reached, "{what}");
    assert_eq!(place.receipt("r.json").capture, Capture::Truncated, "{what}");
    assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"], "{what}");
}

#[test]
fn a_disk_that_is_full_when_the_records_are_due_takes_them() {
    for file_system in [
        FileSystem::Ext2,
        FileSystem::Ext3,
        FileSystem::Ext4,
        FileSystem::Xfs,
        FileSystem::Btrfs,
        FileSystem::Tmpfs,
    ] {
        let options = if file_system == FileSystem::Tmpfs { "size=8m" } else { "" };
        let Some(disk) = Disk::needed("full_at_the_end", file_system, options, &[]) else {
            return;
        };
        records_make_it(file_system.name(), &disk.place(), &disk.path().join("filler"));
    }
}

#[test]
fn a_tmpfs_without_inodes_when_the_records_are_due_takes_them() {
    let Some(disk) = Disk::needed("no_inodes", FileSystem::Tmpfs, "size=2m,nr_inodes=64", &[])
    else {
        return;
    };
    let (place, others) = (disk.place(), Place::within(&disk.path()));
    let job = format!(
        "echo hi; n=0; while : 2>/dev/null >{}/$n; do n=$((n + 1)); done; exit 5",
        others.path().display()
    );
    // A shell ends where it cannot redirect a built-in command that is special.
    weir(&place).sh(&format!("({job}); exit 5")).run().exits(5);
    assert!(!place.fact().quota_reached);
    assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"]);
    assert!(File::create(disk.path().join("one")).is_ok(), "the FIFO's is free again");
    assert!(File::create(disk.path().join("more")).is_err(), "none was to be left");
}
