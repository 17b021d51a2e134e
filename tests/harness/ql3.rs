//! A client of the QingLong 3 protocol, with the places that it would choose.

use crate::{Place, Weir};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// The secret of every attempt of this client.
const TOKEN: &str = "secret-0123456789_0123456789-secret";

/// A client whose directories are here, with a quota of 64 KiB and the log `l`.
pub struct Client<'p> {
    place: &'p Place,
    under: Vec<&'p str>,
    output: Option<Stdio>,
    error: Option<Stdio>,
}

/// A client whose directories are here, as it would make them.
pub fn client(place: &Place) -> Client<'_> {
    for name in ["outputs", "receipts"] {
        std::fs::create_dir_all(place.at(name)).unwrap();
    }
    let log = File::options().append(true).create(true).open(place.at("outputs/l")).unwrap();
    log.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
    let error = Some(log.try_clone().unwrap().into());
    Client { place, under: Vec::new(), output: Some(log.into()), error }
}

impl<'p> Client<'p> {
    /// A command that runs weir.
    pub fn under(mut self, words: &[&'p str]) -> Client<'p> {
        self.under = words.to_vec();
        self
    }

    /// Where descriptor 1 leads, in the place of the log.
    pub fn output(self, output: impl Into<Stdio>) -> Client<'p> {
        Client { output: Some(output.into()), ..self }
    }

    /// Where descriptor 2 leads, in the place of the log.
    pub fn error(self, error: impl Into<Stdio>) -> Client<'p> {
        Client { error: Some(error.into()), ..self }
    }

    /// Standard error is the test's, and not the log.
    pub fn heard(self) -> Client<'p> {
        Client { error: None, ..self }
    }

    /// A weir for this job, with every variable valid; later ones replace them.
    pub fn weir(self, job: &[&str]) -> Weir {
        let at = |name: &str| self.place.at(name);
        let mut weir = self.place.bare().words(&[&["ql3", "argv"], job].concat());
        weir = weir.under(&self.under).env("QL3_OUTPUT_QUOTA_FIFO", at("outputs/fifo"));
        for (name, value) in [
            ("RECEIPT_RUN_ID", "run-1"),
            ("RECEIPT_ATTEMPT_ID", "attempt-1"),
            ("RECEIPT_CALLBACK_SEQUENCE", "7"),
            ("RECEIPT_CALLBACK_TOKEN", TOKEN),
            ("RECEIPT_STARTED_AT_MS", "5"),
            ("OUTPUT_QUOTA_REMAINING_BYTES", "65536"),
            ("OUTPUT_MAXIMUM_BYTES", "65536"),
            ("OUTPUT_ARTIFACT_ID", "local-0123456789abcdef0123456789abcd"),
        ] {
            weir = weir.env(&format!("QL3_{name}"), value);
        }
        for (name, file) in [
            ("RECEIPT_TARGET", "receipts/receipt"),
            ("RECEIPT_TEMPORARY", "receipts/receipt.tmp"),
            ("OUTPUT_TRUNCATION_TARGET", "outputs/fact"),
            ("OUTPUT_TRUNCATION_TEMPORARY", "outputs/fact.tmp"),
        ] {
            weir = weir.env(&format!("QL3_{name}"), at(file));
        }
        if let Some(output) = self.output {
            weir = weir.stdout(output);
        }
        if let Some(error) = self.error {
            weir = weir.stderr(error);
        }
        weir
    }

    /// The same for a shell script.
    pub fn sh(self, script: &str) -> Weir {
        self.weir(&["sh", "-c", script])
    }
}

/// The fact, but for its time, if there is one.
pub fn fact(place: &Place) -> Option<String> {
    let fact = std::fs::read_to_string(place.at("outputs/fact")).ok()?;
    let (fact, at_ms) = fact.split_once(",\"observedAtMs\":").unwrap();
    assert!(at_ms.strip_suffix('}').unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
    Some(fact.to_owned())
}

/// What [`fact`] says of one that was cut, or was not.
pub fn expected_fact(quota_reached: bool) -> Option<String> {
    Some(format!(
        "{{\"schemaVersion\":1,\"runId\":\"run-1\",\"attemptId\":\"attempt-1\",\"logArtifactId\":\
         \"local-0123456789abcdef0123456789abcd\",\"maximumBytes\":65536,\
         \"quotaReached\":{quota_reached}"
    ))
}

/// The exit code that the receipt tells, if there is one.
pub fn receipt(place: &Place) -> Option<u8> {
    let receipt = std::fs::read_to_string(place.at("receipts/receipt")).ok()?;
    let before = format!(
        "{{\"schemaVersion\":1,\"runId\":\"run-1\",\"attemptId\":\"attempt-1\",\
         \"callbackSequence\":7,\"token\":\"{TOKEN}\",\"startedAtMs\":5,\"finishedAtMs\":"
    );
    let (at_ms, code) =
        receipt.strip_prefix(&before).unwrap().split_once(",\"exitCode\":").unwrap();
    assert!(at_ms.parse::<u64>().unwrap() > 1_700_000_000_000);
    Some(code.strip_suffix('}').unwrap().parse().unwrap())
}

/// What the directories hold after an attempt of which everything could be published.
pub const ALL_NAMES: [&str; 5] =
    ["outputs/", "outputs/fact", "outputs/l", "receipts/", "receipts/receipt"];

/// Everything that this client's directories hold.
pub fn names(place: &Place) -> Vec<String> {
    let mut names = place.names();
    names.retain(|name| name.starts_with("outputs/") || name.starts_with("receipts/"));
    names
}
