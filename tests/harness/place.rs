//! A directory of a test's own, and what is in it.

use crate::weir::Weir;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use weir_common::{Fact, Receipt};

/// A private directory, removed after the test.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Default for Place {
    fn default() -> Place {
        Place::new()
    }
}

impl Place {
    /// An empty directory.
    pub fn new() -> Place {
        Place::within(&std::env::temp_dir())
    }

    /// The same in another directory than the system's for temporary files.
    pub fn within(directory: &Path) -> Place {
        Place { directory: tempfile::Builder::new().prefix("weir-").tempdir_in(directory).unwrap() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The path of a name in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// A weir that logs to `l` here, with the smallest quota.
    pub fn weir(&self) -> Weir {
        self.bare().option("log", self.at("l")).option("quota", "64K").option("min-free", "0")
    }

    /// A weir without any option.
    pub fn bare(&self) -> Weir {
        Weir::new(self.path())
    }

    /// A file's whole content.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// The log `l`, as text.
    #[track_caller]
    pub fn log(&self) -> String {
        String::from_utf8(self.read("l")).unwrap()
    }

    /// The fact of the log `l`, which must be there.
    #[track_caller]
    pub fn fact(&self) -> Fact {
        self.fact_of("l").expect("a fact")
    }

    /// The fact of a log, if there is one.
    #[track_caller]
    pub fn fact_of(&self, log: &str) -> Option<Fact> {
        Fact::read(&self.at(&format!(".{log}.truncated.json"))).unwrap()
    }

    /// The receipt with this name, which must be there.
    #[track_caller]
    pub fn receipt(&self, name: &str) -> Receipt {
        Receipt::read(&self.at(name)).unwrap().expect("a receipt")
    }

    /// Everything below, as sorted relative paths; directories end in a slash.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        list(self.path(), "", &mut names);
        names.sort();
        names
    }

    /// The permission bits of a name.
    pub fn mode(&self, name: &str) -> u32 {
        std::fs::symlink_metadata(self.at(name)).unwrap().mode() & 0o7777
    }

    /// Sets the permission bits of a name.
    pub fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.at(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    /// A program of the test's own, executable.
    pub fn program(&self, name: &str, content: &str) -> PathBuf {
        std::fs::write(self.at(name), content).unwrap();
        self.set_mode(name, 0o755);
        self.at(name)
    }
}

fn list(directory: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            list(&entry.path(), &format!("{name}/"), names);
            names.push(format!("{name}/"));
        } else {
            names.push(name);
        }
    }
}
