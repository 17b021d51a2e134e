//! The programs that weir is measured beside.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Each with the words that make it tell its version, if there are any.
const PROGRAMS: [(&str, &[&str]); 18] = [
    ("tini", &["--version"]),
    ("tini-static", &["--version"]),
    ("dumb-init", &["--version"]),
    ("catatonit", &["--version"]),
    ("conmon", &["--version"]),
    ("busybox", &["--help"]),
    ("s6-log", &[]),
    ("multilog", &[]),
    ("svlogd", &[]),
    ("cat", &["--version"]),
    ("head", &["--version"]),
    ("stdbuf", &["--version"]),
    ("wc", &["--version"]),
    ("mkfifo", &["--version"]),
    ("sync", &["--version"]),
    ("true", &["--version"]),
    ("sleep", &["--version"]),
    ("strace", &["--version"]),
];

/// One that is here.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// Those that are here.
pub(crate) struct Peers(Vec<Peer>);

impl Peers {
    pub(crate) fn find() -> Peers {
        let found = PROGRAMS.iter().filter_map(|(name, words)| {
            let path = in_path(name)?;
            let version = version(name, &path, words);
            Some(Peer { name, path, version })
        });
        Peers(found.collect())
    }

    pub(crate) fn path(&self, name: &str) -> Option<&Path> {
        self.0.iter().find(|peer| peer.name == name).map(|peer| peer.path.as_path())
    }

    /// Whether all of these are here.
    pub(crate) fn have(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.path(name).is_some())
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = &'static str> {
        PROGRAMS.iter().map(|(name, _)| *name).filter(|name| self.path(name).is_none())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Peer> {
        self.0.iter()
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The first line of what it says about itself, or its package's version where it says none.
fn version(name: &str, path: &Path, words: &[&str]) -> String {
    let asked = |command: &mut Command| {
        let output = command.output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let line = String::from_utf8_lossy(&said).lines().next()?.trim().to_owned();
        (!line.is_empty()).then_some(line)
    };
    let of_its_own = (!words.is_empty()).then(|| asked(Command::new(path).args(words))).flatten();
    let package = match name {
        "s6-log" => "s6",
        "multilog" => "daemontools",
        "svlogd" => "runit",
        other => other,
    };
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${Package} ${Version}\n", package]);
    of_its_own.or_else(|| asked(&mut query)).unwrap_or_else(|| "unknown".to_owned())
}
