//! Which binaries are tested.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary under test: `WEIR_BIN`, or the workspace's own, built in the profile of
/// the tests.
pub fn weir_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| given_or_built("WEIR_BIN", ["--bin", "weir"], "weir"))
}

/// The example dispatcher: `WEIR_DISPATCHER`, or the workspace's own.
pub fn dispatcher_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let example = ["--example", "dispatcher"];
    BINARY.get_or_init(|| given_or_built("WEIR_DISPATCHER", example, "examples/dispatcher"))
}

fn given_or_built(variable: &str, what: [&str; 2], output: &str) -> PathBuf {
    let given: Option<OsString> = std::env::var_os(variable);
    given.map_or_else(|| build(what).join(output), PathBuf::from)
}

/// Builds a binary of the launcher's beside the tests, and says in which folder: cargo
/// builds no binary of another package for them, and an old one would be tested in its
/// place.
fn build(what: [&str; 2]) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    // <target>/<profile>/deps/<test binary>
    let profile = tests.ancestors().nth(2).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "weir-launcher"]).args(what);
    command.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
    if profile.file_name() == Some("release".as_ref()) {
        command.arg("--release");
    }
    let target = profile.parent().unwrap();
    let target_name = target.file_name().unwrap().to_str().unwrap();
    // With `--target` there is one folder more, named by the target.
    let target = match target_name.contains("-linux-") {
        true => {
            command.args(["--target", target_name]);
            target.parent().unwrap()
        }
        false => target,
    };
    command.arg("--target-dir").arg(target);
    assert!(command.status().unwrap().success(), "{what:?} does not build");
    profile.to_owned()
}
