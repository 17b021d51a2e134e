//! The shape of the binary.

use std::process::Command;
use weir_tests::{needs, weir_binary};

#[test]
fn it_is_static() {
    if needs("it_is_static", "file") {
        let output = Command::new("file").arg(weir_binary()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("static-pie linked") || said.contains("statically linked"), "{said}");
    }
}

#[test]
fn it_says_its_version() {
    let output = Command::new(weir_binary()).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        concat!("weir ", env!("CARGO_PKG_VERSION"), "\n")
    );
}
