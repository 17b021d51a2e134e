//! The QingLong 3 protocol: what is refused, and where that may be said.

use std::process::{Command, Stdio};
use weir_tests::ql3::{client, names};
use weir_tests::{Place, needs, weir_binary};

#[test]
fn on_a_terminal_it_says_why_it_refuses() {
    let test = "on_a_terminal_it_says_why_it_refuses";
    if !needs(test, "script") {
        return;
    }
    let mut command = Command::new("script");
    command.arg("-qec").arg(format!("'{}' ql3 shell", weir_binary().display())).arg("/dev/null");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "weir: error[usage]: QL3_RECEIPT_RUN_ID: it is not set\r\n";
    assert_eq!((said.as_str(), output.status.code()), (expected, Some(125)));
}

#[test]
fn a_closed_standard_output_is_refused() {
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    let done = client(&place).under(&under).heard().sh("touch ran").run();
    done.exits(125);
    done.says("weir: error[log-unsafe]: cannot use standard output as log: it is closed\n");
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    assert!(!place.at("ran").exists());
}

#[test]
fn nothing_is_said_in_a_file_that_may_be_the_log() {
    let place = Place::new();
    let under = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    client(&place).under(&under).sh("touch ran").run().exits(125);
    assert_eq!(place.read("outputs/l"), b"");
    let (reader, writer) = std::io::pipe().unwrap();
    let both = client(&place).output(writer.try_clone().unwrap()).error(writer);
    both.sh("true").env("QL3_OUTPUT_MAXIMUM_BYTES", "1").run().exits(125);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

#[test]
fn a_refusal_says_what_is_wrong_but_never_the_token() {
    let place = Place::new();
    for (name, value, says) in [
        (
            "RECEIPT_CALLBACK_TOKEN",
            "short.secret",
            ": it is not a token: 32 to 128 of A-Z a-z 0-9 _ -",
        ),
        (
            "RECEIPT_CALLBACK_SEQUENCE",
            "07",
            "=07: it is not a whole number from 1, without a zero in front",
        ),
        ("OUTPUT_QUOTA_REMAINING_BYTES", "65537", "=65537: it is not a whole number up to 65536"),
        ("RECEIPT_TARGET", "r", "=r: it is not an absolute path"),
        ("RECEIPT_TARGET", "/r/.", "=/r/.: it does not end in a file name"),
        ("RECEIPT_TEMPORARY", "/r", "=/r: it is not in the directory of QL3_RECEIPT_TARGET"),
        ("OUTPUT_QUOTA_FIFO", "/f", "=/f: it is not beside QL3_OUTPUT_TRUNCATION_TARGET"),
        (
            "RECEIPT_RUN_ID",
            "",
            "=: \"\" is not a run id: a letter or digit, then up to 127 of A-Z a-z 0-9 . _ : -",
        ),
    ] {
        let name = format!("QL3_{name}");
        let done = client(&place).heard().sh("touch ran").env(&name, value).run();
        done.exits(125).says(&format!("weir: error[usage]: {name}{says}\n"));
    }
    let done = client(&place).heard().sh("true").env("QL3_OUTPUT_MAXIMUM_BYTES", "65535").run();
    done.exits(125).says(
        "weir: error[quota-out-of-range]: QL3_OUTPUT_MAXIMUM_BYTES=65535: 65535 bytes are not \
         between 64 KiB (65536) and 1 GiB (1073741824)\n",
    );
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    assert!(!place.at("ran").exists());
}

#[test]
fn names_of_which_one_is_in_the_others_way_are_refused() {
    for (name, clash) in [
        ("RECEIPT_TEMPORARY", "receipts/receipt"),
        ("OUTPUT_TRUNCATION_TEMPORARY", "outputs/fact"),
        ("OUTPUT_QUOTA_FIFO", "outputs/fact"),
        ("OUTPUT_QUOTA_FIFO", "outputs/fact.tmp"),
        ("OUTPUT_QUOTA_FIFO", "outputs/fact.tmp~"),
    ] {
        let place = Place::new();
        let name = format!("QL3_{name}");
        let weir = client(&place).heard().sh("touch ran").env(&name, place.at(clash));
        let done = weir.run();
        done.refused("usage");
        assert!(done.stderr().ends_with("it is the name of another file of this attempt\n"));
        assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
    }
    // By another path to the same directory.
    let place = Place::new();
    std::os::unix::fs::symlink("outputs", place.at("same")).unwrap();
    let weir = client(&place).heard().sh("touch ran");
    let weir = weir.env("QL3_RECEIPT_TARGET", place.at("same/fact"));
    let done = weir.env("QL3_RECEIPT_TEMPORARY", place.at("same/other")).run();
    done.refused("usage");
    assert_eq!(names(&place), ["outputs/", "outputs/l", "receipts/"]);
}
