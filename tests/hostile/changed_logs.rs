//! A log that others change behind weir's back, on several file systems and at every
//! stage: no false fact, nothing made anew, no hole.

use crate::overlay::Overlay;
use crate::stage::Stage;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use weir_tests::{Disk, FileSystem, Place, Running, eventually, needs, succeed};

/// What is done to the log `l` in the directory `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Removed,
    Moved,
    ReplacedByItsCopy,
    /// By a rename onto it.
    Overwritten,
    Cut,
    /// As logrotate's copytruncate does it.
    CopiedAndCut,
    Grown,
    Linked,
    DirectoryMoved,
    Immutable,
    AppendOnly,
}

const CHANGES: [Change; 11] = [
    Change::Removed,
    Change::Moved,
    Change::ReplacedByItsCopy,
    Change::Overwritten,
    Change::Cut,
    Change::CopiedAndCut,
    Change::Grown,
    Change::Linked,
    Change::DirectoryMoved,
    Change::Immutable,
    Change::AppendOnly,
];

/// What a stage must have left: what has each name, below the test's place.
type Left = Vec<(String, String)>;

fn left(change: Change, stage: Stage, file_system: FileSystem) -> Left {
    let rest = stage.rest();
    let (one, whole) = ("one\n".to_owned(), stage.log());
    let file = |name: &str, content: &str| (name.to_owned(), content.to_owned());
    let fact = |name: &str| file(name, "false");
    match change {
        Change::Removed => vec![],
        Change::Moved => vec![file("d/away", &whole)],
        Change::ReplacedByItsCopy => vec![file("d/away", &whole), file("d/l", &one)],
        Change::Overwritten => vec![file("d/l", "other\n")],
        Change::Cut => vec![file("d/l", rest)],
        Change::CopiedAndCut => vec![file("d/copy", &one), file("d/l", rest)],
        Change::Grown => vec![file("d/l", &format!("one\nother\n{rest}"))],
        // The log is whole, and it is the log.
        Change::Linked => {
            vec![fact("d/.l.truncated.json"), file("d/l", &whole), file("d/other", &whole)]
        }
        Change::DirectoryMoved => vec![fact("e/.l.truncated.json"), file("e/l", &whole)],
        Change::AppendOnly => vec![fact("d/.l.truncated.json"), file("d/l", &whole)],
        // There, what is open already cannot be written any more either.
        Change::Immutable if file_system == FileSystem::Ext4 && !rest.is_empty() => {
            vec![file("d/l", &one)]
        }
        Change::Immutable => vec![fact("d/.l.truncated.json"), file("d/l", &whole)],
    }
}

impl Change {
    fn happen(self, place: &Place) {
        let (log, away) = (place.at("d/l"), place.at("d/away"));
        let chattr = |flag: &str| succeed(Command::new("chattr").arg(flag).arg(&log));
        match self {
            Change::Removed => std::fs::remove_file(log).unwrap(),
            Change::Moved => std::fs::rename(log, away).unwrap(),
            Change::ReplacedByItsCopy => {
                std::fs::rename(&log, &away).unwrap();
                std::fs::copy(away, log).map(drop).unwrap();
            }
            Change::Overwritten => {
                std::fs::write(&away, "other\n").unwrap();
                std::fs::rename(away, log).unwrap();
            }
            Change::Cut | Change::CopiedAndCut => {
                if self == Change::CopiedAndCut {
                    std::fs::copy(&log, place.at("d/copy")).unwrap();
                }
                OpenOptions::new().write(true).open(log).unwrap().set_len(0).unwrap();
            }
            Change::Grown => {
                let mut log = OpenOptions::new().append(true).open(log).unwrap();
                log.write_all(b"other\n").unwrap();
            }
            Change::Linked => std::fs::hard_link(log, place.at("d/other")).unwrap(),
            Change::DirectoryMoved => std::fs::rename(place.at("d"), place.at("e")).unwrap(),
            Change::Immutable => chattr("+i"),
            Change::AppendOnly => chattr("+a"),
        }
    }

    fn has_end(self, place: &Place) {
        if matches!(self, Change::Immutable | Change::AppendOnly) {
            succeed(Command::new("chattr").arg("-ia").arg(place.at("d/l")));
        }
    }
}

/// Everything that is there; of a fact, what it claims.
fn found(place: &Place) -> Left {
    let is_of_test = |name: &String| ["go", "done"].contains(&name.as_str());
    let names = place.names().into_iter();
    let names = names.filter(|name| !name.ends_with('/') && !is_of_test(name));
    let read = |name: String| {
        let content = match name.ends_with(".truncated.json") {
            true => {
                let fact = weir_common::Fact::read(&place.at(&name)).unwrap().unwrap();
                fact.quota_reached.to_string()
            }
            false => String::from_utf8(place.read(&name)).unwrap(),
        };
        (name, content)
    };
    names.map(read).collect()
}

fn end(running: Option<Running>, place: &Place, held: &std::fs::File, expected: &Left, what: &str) {
    match running {
        Some(running) => {
            let done = running.wait();
            done.exits(3);
            let has_fact = expected.iter().any(|(_, content)| content == "false");
            let lines = if has_fact { 0 } else { 1 };
            assert_eq!(done.stderr().lines().count(), lines, "{what}: {done:?}");
        }
        None => eventually("the background drainer is at its end", || held.try_lock().is_ok()),
    }
    assert_eq!(&found(place), expected, "{what}");
}

fn at_every_stage(file_system: FileSystem, changes: &[Change], place: impl Fn() -> Place) {
    for change in changes {
        for stage in Stage::ALL {
            let place = place();
            let what = format!("{}: {change:?}, {stage:?}", file_system.name());
            std::fs::create_dir(place.at("d")).unwrap();
            place.set_mode("d", 0o700);
            let weir = place.bare().option("log", place.at("d/l")).option("min-free", "0");
            let weir = weir.option("quota", "64K").option("grace", "0");
            let mut running = Some(weir.sh(&stage.job()).spawn());
            eventually("the log has its first bytes", || {
                std::fs::read(place.at("d/l")).is_ok_and(|log| log == b"one\n")
            });
            if stage.is_background() {
                running.take().unwrap().wait().exits(3);
            }
            // By which its lock is known, whatever its name is.
            let held = std::fs::File::open(place.at("d/l")).unwrap();
            change.happen(&place);
            std::fs::write(place.at("go"), "").unwrap();
            end(running, &place, &held, &left(*change, stage, file_system), &what);
            change.has_end(&place);
        }
    }
}

#[test]
fn whatever_is_done_to_a_log_nothing_false_is_claimed() {
    if !needs("whatever_is_done", "chattr") {
        return;
    }
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(disk) = Disk::needed("whatever_is_done", file_system, "", &[]) else { return };
        at_every_stage(file_system, &CHANGES, || disk.place());
    }
}

#[test]
fn nor_is_it_in_memory_or_on_an_overlay() {
    let changes = CHANGES.split_last_chunk::<2>().unwrap().0;
    assert!(!changes.contains(&Change::Immutable) && !changes.contains(&Change::AppendOnly));
    let Some(disk) = Disk::needed("in_memory", FileSystem::Tmpfs, "", &[]) else { return };
    at_every_stage(FileSystem::Tmpfs, changes, || disk.place());
    let Some(overlay) = Overlay::needed("on_an_overlay", FileSystem::Ext4) else { return };
    at_every_stage(FileSystem::Ext4, changes, || overlay.place());
}
