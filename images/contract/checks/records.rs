//! The log and its records, on a volume and on the container's own file system.

use super::Check;
use crate::container::{Cell, Container, Ended};
use crate::engine::fresh_name;
use crate::left::{Left, numbers};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use weir_common::{Capture, Errno};
use weir_tests::{QUOTA, eventually, held_by};

pub(super) const CHECKS: &[Check] = &[
    Check::new("a whole log: fact false, receipt, nothing else", whole),
    Check::new("quota exact to the byte, fact true", cut),
    Check::new("FIFO 0600, drafts without a name (O_TMPFILE)", while_it_runs),
    Check::new("a second start is refused, and changes nothing", sealed),
    Check::new("hard link replaces nothing: a name that is taken", |cell| {
        leaves_what_took_the_name(cell.container());
    }),
    Check::new("of its caller's descriptors weir holds none", |cell| {
        lets_go_of_descriptors(cell.container());
    }),
    Check::native("the same on the image's own file system", own_file_system),
    Check::new("a volume made by the engine, for its user", engine_volume),
    Check::new("--read-only and no volume named: the image's own", volume_of_the_image),
    Check::new("options by WEIR_*, none reaches the job", variables),
    Check::new("WEIR_TEE: the engine's log has the kept bytes", tee),
    Check::new("a user's image: FROM weir, CMD [job]", users_image),
    Check::new("the scratch image gives weir to another", from_scratch),
];

fn whole(cell: Cell) {
    let ended = cell.container().sh("echo out; echo err >&2").run();
    ended.exits(0).is_whole("out\nerr\n");
    assert_eq!(ended.left.receipt().unwrap().capture, Capture::Complete);
    // The image's own user, and nobody else can read it.
    assert_eq!(ended.left.log_owner_and_mode(), (10_001, 0o600));
    let fact = std::fs::symlink_metadata(ended.left.fact_path()).unwrap();
    assert_eq!((fact.uid(), fact.mode() & 0o7777, fact.nlink()), (10_001, 0o600, 1));
}

fn cut(cell: Cell) {
    let ended = cell.container().env("WEIR_QUOTA", "64K").sh("seq 100000; exit 4").run();
    ended.exits(4).left.is_cut(&numbers(100_000));
}

fn while_it_runs(cell: Cell) {
    let running =
        cell.container().sh("echo ready; until [ -e /logs/go ]; do sleep 0.05; done").start();
    running.until_log_is("ready\n");
    assert_eq!(running.left.names(), Left::running_names());
    let fifo = running.left.place.at("logs").join(Left::fifo_name());
    let fifo = std::fs::symlink_metadata(fifo).unwrap();
    assert!(fifo.file_type().is_fifo());
    assert_eq!(fifo.mode() & 0o7777, 0o600);
    let process = format!("/proc/{}", running.live.process_one());
    let held = held_by(&running.left.place, process.as_ref());
    let unnamed = held.iter().filter(|name| name.ends_with("/")).count();
    // Fact and receipt, by the folders that they will be named in.
    assert_eq!(unnamed, 2, "{held:?}");
    std::fs::write(running.left.place.at("logs/go"), "").unwrap();
    let ended = running.wait();
    std::fs::remove_file(ended.left.place.at("logs/go")).unwrap();
    ended.exits(0).is_whole("ready\n");
}

fn sealed(cell: Cell) {
    let first = cell.container().sh("echo first").run();
    first.exits(0).is_whole("first\n");
    let inode = std::fs::symlink_metadata(first.left.fact_path()).unwrap().ino();
    let bytes = std::fs::read(first.left.fact_path()).unwrap();
    let second = cell.container_in(first.left.place).sh("echo second").run();
    second.refused("log-sealed").is_whole_after_refusal("first\n");
    assert_eq!(std::fs::symlink_metadata(second.left.fact_path()).unwrap().ino(), inode);
    assert_eq!(std::fs::read(second.left.fact_path()).unwrap(), bytes);
}

impl Ended {
    #[track_caller]
    fn is_whole_after_refusal(&self, log: &str) {
        assert_eq!(self.left.log(), log.as_bytes());
        assert_eq!(self.left.names(), Left::whole_names());
    }
}

/// What the job puts under the fact's name stays; the receipt says that weir's is not
/// there.
#[track_caller]
pub(super) fn leaves_what_took_the_name(container: Container) {
    let fact = Left::fact_name();
    let ended = container.sh(&format!("echo mine >/logs/{fact}; echo ran")).run();
    ended.exits(0);
    assert_eq!(std::fs::read(ended.left.fact_path()).unwrap(), b"mine\n");
    assert_eq!(ended.left.log(), b"ran\n");
    let receipt = ended.left.receipt().unwrap();
    assert_eq!(receipt.capture, Capture::Failed(Some(Errno::EEXIST)));
    assert_eq!(ended.left.names(), Left::whole_names());
}

/// A shell that has a file open becomes weir: the job has it still, weir has not.
#[track_caller]
pub(super) fn lets_go_of_descriptors(container: Container) {
    let job = "echo job >&7; echo ready; until [ -e /logs/go ]; do sleep 0.05; done";
    let script = "exec 7>/logs/held; exec /usr/local/bin/weir run sh -c \"$0\"";
    let container = container.flags(&["--entrypoint", "/bin/sh"]);
    let running = container.words(&["-c", script, job]).start();
    running.until_log_is("ready\n");
    assert_eq!(std::fs::read(running.left.place.at("logs/held")).unwrap(), b"job\n");
    let process = format!("/proc/{}", running.live.process_one());
    let holds = |name: &str| {
        let held = held_by(&running.left.place, process.as_ref());
        held.iter().any(|path| path.ends_with(name))
    };
    // Its log can be seen there, so that the other would be, too.
    assert!(holds(".log"));
    eventually("weir has let go", || !holds("/held"));
    std::fs::write(running.left.place.at("logs/go"), "").unwrap();
    running.wait().exits(0);
}

fn own_file_system(cell: Cell) {
    // weir is a child of the shell here, and the fact is read where it was made.
    let script = "weir run --log /tmp/l --receipt /tmp/r --quota 64K --quiet -- seq 100000; \
                  echo $?; wc -c </tmp/l; cat /tmp/.l.truncated.json; echo; \
                  stat -c '%h %a' /tmp/.l.truncated.json; ls -A /tmp";
    let container = cell.container().flags(&["--entrypoint", "/bin/sh"]);
    let container = ["WEIR_ROOT", "WEIR_RUN_ID", "WEIR_ATTEMPT_ID", "WEIR_RECEIPT_ROOT"]
        .into_iter()
        .fold(container, |container, name| container.env(name, ""));
    let ended = container.words(&["-c", script]).run();
    ended.exits(0);
    let said = String::from_utf8(ended.output.stdout.clone()).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["0", "65536"], "{:?}", ended.output);
    assert!(lines[2].contains("\"quotaReached\":true"), "{said}");
    assert!(lines[2].ends_with("\"keptBytes\":65536,\"droppedBytes\":523359}"), "{said}");
    assert_eq!(lines[3..], ["1 600", ".l.truncated.json", "l", "r"], "{said}");
}

/// A volume of the engine's, removed at the end.
struct Volume(Cell, String);

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = self.0.engine.command().args(["volume", "rm", "--force", &self.1]).output();
    }
}

fn engine_volume(cell: Cell) {
    // Its mode and owner come from the image's folder of this name; it is the image's
    // user's no more than anybody's.
    let users: [(&[&str], _); 2] = [(&[], 10_001), (&["--user", "12345"], 12_345)];
    for (as_user, uid) in users {
        let volume = Volume(cell, fresh_name());
        let image = format!("weir:{}", cell.image);
        let run = |mount: &str, flags: &[&str], words: &[&str]| {
            let mount = format!("{}:{mount}", volume.1);
            let mut line = vec!["run", "--rm", "--network", "none"];
            line.extend(["--volume", mount.as_str()]);
            line.extend(as_user.iter().chain(flags).chain(&[image.as_str()]).chain(words));
            cell.engine.verb(&line)
        };
        let ids = ["--env", "WEIR_RUN_ID=run", "--env", "WEIR_ATTEMPT_ID=attempt"];
        assert_eq!(run("/logs", &ids, &["sh", "-c", "id -u"]), "");
        let log = "/kept/weir/*/local-*.log";
        let script = format!("cat {log}; stat -c %u {log}; stat -c '%u %a' /kept");
        let said = run("/kept", &["--entrypoint", "/bin/sh"], &["-c", &script]);
        assert_eq!(said, format!("{uid}\n{uid}\n0 1777\n"));
    }
}

fn volume_of_the_image(cell: Cell) {
    // Where the log is then, only the engine knows; but it can be written.
    let image = format!("weir:{}", cell.image);
    let words = ["run", "--rm", "--network", "none", "--read-only", &image, "echo", "hi"];
    assert_eq!(cell.engine.verb(&words), "");
}

fn variables(cell: Cell) {
    let container = cell.container().env("WEIR_QUOTA", "64K").env("MINE", "1");
    let ended = container.sh("env | grep -E '^(WEIR_|MINE)'").run();
    ended.exits(0).is_whole("MINE=1\n");
    assert_eq!(ended.left.fact().unwrap().quota.bytes(), 65_536);
    // Words before the job win.
    let container = cell.container().env("WEIR_QUOTA", "64K");
    let ended = container.words(&["--quota", "1M", "--", "echo", "hi"]).run();
    ended.exits(0).is_whole("hi\n");
    assert_eq!(ended.left.fact().unwrap().quota.bytes(), 1 << 20);
}

fn tee(cell: Cell) {
    let container = cell.container().env("WEIR_TEE", "true").env("WEIR_QUOTA", "64K");
    let ended = container.sh("seq 100000").run();
    let all = numbers(100_000);
    ended.exits(0).left.is_cut(&all);
    let kept = &all.as_bytes()[..QUOTA];
    assert!(ended.output.stdout == kept, "the engine's log is not the kept bytes");
}

fn users_image(cell: Cell) {
    let image = format!("weir-user:{}", cell.image);
    let ended = cell.container().image(&image).run();
    ended.exits(9).is_whole("job of uid 10001: a b\n");
}

fn from_scratch(cell: Cell) {
    let scratch = format!("weir:scratch-{}", cell.architecture());
    // By way of a log: of a container that ends at once, an engine may lose the output.
    let job = ["run", "--", "/weir", "--version"];
    let ended = cell.container().image(&scratch).env("WEIR_ROOT", "/logs/weir").words(&job).run();
    ended.exits(0).is_whole(concat!("weir ", env!("CARGO_PKG_VERSION"), "\n"));
    // COPY --from=weir:scratch /weir, into the bare root.
    let image = format!("weir-copied:{}", cell.image);
    let ended = cell.container().image(&image).env("WEIR_ROOT", "/logs/weir").sh("echo hi").run();
    ended.exits(0).is_whole("hi\n");
}
