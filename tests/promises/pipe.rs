//! The pipe that a job writes to: larger for heavy output, and nobody's loss.

use weir_tests::{Place, needs, needs_root};

/// What a job in Python begins with: how many bytes a pipe holds, and telling it.
const PREAMBLE: &str = "
import fcntl, os, time
def capacity(pipe=1): return fcntl.fcntl(pipe, 1032)
def tell(*what): open('told', 'a').write(' '.join(map(str, what)) + '\\n')
usual = capacity(os.pipe()[0])
piece = bytes(128 << 10)
def until(holds, step):
    patience = time.monotonic() + 60
    while not holds() and time.monotonic() < patience: step()
";

/// Runs such a job, with some words in front of weir, and says what it told.
fn told(place: &Place, under: &[&str], job: &str) -> String {
    let weir = place.weir().option("sync", "none").under(under);
    weir.job(&["python3", "-c", &format!("{PREAMBLE}{job}")]).run().exits(0);
    String::from_utf8(place.read("told")).expect("text")
}

#[test]
fn light_output_leaves_it_as_it_is() {
    if !needs("light_output_leaves_it_as_it_is", "python3") {
        return;
    }
    let place = Place::new();
    // Lines, and now and then many at once.
    let job = "
for _ in range(200): os.write(1, b'a line of output\\n' * 10); time.sleep(0.0005)
tell(capacity() == usual)
";
    assert_eq!(told(&place, &[], job), "True\n");
    assert!(place.log() == "a line of output\n".repeat(2_000));
}

#[test]
fn heavy_output_has_a_larger_one_until_it_pauses() {
    if !needs("heavy_output_has_a_larger_one", "python3") {
        return;
    }
    let job = "
for _ in range(2):
    until(lambda: capacity() > usual, lambda: os.write(1, piece))
    tell(capacity())
    until(lambda: capacity() == usual, lambda: time.sleep(0.001))
    tell(capacity() == usual)
";
    assert_eq!(told(&Place::new(), &[], job), "262144\nTrue\n262144\nTrue\n");
}

#[test]
fn a_job_that_has_made_it_larger_keeps_it_so() {
    if !needs("a_job_that_has_made_it_larger", "python3") {
        return;
    }
    let job = "
fcntl.fcntl(1, 1031, 512 << 10)
for _ in range(200): os.write(1, piece)
tell(capacity())
";
    assert_eq!(told(&Place::new(), &[], job), "524288\n");
}

/// A user's pipes have a limit together, and beyond it new ones hold hardly anything.
#[test]
fn it_grows_only_where_the_users_other_pipes_have_room() {
    let test = "it_grows_only_where_the_users_other_pipes_have_room";
    if !needs_root(test) || !needs(test, "python3") || !needs(test, "setpriv") {
        return;
    }
    // Somebody whom the limit binds, but no other test.
    let bound = ["setpriv", "--bounding-set=-sys_admin,-sys_resource"];
    let job = "
hoard = []
def fill():
    hoard.append(os.pipe())
    try: fcntl.fcntl(hoard[-1][0], 1031, 1 << 20)
    except PermissionError: return True
if FILLED: until(fill, lambda: None)
for _ in range(400): os.write(1, piece)
tell(capacity() > usual, capacity(os.pipe()[0]) == usual)
";
    let told = |filled| told(&Place::new(), &bound, &job.replace("FILLED", filled));
    assert_eq!(told("False"), "True True\n");
    assert_eq!(told("True"), "False True\n");
}
