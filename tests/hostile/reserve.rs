//! `--reserve` on every file system that allocates ahead, and refused on the others.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use weir_tests::{Disk, FileSystem, noise, succeed};

const QUOTA: usize = 4 << 20;

#[test]
fn the_reserved_quota_stands_on_a_disk_that_others_have_filled() {
    for (file_system, options) in [
        (FileSystem::Btrfs, ""),
        (FileSystem::Ext4, ""),
        (FileSystem::Tmpfs, "size=16m"),
        (FileSystem::Xfs, ""),
    ] {
        let name = file_system.name();
        let Some(disk) = Disk::needed(name, file_system, options, &[]) else { return };
        let place = disk.place();
        std::fs::write(place.at("content"), noise(QUOTA)).unwrap();
        let reserving = || place.bare().option("min-free", "0").flag("reserve");
        let sectors = || std::fs::metadata(place.at("short")).unwrap().blocks();
        let job = "head -c 5000 content; stat -c %b short >during";
        reserving().option("log", "short").option("quota", "4M").sh(job).run().exits(0);
        let during: u64 = String::from_utf8(place.read("during")).unwrap().trim().parse().unwrap();
        assert!(during >= QUOTA as u64 / 512, "{name}: {during}");
        assert!((10..=16).contains(&sectors()), "{name}: {} sectors stay", sectors());
        assert!(place.read("short") == noise(5000), "{name}");
        assert!(!place.fact_of("short").unwrap().quota_reached, "{name}");

        // To the last byte, in large pieces and then in small ones.
        let fill = "cat /dev/zero >filler 2>/dev/null; sync filler;
            while head -c 512 /dev/zero >>filler; do :; done 2>/dev/null;";
        let job = format!("{fill} cat content; printf more");
        let done = reserving().option("log", "full").option("quota", "4M").sh(&job).run();
        done.exits(0);
        assert!(place.read("full") == noise(QUOTA), "{name}: {done:?}");
        let fact = place.fact_of("full").unwrap_or_else(|| panic!("{name}: {done:?}"));
        assert!(fact.quota_reached, "{name}");

        // Without it, the same disk cuts the log.
        let bare = place.bare().option("min-free", "0");
        std::fs::remove_file(place.at("filler")).unwrap();
        succeed(Command::new("sync").arg("-f").arg(place.path()));
        bare.option("log", "cut").option("quota", "4M").sh(&job).run().exits(0);
        assert!(place.read("cut").len() < QUOTA, "{name}: it was never full");
        assert_eq!(place.fact_of("cut"), None, "{name}");
    }
}

#[test]
fn where_nothing_can_be_allocated_ahead_the_start_is_refused() {
    for file_system in [FileSystem::Ext2, FileSystem::Ext3, FileSystem::Ramfs] {
        let name = file_system.name();
        let Some(disk) = Disk::needed(name, file_system, "", &[]) else { return };
        let place = disk.place();
        place.weir().flag("reserve").sh("true").run().refused("capacity-unavailable");
        assert_eq!(place.names(), [""; 0], "{name}");
    }
}
