//! What weir does on which file system.

use weir_tests::{Disk, FileSystem};

#[test]
fn it_works_where_links_fifos_and_unnamed_files_do() {
    for file_system in [
        FileSystem::Btrfs,
        FileSystem::Ext2,
        FileSystem::Ext3,
        FileSystem::Ext4,
        FileSystem::Ramfs,
        FileSystem::Tmpfs,
        FileSystem::Xfs,
    ] {
        let name = file_system.name();
        let Some(disk) = Disk::needed(name, file_system, "", &[]) else { return };
        let place = disk.place();
        place.weir().option("receipt", place.at("r.json")).sh("echo hi; exit 3").run().exits(3);
        assert_eq!(place.log(), "hi\n", "{name}");
        assert!(!place.fact().quota_reached, "{name}");
        assert_eq!(place.names(), [".l.truncated.json", "l", "r.json"], "{name}");
    }
}
