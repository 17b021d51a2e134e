//! Disks that turn read-only, die or freeze under a log that is being written.

use crate::stage::Stage;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use weir_common::Capture;
use weir_tests::{Disk, FileSystem, Place, Running, eventually, needs, succeed};

/// A weir on a disk of its own, beside which the job and the receipt are.
struct Scene {
    beside: Place,
    log: Place,
    stage: Stage,
    running: Option<Running>,
}

impl Scene {
    /// Runs it up to the moment at which the disk is to die.
    fn set(disk: &Disk, stage: Stage) -> Scene {
        let (beside, log) = (Place::new(), disk.place());
        let weir = beside.bare().option("log", log.at("l")).option("min-free", "0");
        let weir = weir.option("quota", "64K").option("receipt", beside.at("r.json"));
        let weir = weir.option("grace", "0").flag("quiet");
        let mut running = Some(weir.sh(&stage.job()).spawn());
        eventually("the log has its first bytes", || {
            std::fs::read(log.at("l")).is_ok_and(|log| log == b"one\n")
        });
        if stage.is_background() {
            running.take().unwrap().wait().exits(3);
        }
        Scene { beside, log, stage, running }
    }

    fn go(&self) {
        std::fs::write(self.beside.at("go"), "").unwrap();
        eventually("the job has come to its end", || self.beside.at("done").exists());
    }

    /// Sees it through to the receipt, which is on a disk that lives.
    #[track_caller]
    fn ends(&mut self) -> Capture {
        if let Some(running) = self.running.take() {
            let done = running.wait();
            done.exits(3);
            assert!(!done.stderr().contains("panicked"), "{done:?}");
            assert!(done.stderr().lines().count() <= 1, "{done:?}");
        }
        eventually("the receipt is there", || self.beside.at("r.json").exists());
        self.beside.receipt("r.json").capture
    }
}

/// What a disk that has come back may hold of a log whose capture has failed.
#[track_caller]
fn nothing_false(disk: &Disk, scene: Scene, what: &str) {
    let Scene { log, stage, .. } = scene;
    // It is held until its last user, perhaps a drainer that is about to leave, is gone.
    eventually("the disk can be unmounted", || {
        Command::new("umount").arg("--quiet").arg(disk.path()).status().unwrap().success()
    });
    disk.mount();
    let fact = weir_common::Fact::read(&log.at(".l.truncated.json")).unwrap();
    assert_eq!(fact, None, "{what}");
    if let Ok(log) = std::fs::read(log.at("l")) {
        assert!(stage.log().as_bytes().starts_with(&log), "{what}: {log:?}");
    }
}

/// Runs every stage on a fresh disk that `kill` ends.
fn on_a_disk_that_dies(test: &str, file_system: FileSystem, options: &str, kill: impl Fn(&Disk)) {
    for stage in Stage::ALL {
        let Some(disk) = Disk::needed(test, file_system, options, &[]) else { return };
        let what = format!("{} {stage:?}", file_system.name());
        let mut scene = Scene::set(&disk, stage);
        kill(&disk);
        scene.go();
        let capture = scene.ends();
        assert!(matches!(capture, Capture::Failed(Some(_))), "{what}: {capture:?}");
        nothing_false(&disk, scene, &what);
    }
}

#[test]
fn a_disk_that_turns_read_only_costs_the_fact_and_nothing_else() {
    let turn = |disk: &Disk| {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let path = disk.path().display().to_string();
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(&path)).unwrap();
        let device = line.split(' ').next().unwrap().trim_start_matches("/dev/");
        let trigger = format!("/sys/fs/ext4/{device}/trigger_fs_error");
        std::fs::write(trigger, "1").unwrap();
    };
    on_a_disk_that_dies("read_only", FileSystem::Ext4, "errors=remount-ro", turn);
}

#[test]
fn a_disk_that_dies_costs_the_fact_and_nothing_else() {
    let test = "a_disk_that_dies";
    if !needs(test, "xfs_io") {
        return;
    }
    for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
        on_a_disk_that_dies(test, file_system, "", |disk| {
            succeed(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(disk.path()));
        });
    }
}

/// A frozen disk. It is thawed when this is dropped, when the test is killed, and in any
/// case after a while: whoever waits for it cannot be killed.
struct Frozen {
    watchdog: Child,
}

impl Frozen {
    fn freeze(disk: &Path) -> Frozen {
        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", "timeout 30 cat; exec fsfreeze --unfreeze \"$0\""]).arg(disk);
        let frozen = Frozen { watchdog: watchdog.stdin(Stdio::piped()).spawn().unwrap() };
        succeed(Command::new("fsfreeze").arg("--freeze").arg(disk));
        frozen
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

/// Whether a process that has this file open waits in the kernel.
fn somebody_waits_with(log: &Path) -> bool {
    let identity = std::fs::metadata(log).unwrap();
    let is_log = |fd: &Path| {
        std::fs::metadata(fd)
            .is_ok_and(|one| (one.dev(), one.ino()) == (identity.dev(), identity.ino()))
    };
    let list = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    list(Path::new("/proc")).any(|process| {
        list(&process.path().join("fd")).any(|fd| is_log(&fd.path()))
            && list(&process.path().join("task")).any(|task| {
                std::fs::read_to_string(task.path().join("stat"))
                    .is_ok_and(|stat| stat.contains(") D "))
            })
    })
}

#[test]
fn a_disk_that_freezes_and_thaws_has_everything_in_the_end() {
    let test = "freezes";
    if !needs(test, "fsfreeze") {
        return;
    }
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        for stage in Stage::ALL {
            let Some(disk) = Disk::needed(test, file_system, "", &[]) else { return };
            let what = format!("{} {stage:?}", file_system.name());
            let mut scene = Scene::set(&disk, stage);
            let path = disk.path();
            let frozen = Frozen::freeze(&path);
            // The job comes to its end, whoever waits for the disk.
            scene.go();
            eventually("weir waits for the disk", || somebody_waits_with(&scene.log.at("l")));
            assert!(!scene.beside.at("r.json").exists(), "{what}");
            drop(frozen);
            assert_eq!(scene.ends(), Capture::Complete, "{what}");
            assert_eq!(scene.log.log(), stage.log(), "{what}");
            assert!(!scene.log.fact().quota_reached, "{what}");
            eventually("nothing else is left", || scene.log.names() == [".l.truncated.json", "l"]);
        }
    }
}
