//! Overlay: a log that comes up from a lower layer, and directories of both.

use std::process::Command;
use weir_tests::{Disk, FileSystem, Place, succeed};

/// A mounted overlay with both its layers on one disk.
pub(crate) struct Overlay {
    // Unmounted first.
    merged: Mounted,
    layers: Place,
    _disk: Disk,
}

struct Mounted(Place);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", "--quiet"]).arg(self.0.path()).status();
    }
}

impl Overlay {
    /// An empty one; `None` where it cannot be had.
    pub(crate) fn needed(test: &str, below: FileSystem) -> Option<Overlay> {
        Overlay::with(test, below, |_| {})
    }

    /// One whose lower layer is prepared first.
    fn with(test: &str, below: FileSystem, prepare: impl FnOnce(&Place)) -> Option<Overlay> {
        let disk = Disk::needed(test, below, "", &[])?;
        let layers = disk.place();
        for name in ["lower", "upper", "work"] {
            std::fs::create_dir(layers.at(name)).unwrap();
        }
        layers.set_mode("lower", 0o700);
        layers.set_mode("upper", 0o700);
        prepare(&layers);
        let merged = Mounted(Place::new());
        let layer = |name: &str| layers.at(name).display().to_string();
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            layer("lower"),
            layer("upper"),
            layer("work")
        );
        let mut mount = Command::new("mount");
        succeed(mount.args(["-t", "overlay", "-o", &options, "overlay"]).arg(merged.0.path()));
        Some(Overlay { merged, layers, _disk: disk })
    }

    /// A directory of a test's own on it.
    pub(crate) fn place(&self) -> Place {
        Place::within(self.merged.0.path())
    }
}
