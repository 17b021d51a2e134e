//! Overlay: a log that comes up from a lower layer, and directories of both.

use std::process::Command;
use weir_tests::{Disk, FileSystem, Place, Weir, eventually, succeed};

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

/// A weir with a log in the merged root.
fn weir(overlay: &Overlay) -> Weir {
    overlay.merged.0.weir()
}

#[test]
fn a_log_that_comes_up_from_a_lower_layer_is_continued_by_one_weir() {
    for below in [FileSystem::Ext4, FileSystem::Tmpfs, FileSystem::Xfs] {
        let with_log = |layers: &Place| {
            std::fs::write(layers.at("lower/l"), "old\n").unwrap();
            layers.set_mode("lower/l", 0o600);
        };
        let Some(overlay) = Overlay::with("comes_up", below, with_log) else { return };
        let merged = &overlay.merged.0;
        let job = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 3";
        let running = weir(&overlay).sh(job).spawn();
        eventually("the first one runs", || merged.log() == "old\none\n");
        for _ in 0..5 {
            weir(&overlay).sh("echo intruder").run().refused("log-busy");
            weir(&overlay).flag("fresh").sh("echo intruder").run().refused("log-busy");
        }
        std::fs::write(merged.at("go"), "").unwrap();
        running.wait().exits(3).says("");
        assert_eq!(merged.log(), "old\none\ntwo\n");
        assert_eq!(overlay.layers.read("lower/l"), b"old\n");
        assert_eq!(merged.fact().counts.expect("version 2").start_bytes, 4);
        assert!(!merged.fact().quota_reached);
        assert_eq!(merged.names(), [".l.truncated.json", "go", "l"]);
    }
}

#[test]
fn of_many_started_together_on_a_lower_log_exactly_one_runs() {
    let with_logs = |layers: &Place| {
        for round in 0..10 {
            std::fs::write(layers.at(&format!("lower/l{round}")), "").unwrap();
            layers.set_mode(&format!("lower/l{round}"), 0o600);
        }
    };
    let Some(overlay) = Overlay::with("together", FileSystem::Ext4, with_logs) else { return };
    let merged = &overlay.merged.0;
    for round in 0..10 {
        let log = format!("l{round}");
        let start = |n: usize| {
            let weir = merged.bare().option("log", &log).option("min-free", "0");
            weir.option("quota", "64K").sh(&format!("echo {n}")).spawn()
        };
        let running: Vec<_> = (0..6).map(start).collect();
        let done: Vec<_> = running.into_iter().map(|one| one.wait()).collect();
        let refused = done.iter().filter(|one| !one.says_nothing());
        for one in refused.clone() {
            let stderr = one.stderr();
            assert!(stderr.contains("[log-busy]") || stderr.contains("[log-sealed]"), "{one:?}");
        }
        assert_eq!(refused.count(), 5, "{done:?}");
        assert_eq!(merged.read(&log).len(), 2);
        assert!(!merged.fact_of(&log).expect("a fact").quota_reached);
    }
}

#[test]
fn what_a_lower_layer_has_counts_as_what_is_there() {
    let with_records = |layers: &Place| {
        std::fs::create_dir_all(layers.at("lower/root/ab")).unwrap();
        layers.set_mode("lower/root", 0o700);
        layers.set_mode("lower/root/ab", 0o700);
        std::fs::write(layers.at("lower/.l.truncated.json"), "{}").unwrap();
        succeed(Command::new("mkfifo").args(["-m", "600"]).arg(layers.at("lower/.m.fifo")));
    };
    let Some(overlay) = Overlay::with("counts", FileSystem::Ext4, with_records) else { return };
    let merged = &overlay.merged.0;
    weir(&overlay).sh("echo hi").run().refused("log-sealed");
    // A killed start's FIFO is removed, and stays in its own layer.
    let weir = || merged.bare().option("quota", "64K").option("min-free", "0");
    weir().option("log", merged.at("m")).sh("echo hi").run().exits(0).says("");
    assert!(!merged.at(".m.fifo").exists() && overlay.layers.at("lower/.m.fifo").exists());
    assert!(!merged.fact_of("m").expect("a fact").quota_reached);
    // A directory of the lower layer takes a log.
    weir().option("log", merged.at("root/ab/n")).sh("echo hi").run().exits(0).says("");
    assert_eq!(merged.read("root/ab/n"), b"hi\n");
    assert!(merged.at("root/ab/.n.truncated.json").exists());
}
