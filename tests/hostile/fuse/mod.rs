//! A FUSE file system that answers what a test wants.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use weir_tests::{Place, eventually, needs, needs_root};

/// Debian's, which sees Debian's modules whatever else is installed.
const PYTHON: &str = "/usr/bin/python3";

/// A mounted FUSE file system, and its server; both end when this is dropped.
pub(crate) struct Fuse {
    around: Place,
    server: Child,
}

impl Fuse {
    /// Mounts one that answers as this JSON says (`server.py` tells how); `None` where that
    /// cannot be done. `test` names the test that wants it.
    pub(crate) fn needed(test: &str, answers: &str, options: &[&str]) -> Option<Fuse> {
        if !needs_root(test) || !has_module(test) {
            return None;
        }
        let around = Place::new();
        for name in ["backing", "mounted"] {
            std::fs::create_dir(around.at(name)).unwrap();
            around.set_mode(name, 0o700);
        }
        std::fs::write(around.at("control"), answers).unwrap();
        let server = Command::new(PYTHON)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/hostile/fuse/server.py"))
            .args([around.at("backing"), around.at("mounted"), around.at("control")])
            .args(options)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let fuse = Fuse { around, server };
        let mounted = format!(" {} fuse", fuse.path().display());
        eventually("the FUSE file system is mounted", || {
            std::fs::read_to_string("/proc/mounts").unwrap().contains(&mounted)
        });
        Some(fuse)
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.around.at("mounted")
    }

    /// A weir with the log `l` in its root.
    pub(crate) fn weir(&self) -> weir_tests::Weir {
        let weir = self.around.bare().option("log", self.path().join("l"));
        weir.option("quota", "64K").option("min-free", "0")
    }

    /// What is below it, seen past it.
    pub(crate) fn behind(&self) -> PathBuf {
        self.around.at("backing")
    }

    /// The sorted names below it, seen past it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.behind()).unwrap();
        let mut names: Vec<String> =
            entries.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The directory beside it, for what must not be on it.
    pub(crate) fn beside(&self) -> &Place {
        &self.around
    }

    /// From now on it answers like this.
    pub(crate) fn answer(&self, answers: &str) {
        // Whole at any moment: the server reads it at every call.
        std::fs::write(self.around.at("control.new"), answers).unwrap();
        std::fs::rename(self.around.at("control.new"), self.around.at("control")).unwrap();
    }

    /// Ends the server, and with it every wait for an answer.
    pub(crate) fn kill(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        self.kill();
        let _ = Command::new("umount").args(["--lazy", "--quiet"]).arg(self.path()).status();
    }
}

fn has_module(test: &str) -> bool {
    let mut trial = Command::new(PYTHON);
    let found = trial.args(["-c", "import fusepy"]).stderr(Stdio::null()).status();
    // Said by `needs`, under the name of Debian's package.
    found.is_ok_and(|status| status.success()) || needs(test, "python3-fusepy")
}
