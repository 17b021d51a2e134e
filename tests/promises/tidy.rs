//! The rules of the house.

use std::path::{Path, PathBuf};
use std::process::Command;
use weir_tests::weir_binary;

fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = house().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Every Rust file below these folders, with its path from the top.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| house().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(house()).unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(found.len() > 1);
    found
}

const CODE: [&str; 3] = ["common/src", "drainer/src", "launcher/src"];

#[test]
fn the_kernel_has_one_door() {
    for (name, text) in sources(&CODE) {
        let behind_the_door = name.starts_with("common/src/sys/");
        for word in ["libc::", "rustix::", "unsafe {", "unsafe fn", "unsafe extern"] {
            assert!(behind_the_door || !text.contains(word), "{name} has {word}");
        }
    }
    for (root, word) in [
        ("drainer/src/lib.rs", "#![forbid(unsafe_code)]"),
        ("launcher/src/main.rs", "#![forbid(unsafe_code)]"),
        ("tests/harness/lib.rs", "#![forbid(unsafe_code)]"),
        ("tests/hostile/main.rs", "#![forbid(unsafe_code)]"),
        ("tests/bench/src/main.rs", "#![forbid(unsafe_code)]"),
        ("images/contract/main.rs", "#![forbid(unsafe_code)]"),
    ] {
        assert!(read(root).contains(word), "{root}");
    }
}

#[test]
fn dependencies_point_one_way() {
    let needs = |member: &str, other: &str| {
        let manifest = read(format!("{member}/Cargo.toml"));
        manifest.lines().any(|line| line.starts_with(&format!("weir-{other}")))
    };
    for (member, other, allowed) in [
        ("common", "drainer", false),
        ("common", "launcher", false),
        ("drainer", "common", true),
        ("drainer", "launcher", false),
        ("launcher", "common", true),
        ("launcher", "drainer", true),
    ] {
        assert_eq!(needs(member, other), allowed, "{member} needs {other}");
    }
}

#[test]
fn the_drainer_knows_no_paths_processes_or_signals() {
    for (name, text) in sources(&["drainer/src"]) {
        let code = text.split("#[cfg(test)]").next().unwrap();
        let code: String =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for word in
            ["Path", "std::fs", "std::process", "sys::process", "sys::signals", "sys::files"]
        {
            assert!(!code.contains(word), "{name} has {word}");
        }
    }
}

#[test]
fn every_file_of_the_promises_is_run() {
    let main = read("tests/promises/main.rs");
    for (name, _) in sources(&["tests/promises"]) {
        let module = name.strip_prefix("tests/promises/").unwrap().strip_suffix(".rs").unwrap();
        assert!(module == "main" || main.contains(&format!("\nmod {module};\n")), "{name}");
    }
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = read("Cargo.toml");
    let (_, section) = manifest.split_once("[workspace.dependencies]").unwrap();
    let section = section.split("\n[").next().unwrap();
    let mut before = "";
    for line in section.lines().filter(|line| !line.is_empty()) {
        let is_ours = line.starts_with("weir-");
        assert!(
            line.starts_with('#') || is_ours || before.starts_with('#'),
            "no reason for {line}"
        );
        before = line;
    }
}

const MANUAL: &str = "docs/man/weir.1";

#[test]
fn every_option_is_in_help_readme_and_manual_with_its_variable() {
    let output = Command::new(weir_binary()).args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (readme, manual) = (read("README.md"), read(MANUAL));
    let options: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  --"))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(options.len() >= 24, "{options:?}");
    for option in &options {
        assert!(readme.contains(&format!("`--{option}")), "README lacks --{option}");
        let variable = format!("WEIR_{}", option.replace('-', "_").to_uppercase());
        let heading = |line: &str| {
            line.starts_with(&format!(".It Fl -{option} "))
                && line.ends_with(&format!(" Pq Ev {variable}"))
        };
        assert!(manual.lines().any(heading), "{MANUAL} lacks --{option} with {variable}");
    }
    // And none that is gone.
    let described = manual.lines().filter(|line| line.starts_with(".It Fl -")).count();
    assert_eq!(described, options.len(), "{MANUAL}");
}

#[test]
fn every_option_of_the_doctor_is_in_readme_and_manual() {
    let output = Command::new(weir_binary()).args(["doctor", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let options = help.lines().filter_map(|line| line.strip_prefix("  --"));
    let options: Vec<&str> = options.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(options.len(), 9, "{options:?}");
    let section = |text: &str, from: &str, to: &str| {
        text.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned()
    };
    let readme = section(&read("README.md"), "## Can this directory", "\n## ");
    let manual = section(&read(MANUAL), ".Sh EXAMINING A DIRECTORY", "\n.Sh ");
    for option in options {
        assert!(readme.contains(&format!("--{option}")), "README lacks --{option}");
        assert!(manual.contains(&format!("-{option}")), "{MANUAL} lacks --{option}");
    }
}

#[test]
fn every_variable_of_the_protocol_is_in_help_readme_and_manual() {
    let output = Command::new(weir_binary()).args(["ql3", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let variables: Vec<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  QL3_")).collect();
    assert_eq!(variables.len(), 15, "{variables:?}");
    let (readme, manual) = (read("README.md"), read(MANUAL));
    let manual: Vec<&str> = manual.split_whitespace().collect();
    for variable in variables {
        assert!(readme.contains(&format!("`QL3_{variable}`")), "README lacks QL3_{variable}");
        let variable = format!("QL3_{variable}");
        assert!(manual.contains(&variable.as_str()), "{MANUAL} lacks {variable}");
    }
}

#[test]
fn every_refusal_code_is_in_readme_and_manual() {
    let source = read("launcher/src/refusal.rs");
    let codes: Vec<&str> = source
        .lines()
        .filter(|line| line.ends_with("125;") || line.ends_with("126;") || line.ends_with("127;"))
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(codes.len(), 14, "{codes:?}");
    let (readme, manual) = (read("README.md"), read(MANUAL));
    for code in codes {
        assert!(readme.contains(&format!("`{code}`")), "README lacks {code}");
        assert!(manual.contains(&format!("\n.It Cm {code}\n")), "{MANUAL} lacks {code}");
    }
}

#[test]
fn manual_and_images_are_of_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    let label = format!(" org.opencontainers.image.version=\"{version}\"\n");
    for (file, line) in [
        (MANUAL, format!("\n.Os weir {version}\n")),
        ("images/alpine/Containerfile", label.clone()),
        ("images/debian/Containerfile", label.clone()),
        ("images/scratch/Containerfile", label),
    ] {
        assert!(read(file).contains(&line), "{file} lacks {line:?}");
    }
}

#[test]
fn images_are_built_on_pinned_bases() {
    for base in ["alpine", "debian"] {
        let file = read(format!("images/{base}/Containerfile"));
        let pins: Vec<&str> = file.lines().filter(|line| line.contains("docker.io/")).collect();
        assert!(!pins.is_empty(), "{base}");
        for pin in pins {
            let digest = pin.split_once("@sha256:").expect(pin).1;
            let is_whole =
                digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_whole, "{base}: {pin}");
        }
    }
}

#[test]
fn nothing_is_left_half_done() {
    for (name, text) in sources(&["common", "drainer", "launcher", "tests", "images"]) {
        if name.ends_with("tidy.rs") {
            continue;
        }
        for word in
            ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "#[ignore", "allow(dead_code)"]
        {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}
