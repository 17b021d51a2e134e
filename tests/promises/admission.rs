//! Admission: no room, no job, and nothing has been touched.

use std::process::Command;
use weir_tests::{Place, needs_namespaces, needs_root};

#[test]
fn too_little_space_is_refused_before_anything_is_created() {
    let place = Place::new();
    let weir = place
        .bare()
        .option("root", "root")
        .option("min-free", "1T")
        .option("receipt-root", "receipts");
    let done = weir.sh("echo ran >ran").run();
    done.refused("capacity-unavailable");
    assert!(
        done.stderr()
            .contains("1099578736640 needed (67108864 for the log, 1099511627776 to stay free)"),
        "{done:?}"
    );
    assert_eq!(place.names(), [""; 0]);
}

/// Runs a script in which `$W` runs weir on a small tmpfs (the working directory), and
/// copies what is there afterwards to `out`.
fn on_tmpfs(test: &str, place: &Place, options: &str, script: &str) -> Option<String> {
    let unshare = needs_namespaces(test)?;
    std::fs::create_dir_all(place.at("small")).unwrap();
    std::fs::create_dir_all(place.at("out")).unwrap();
    let weir = weir_tests::weir_binary().display();
    let whole = format!(
        "set -e; mount -t tmpfs -o {options} t small; cd small; W='{weir} run --log l --quota 64K'; \
         set +e; {script}\ncp -a . ../out"
    );
    let output = Command::new("timeout")
        .args(["-s", "KILL", "60"])
        .args(unshare)
        .args(["sh", "-c", &whole])
        .current_dir(place.path())
        .env_remove("WEIR_TESTS_STRICT")
        .output()
        .unwrap();
    Some(String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_room_is_what_is_left_of_the_quota_and_what_must_stay_free() {
    let place = Place::new();
    // 65536 for the log and 65536 to stay free are exactly the 32 pages of the tmpfs;
    // what a replay has written already is not needed again.
    let script = "$W --min-free 65537 -- true; echo $?; ls -A; \
                  $W --min-free 64K -- true; echo $?; ls -A; rm -f .l*; \
                  head -c 8192 /dev/zero >l; $W --min-free 64K -- true; echo $?";
    let Some(said) = on_tmpfs("the_room_is_what_is_left", &place, "size=128k", script) else {
        return;
    };
    let refusal = "weir: error[capacity-unavailable]: not enough space for log l: 131072 bytes are \
                   free, 131073 needed (65536 for the log, 65537 to stay free)\n\
                   hint: free some space, or lower --quota or --min-free\n";
    assert_eq!(said, format!("{refusal}125\n0\n.l.truncated.json\nl\n0\n"));
}

#[test]
fn too_few_inodes_are_refused_before_the_job_and_nothing_is_left() {
    // The root of the tmpfs is one, the log the second, the draft of the fact the
    // third, the FIFO the fourth.
    for inodes in 1..=4 {
        let place = Place::new();
        let script = "$W --min-free 0 -- sh -c 'echo ran'; echo $?; ls -A";
        let options = format!("size=300k,nr_inodes={inodes}");
        let Some(said) = on_tmpfs("too_few_inodes", &place, &options, script) else { return };
        if inodes < 4 {
            assert!(said.starts_with("weir: error[capacity-unavailable]: "), "{inodes}: {said}");
            assert!(said.contains(": No space left on device\n"), "{inodes}: {said}");
            assert!(said.ends_with("125\n"), "{inodes}: {said}");
        } else {
            assert_eq!(said, "0\n.l.truncated.json\nl\n");
        }
    }
}

#[test]
fn a_file_system_without_a_size_has_room() {
    let test = "a_file_system_without_a_size_has_room";
    // An ordinary user's namespace may not mount a ramfs.
    if !needs_root(test) {
        return;
    }
    let place = Place::new();
    let script =
        "mkdir ram; mount -t ramfs r ram; cd ram; $W --min-free 1T -- echo hi; echo $?; cat l";
    let Some(said) = on_tmpfs(test, &place, "size=300k", script) else { return };
    assert_eq!(said, "0\nhi\n");
}
