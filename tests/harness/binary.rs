//! Which weir is tested.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary under test: `WEIR_BIN`, or the workspace's own, built in the profile of
/// the tests.
pub fn weir_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("WEIR_BIN") {
        Some(given) => PathBuf::from(given),
        None => build(),
    })
}

/// Builds the binary beside the tests: cargo builds no binary of another package for
/// them, and an old one would be tested in its place.
fn build() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    // <target>/<profile>/deps/<test binary>
    let profile = tests.ancestors().nth(2).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "weir-launcher", "--bin", "weir"]);
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
    assert!(command.status().unwrap().success(), "weir does not build");
    profile.join("weir")
}
