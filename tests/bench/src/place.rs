//! The folder that logs and reports are kept in while something is measured.

use crate::Fallible;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A new folder, removed with everything in it at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(below: &Path) -> Fallible<Scratch> {
        std::fs::create_dir_all(below)?;
        let path = below.canonicalize()?.join(format!("scratch-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }

    /// Where a file of this name is.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Puts a script there.
    pub(crate) fn script(&self, name: &str, text: &str) -> Fallible<PathBuf> {
        let path = self.at(name);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o755))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(why) = std::fs::remove_dir_all(&self.0) {
            eprintln!("weir-bench: cannot remove {}: {why}", self.0.display());
        }
    }
}
