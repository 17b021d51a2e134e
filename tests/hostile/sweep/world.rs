//! Everything that is in a directory, for comparison.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// One name and what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) inode: u64,
    pub(super) links: u64,
    pub(super) content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Fifo,
    Other,
}

/// All names below a directory; a folder's ends in a slash.
pub(super) type World = BTreeMap<String, Entry>;

pub(super) fn look(directory: &Path) -> World {
    let mut world = World::new();
    add(directory, "", &mut world);
    world
}

fn add(directory: &Path, prefix: &str, world: &mut World) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let status = std::fs::symlink_metadata(entry.path()).unwrap();
        let kind = match status.file_type() {
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_file() => Kind::File,
            kind if kind.is_fifo() => Kind::Fifo,
            _ => Kind::Other,
        };
        let content = match kind {
            Kind::File => std::fs::read(entry.path()).unwrap(),
            _ => Vec::new(),
        };
        // The links of a folder count the folders in it.
        let links = if kind == Kind::Directory { 1 } else { status.nlink() };
        let (mode, inode) = (status.mode() & 0o7777, status.ino());
        let known = Entry { kind, mode, inode, links, content };
        if kind == Kind::Directory {
            let name = format!("{name}/");
            add(&entry.path(), &name, world);
            world.insert(name, known);
        } else {
            world.insert(name, known);
        }
    }
}

/// The names by which two differ, in words.
pub(super) fn differences(before: &World, after: &World) -> Vec<String> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let new = after.keys().filter(|name| !before.contains_key(*name));
    let changed =
        before.iter().filter(|(name, old)| after.get(*name).is_some_and(|new| new != *old));
    gone.map(|name| format!("gone: {name}"))
        .chain(new.map(|name| format!("new: {name}")))
        .chain(changed.map(|(name, _)| format!("changed: {name}")))
        .collect()
}
