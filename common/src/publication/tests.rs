use super::*;
use crate::sys::files::Kind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const NAME: &str = "record";
const DRAFT: &str = ".record.tmp";
const TRIAL: &str = ".record.tmp~";

fn with_name(directory: BorrowedFd<'_>) -> Result<Draft<'_>, ReserveError> {
    named(directory, &DraftName(DRAFT.into()), 16, Links::TwoForAMoment)
}

fn with_place(check: impl FnOnce(&Path, &OwnedFd)) {
    let place = tempfile::tempdir().expect("a directory");
    let directory = files::open_directory(place.path()).expect("open");
    check(place.path(), &directory);
}

fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).expect("list");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A draft for every way, on a file system that has them all.
fn drafts(directory: &OwnedFd) -> impl Iterator<Item = Draft<'_>> {
    let directory = directory.as_fd();
    let ways = [Way::Unnamed(Unnamed::Proc), Way::Link, Way::Rename];
    ways.into_iter().map(move |way| {
        let mut draft = match way {
            Way::Unnamed(_) => {
                let name = DraftName(DRAFT.into());
                unnamed((directory, FileSystem::of(directory)), &name, 16, Links::NeverTwo)
                    .expect("O_TMPFILE")
            }
            Way::Link | Way::Rename => with_name(directory).expect("a draft"),
        };
        draft.way = way;
        draft
    })
}

#[test]
fn every_way_names_the_whole_record_once() {
    with_place(|place, directory| {
        for draft in drafts(directory) {
            let way = draft.way;
            let published = draft.publish(OsStr::new(NAME), b"content", Durability::Synced);
            assert_eq!(published, Ok(Published::Ours), "{way:?}");
            assert_eq!(names(place), [NAME], "{way:?}");
            let record = place.join(NAME);
            assert_eq!(std::fs::read(&record).expect("read"), b"content");
            let metadata = std::fs::metadata(&record).expect("stat");
            assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o600, 1), "{way:?}");
            std::fs::remove_file(&record).expect("remove");
        }
    });
}

#[test]
fn no_way_replaces_what_is_there() {
    with_place(|place, directory| {
        std::fs::write(place.join(NAME), b"first").expect("write");
        for draft in drafts(directory) {
            let way = draft.way;
            let published = draft.publish(OsStr::new(NAME), b"second", Durability::Unsynced);
            assert_eq!(published, Ok(Published::AlreadyThere), "{way:?}");
            assert_eq!(names(place), [NAME], "{way:?}");
            assert_eq!(std::fs::read(place.join(NAME)).expect("read"), b"first");
        }
    });
}

#[test]
fn a_draft_that_is_dropped_leaves_nothing() {
    with_place(|place, directory| {
        for draft in drafts(directory) {
            drop(draft);
            assert_eq!(names(place), [""; 0]);
        }
    });
}

#[test]
fn an_old_draft_of_ours_is_replaced_and_anything_else_refused() {
    with_place(|place, directory| {
        let directory = directory.as_fd();
        std::fs::write(place.join(DRAFT), b"old").expect("write");
        std::fs::write(place.join(TRIAL), b"old").expect("write");
        let draft = with_name(directory).expect("replaced");
        assert_eq!(names(place), [DRAFT]);
        assert_eq!(with_name(directory).map(|_| ()), Err(ReserveError::Busy));
        assert_eq!(names(place), [DRAFT]);
        drop(draft);
        assert_eq!(names(place), [""; 0]);

        std::fs::write(place.join(DRAFT), b"seventeen bytes..").expect("write");
        let large = ReserveError::Blocked(Strange::Kind(Kind::Regular));
        assert_eq!(with_name(directory).map(|_| ()), Err(large));
        std::fs::remove_file(place.join(DRAFT)).expect("remove");
        std::fs::create_dir(place.join(DRAFT)).expect("mkdir");
        let folder = ReserveError::Blocked(Strange::Kind(Kind::Directory));
        assert_eq!(with_name(directory).map(|_| ()), Err(folder));
        assert_eq!(names(place), [DRAFT]);
    });
}

#[test]
fn where_two_links_must_never_show_a_draft_is_moved() {
    with_place(|_, directory| {
        let name = DraftName(DRAFT.into());
        for (links, way) in [(Links::TwoForAMoment, Way::Link), (Links::NeverTwo, Way::Rename)] {
            let draft = named(directory.as_fd(), &name, 16, links).expect("a draft");
            assert_eq!(draft.way, way, "{links:?}");
        }
    });
}

#[test]
fn an_old_draft_is_removed_where_none_is_needed_any_more() {
    with_place(|place, directory| {
        let reserve = || {
            let name = DraftName(DRAFT.into());
            Draft::reserve(directory, &name, 16, Links::NeverTwo).expect("reserved")
        };
        // A start that was killed between link and unlink: its record has two links.
        std::fs::write(place.join(DRAFT), b"old").expect("write");
        std::fs::hard_link(place.join(DRAFT), place.join(NAME)).expect("link");
        let draft = reserve();
        assert_eq!(names(place), [NAME]);
        let published = draft.publish(OsStr::new(NAME), b"new", Durability::Unsynced);
        assert_eq!(published, Ok(Published::AlreadyThere));
        assert_eq!(std::fs::read(place.join(NAME)).expect("read"), b"old");

        std::fs::write(place.join(DRAFT), b"seventeen bytes..").expect("write");
        drop(reserve());
        assert_eq!(names(place), [DRAFT, NAME]);
    });
}

#[test]
fn what_takes_a_drafts_place_never_becomes_the_record() {
    with_place(|place, directory| {
        for way in [Way::Link, Way::Rename] {
            let mut draft = with_name(directory.as_fd()).expect("a draft");
            draft.way = way;
            std::fs::remove_file(place.join(DRAFT)).expect("remove");
            std::fs::write(place.join(DRAFT), b"other").expect("write");
            let published = draft.publish(OsStr::new(NAME), b"record", Durability::Synced);
            assert_eq!(published, Err(PublishError::Name(Errno::ESTALE)), "{way:?}");
            assert_eq!(names(place), [DRAFT], "{way:?}");
            std::fs::remove_file(place.join(DRAFT)).expect("remove");
        }
    });
}

#[test]
fn the_room_is_allocated_before_anything_is_written() {
    with_place(|_, directory| {
        let draft = Draft::reserve(directory, &DraftName(DRAFT.into()), 5000, Links::NeverTwo)
            .expect("reserved");
        let file = std::fs::File::from(draft.file.try_clone().expect("dup"));
        let metadata = file.metadata().expect("stat");
        assert!(metadata.blocks() * 512 >= 5000, "{} blocks", metadata.blocks());
    });
}
