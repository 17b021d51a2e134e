//! Quota groups of btrfs: disks that are full for some, of whom root is one.

use crate::full_disks::{fill, records_make_it, weir};
use std::fs::File;
use std::io::Write;
use std::process::Command;
use weir_common::{Capture, Errno};
use weir_tests::{Disk, FileSystem, Place, needs, noise, succeed};

/// A disk with a subvolume `sub` that may hold two megabytes.
fn limited(test: &str) -> Option<(Disk, Place)> {
    if !needs(test, "btrfs") {
        return None;
    }
    let disk = Disk::needed(test, FileSystem::Btrfs, "", &[])?;
    let sub = disk.path().join("sub");
    let btrfs = |words: &[&str]| {
        let mut command = Command::new("btrfs");
        let target = if words[0] == "quota" { disk.path() } else { sub.clone() };
        succeed(command.args(words).arg(target));
    };
    btrfs(&["subvolume", "create"]);
    btrfs(&["quota", "enable"]);
    btrfs(&["qgroup", "limit", "2M"]);
    let place = Place::within(&sub);
    Some((disk, place))
}

#[test]
fn a_quota_group_that_is_met_ends_the_keeping_and_is_told() {
    let Some((disk, place)) = limited("quota_group") else { return };
    let beside = Place::new();
    let content = noise(4 << 20);
    std::fs::write(beside.at("content"), &content).unwrap();
    let weir = beside.bare().option("log", place.at("l")).option("quota", "8M");
    let weir = weir.option("min-free", "0").option("receipt", beside.at("r.json"));
    let done = weir.sh("cat content; exit 5").run();
    done.exits(5);
    let log = place.read("l");
    assert!(log.len() > 1 << 20 && log == content[..log.len()], "{} bytes", log.len());
    let receipt = beside.receipt("r.json");
    assert_eq!(receipt.capture, Capture::Failed(Some(Errno::EDQUOT)));
    assert_eq!(receipt.counts.kept_bytes, log.len() as u64);
    assert_eq!(receipt.counts.dropped_bytes, (content.len() - log.len()) as u64);
    assert_eq!(place.names(), ["l"]);
    assert_eq!(done.stderr().lines().count(), 1, "{done:?}");
    drop(disk);
}

#[test]
fn a_quota_group_that_is_met_when_the_records_are_due_takes_them() {
    let Some((disk, place)) = limited("quota_group") else { return };
    records_make_it("quota group", &place, &disk.path().join("sub/filler"));
}

#[test]
fn a_quota_group_that_is_met_already_is_a_refusal_that_leaves_nothing() {
    let Some((disk, place)) = limited("quota_group") else { return };
    // Without names, so that closing one frees its room even when the group is full.
    let taken = || {
        let mut file = tempfile::tempfile_in(place.path()).unwrap();
        file.write_all(&noise(64 << 10)).unwrap();
        file
    };
    let mut others: Vec<File> = (0..12).map(|_| taken()).collect();
    fill(&disk.path().join("sub/filler"));
    let mut ran_in_the_end = false;
    while !others.is_empty() {
        let beside = Place::new();
        let ran = beside.at("ran");
        let done = weir(&place).sh(&format!(": >{}; echo hi; exit 3", ran.display())).run();
        if !ran.exists() {
            done.refused("capacity-unavailable");
            assert_eq!(place.names(), [""; 0]);
            drop(others.pop());
            continue;
        }
        done.exits(3);
        // The log's own room was not reserved; that of what tells so was.
        if place.receipt("r.json").capture == Capture::Failed(Some(Errno::EDQUOT)) {
            assert_eq!(place.names(), ["l", "r.json"], "{done:?}");
            std::fs::remove_file(place.at("r.json")).unwrap();
            std::fs::remove_file(place.at("l")).unwrap();
            drop(others.pop());
            continue;
        }
        ran_in_the_end = true;
        assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"], "{done:?}");
        assert!(!place.fact().quota_reached);
        break;
    }
    assert!(ran_in_the_end);
}

#[test]
fn btrfs_keeps_nobodys_reserve_in_a_full_quota_group_and_that_is_told() {
    let Some((disk, place)) = limited("quota_group") else { return };
    let beside = Place::new();
    let content = noise(1 << 20);
    std::fs::write(beside.at("content"), &content).unwrap();
    let reserving = |name: &str, quota: &str| {
        let weir = beside.bare().option("log", place.at(name)).option("quota", quota);
        weir.option("min-free", "0").flag("reserve")
    };
    reserving("too-much", "4M").sh("true").run().refused("capacity-unavailable");
    let job = "touch fill; until [ -e filled ]; do sleep 0.01; done; cat content; echo more";
    let running = reserving("l", "1M").sh(job).spawn();
    weir_tests::eventually("the job runs", || beside.at("fill").exists());
    fill(&disk.path().join("sub/filler"));
    fill(&disk.path().join("sub/filler"));
    File::create(beside.at("filled")).unwrap();
    let done = running.wait();
    done.exits(0);
    // Every write there is charged for the nodes of its trees, into allocated room too.
    let log = place.read("l");
    assert!(log.len() < content.len() && log == content[..log.len()], "{} bytes", log.len());
    assert_eq!(place.names(), ["l"]);
    let told = format!("may be incomplete: a write failed after {} bytes: ", log.len());
    assert!(done.stderr().contains(&told), "{done:?}");
}
