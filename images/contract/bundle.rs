//! A container without an engine: crun and a bundle, which can leave out what engines
//! always add.

use crate::container::Ended;
use crate::engine::{fresh_name, home, without_mixed_cgroups};
use crate::left::Left;
use weir_tests::{PATIENCE, Place};

/// Ends a container that hangs: what is left of it would hold the output, too.
const RUN: &str = "timeout --signal=KILL \"$1\" crun run --bundle \"$2\" \"$3\"
    code=$?; crun delete --force \"$3\" 2>/dev/null; exit $code";

/// Runs weir in front of a job, as the image's root file system has it, without `/proc`.
pub(crate) fn run(image: &str, job: &[&str]) -> Ended {
    let place = Place::new();
    std::fs::create_dir(place.at("logs")).unwrap();
    let words: Vec<&str> = ["/usr/local/bin/weir", "run"].iter().chain(job).copied().collect();
    let variables = [
        "PATH=/usr/bin:/bin",
        "WEIR_ROOT=/logs/weir",
        "WEIR_RECEIPT_ROOT=/logs/receipts",
        "WEIR_RUN_ID=run",
        "WEIR_ATTEMPT_ID=attempt",
        "WEIR_MIN_FREE=0",
    ];
    let config = serde_json::json!({
        "ociVersion": "1.0.0",
        "process": {
            "terminal": false, "cwd": "/", "args": words, "env": variables,
            "user": { "uid": 0, "gid": 0 }, "noNewPrivileges": true,
        },
        "root": { "path": home().join("roots").join(image), "readonly": true },
        "mounts": [{
            "destination": "/logs", "type": "bind", "source": place.at("logs"),
            "options": ["rbind", "rw"],
        }],
        "linux": { "namespaces": [{ "type": "pid" }, { "type": "mount" }, { "type": "ipc" }] },
    });
    std::fs::write(place.at("config.json"), config.to_string()).unwrap();
    let mut command = without_mixed_cgroups("sh");
    command.args(["-c", RUN, "sh", &PATIENCE.as_secs().to_string()]);
    let output = command.arg(place.path()).arg(fresh_name()).output().unwrap();
    Ended { output, left: Left { place } }
}
