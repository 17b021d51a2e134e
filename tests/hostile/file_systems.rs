//! What weir does on which file system: the table in the README, measured.

use crate::fuse::Fuse;
use crate::overlay::Overlay;
use std::path::Path;
use weir_tests::{Disk, FileSystem, Place, needs};

/// What strace saw of the records' way to their names, as the README tells it.
fn measured(trace: &str) -> [&'static str; 3] {
    let call = |what: &str| trace.lines().rfind(|line| line.contains(what));
    let way =
        match (call(".l.truncated.json\", AT_EMPTY_PATH"), call(".l.truncated.json\", 0) = 0")) {
            (Some(named), _) if named.ends_with("= 0") => "link of an unnamed file",
            (_, Some(named)) if named.contains("linkat") => "link of a draft",
            _ => "neither",
        };
    let room = match call("fallocate(") {
        Some(reserved) if reserved.ends_with("= 0") => "allocated",
        Some(_) => "written",
        None => "not asked for",
    };
    let synced = |line: &&str| line.contains("fsync(") || line.contains("fdatasync(");
    let mut syncs = trace.lines().filter(synced).peekable();
    let sync = match (syncs.peek().is_some(), syncs.all(|line| line.ends_with("= 0"))) {
        (true, true) => "accepted",
        (true, false) => "refused",
        (false, _) => "not asked for",
    };
    [way, room, sync]
}

/// Runs a job with its log in this directory, and says how its row in the README must be.
fn row(name: &str, directory: &Path) -> String {
    let beside = Place::new();
    let trace = beside.at("trace");
    let calls = "trace=linkat,renameat2,fallocate,fsync,fdatasync";
    let under = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-e", calls];
    let weir = beside.bare().option("log", directory.join("l")).option("min-free", "0");
    let weir = weir.option("quota", "64K").option("receipt", directory.join("r.json"));
    let done = weir.sh("echo hi; exit 3").under(&under).run();
    if done.stderr().is_empty() {
        done.exits(3);
        assert_eq!(std::fs::read(directory.join("l")).unwrap(), b"hi\n", "{name}");
        let fact = weir_common::Fact::read(&directory.join(".l.truncated.json")).unwrap();
        assert!(!fact.expect("a fact").quota_reached, "{name}");
        assert_eq!(names(directory), [".l.truncated.json", "l", "r.json"], "{name}");
        let [way, room, sync] = measured(&text(&trace));
        return format!("| {name} | {way} | {room} | {sync} |");
    }
    let stderr = done.stderr();
    let code = stderr.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    done.refused(&code);
    assert_eq!(names(directory), [""; 0], "{name}");
    format!("| {name} | refused: `{code}` | | |")
}

fn text(trace: &Path) -> String {
    std::fs::read_to_string(trace).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The rows of the README's table, below its heading.
fn told() -> Vec<String> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"));
    let readme = readme.unwrap();
    let table = readme.lines().skip_while(|line| !line.starts_with("| file system |"));
    table.skip(2).take_while(|line| line.starts_with('|')).map(str::to_owned).collect()
}

fn rows() -> Option<Vec<String>> {
    let mut rows = Vec::new();
    for (file_system, name) in [
        (FileSystem::Ext4, "ext4"),
        (FileSystem::Xfs, "xfs"),
        (FileSystem::Btrfs, "btrfs"),
        (FileSystem::Tmpfs, "tmpfs (in memory)"),
        (FileSystem::Ext3, "ext3"),
        (FileSystem::Ext2, "ext2"),
        (FileSystem::Ramfs, "ramfs (in memory)"),
    ] {
        let disk = Disk::needed("the_table", file_system, "", &[])?;
        rows.push(row(name, disk.place().path()));
    }
    for (file_system, name) in [
        (FileSystem::Ext4, "overlay, its upper layer on ext4"),
        (FileSystem::Tmpfs, "overlay, its upper layer on tmpfs"),
    ] {
        let overlay = Overlay::needed("the_table", file_system)?;
        rows.push(row(name, overlay.place().path()));
    }
    let no_links = r#"{"link": {"errno": 1}}"#;
    let no_fifos = r#"{"mknod": {"errno": 1}}"#;
    let no_statfs = r#"{"statfs": {"errno": 5}}"#;
    for (answers, name) in [
        ("{}", "FUSE (protocol of libfuse 2)"),
        (no_links, "the same, without links"),
        (no_fifos, "the same, without FIFOs"),
        (no_statfs, "the same, without an answer to statfs"),
    ] {
        let fuse = Fuse::needed("the_table", answers, &["use_ino"])?;
        rows.push(row(name, &fuse.path()));
    }
    Some(rows)
}

#[test]
fn the_readmes_table_of_file_systems_is_true() {
    if !needs("the_readmes_table", "strace") {
        return;
    }
    if let Some(rows) = rows() {
        assert_eq!(rows, told());
    }
}
