//! File systems of a test's own. For root: each in a file, mounted as long as it lives. For
//! anybody: a small one in memory, as long as a script runs.

use crate::binary::weir_binary;
use crate::noise;
use crate::place::Place;
use crate::tools::{needs, needs_namespaces, needs_root};
use std::path::PathBuf;
use std::process::Command;

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FileSystem {
    Btrfs,
    Ext2,
    Ext3,
    Ext4,
    Ramfs,
    Tmpfs,
    Xfs,
}

impl FileSystem {
    /// As mount(8) calls it.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Btrfs => "btrfs",
            FileSystem::Ext2 => "ext2",
            FileSystem::Ext3 => "ext3",
            FileSystem::Ext4 => "ext4",
            FileSystem::Ramfs => "ramfs",
            FileSystem::Tmpfs => "tmpfs",
            FileSystem::Xfs => "xfs",
        }
    }

    /// The bytes of its image; `None` where it has none.
    fn image_bytes(self) -> Option<u64> {
        match self {
            FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => Some(64 << 20),
            FileSystem::Btrfs => Some(128 << 20),
            // Less, and mkfs refuses.
            FileSystem::Xfs => Some(300 << 20),
            FileSystem::Ramfs | FileSystem::Tmpfs => None,
        }
    }
}

/// A mounted file system; unmounted when dropped, whoever still uses it.
pub struct Disk {
    file_system: FileSystem,
    /// Holds the image and the mount point.
    around: Place,
    options: String,
}

impl Disk {
    /// Makes and mounts one, with options of mount(8) (`""` for none) and of mkfs(8);
    /// `None` where that cannot be done. `test` names the test that wants it.
    pub fn needed(
        test: &str,
        file_system: FileSystem,
        options: &str,
        mkfs: &[&str],
    ) -> Option<Disk> {
        let mkfs_name = format!("mkfs.{}", file_system.name());
        let image_bytes = file_system.image_bytes();
        if !needs_root(test) || (image_bytes.is_some() && !needs(test, &mkfs_name)) {
            return None;
        }
        let disk = Disk { file_system, around: Place::new(), options: options.to_owned() };
        std::fs::create_dir(disk.path()).unwrap();
        if let Some(bytes) = image_bytes {
            std::fs::File::create(disk.image()).unwrap().set_len(bytes).unwrap();
            let quiet = if file_system == FileSystem::Ext4 { &["-q"][..] } else { &[] };
            let mut make = Command::new(mkfs_name);
            succeed(make.args(quiet).args(mkfs).arg(disk.image()));
        }
        disk.mount();
        Some(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.around.at("mounted")
    }

    /// The file that it is in.
    pub fn image(&self) -> PathBuf {
        self.around.at("image")
    }

    /// A directory of a test's own on it.
    pub fn place(&self) -> Place {
        Place::within(&self.path())
    }

    /// Mounts it.
    pub fn mount(&self) {
        let name = self.file_system.name();
        let in_image = self.file_system.image_bytes().is_some();
        let source = if in_image { self.image() } else { PathBuf::from("none") };
        let mut options = self.options.clone();
        if in_image {
            options = format!("loop,{options}");
        }
        let mut mount = Command::new("mount");
        if !options.is_empty() {
            mount.args(["-o", options.trim_end_matches(',')]);
        }
        succeed(mount.args(["-t", name]).arg(source).arg(self.path()));
    }

    /// Unmounts it, which nobody may use then.
    pub fn unmount(&self) {
        succeed(Command::new("umount").arg(self.path()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Nothing is mounted after a mount that has failed.
        let _ = Command::new("umount").args(["--lazy", "--quiet"]).arg(self.path()).status();
    }
}

/// Runs a shell script beside a tmpfs of its own of this size, `small`, and the file
/// `content` with a million bytes of noise; `$weir` is the binary. The tmpfs is copied to
/// `out` afterwards. Gives the place and what the script said; `None` where there are no
/// mount namespaces.
pub fn on_small_disk(test: &str, size: &str, script: &str) -> Option<(Place, String)> {
    let unshare = needs_namespaces(test)?;
    let place = Place::new();
    std::fs::create_dir(place.at("small")).unwrap();
    std::fs::create_dir(place.at("out")).unwrap();
    std::fs::write(place.at("content"), noise(1_000_000)).unwrap();
    let script = format!(
        "set -e; mount -t tmpfs -o size={size} t small; set +e\n{script}\ncp -a small/. out"
    );
    let output = Command::new("timeout")
        .args(["-s", "KILL", "60"])
        .args(unshare)
        .args(["sh", "-c", &script])
        .env("weir", weir_binary())
        .current_dir(place.path())
        .output()
        .unwrap();
    let said =
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    Some((place, said))
}

/// Runs a command of the system's that must work.
#[track_caller]
pub fn succeed(command: &mut Command) {
    let done = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(done.status.success(), "{command:?}: {done:?}");
}
