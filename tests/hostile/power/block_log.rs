//! A disk that writes down what happens to it, and what may be left of it after a cut.

use super::Dice;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use weir_tests::{Place, eventually, needs, succeed};

/// Disks may write, or lose, each page by itself.
const PAGE: usize = 4096;

/// A disk, as a block device, as long as it lives.
pub(super) struct LoggedDisk {
    server: Child,
    around: Place,
    device: String,
}

impl LoggedDisk {
    /// `None` where that cannot be done. `test` names the test that wants it.
    pub(super) fn needed(test: &str, bytes: u64) -> Option<LoggedDisk> {
        // Both are of Debian's python3-fusepy.
        let tools = ["/usr/bin/python3", "/usr/lib/python3/dist-packages/fusepy.py"];
        if !tools.iter().all(|tool| needs(test, tool)) {
            return None;
        }
        let around = Place::new();
        std::fs::create_dir(around.at("fuse")).unwrap();
        // A disk whose server is gone hangs nobody: every access fails.
        let mut server = Command::new("setpriv");
        server.args(["--pdeathsig", "KILL", tools[0], "-c", include_str!("blocklog.py")]);
        server.arg(around.at("fuse")).arg(bytes.to_string()).arg(around.at("log"));
        let server = server.stdin(Stdio::null()).spawn().unwrap();
        let mut disk = LoggedDisk { server, around, device: String::new() };
        eventually("the disk is there", || disk.around.at("fuse/disk").exists());
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).arg(disk.around.at("fuse/disk"));
        disk.device = String::from_utf8(losetup.output().unwrap().stdout).unwrap();
        disk.device.truncate(disk.device.trim_end().len());
        assert!(!disk.device.is_empty(), "no loop device");
        Some(disk)
    }

    /// Its block device.
    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// Notes something that happens now.
    pub(super) fn mark(&self, text: &str) {
        let mark = File::options().write(true).open(self.around.at("fuse/mark")).unwrap();
        mark.write_all_at(text.as_bytes(), 0).unwrap();
    }

    /// What has happened to it, when nobody uses it any more.
    pub(super) fn events(mut self) -> Vec<Event> {
        self.let_go();
        assert!(self.server.wait().unwrap().success());
        events(&std::fs::read(self.around.at("log")).unwrap())
    }

    fn let_go(&mut self) {
        // Once only: afterwards it is somebody else's.
        let device = std::mem::take(&mut self.device);
        if !device.is_empty() {
            let _ = Command::new("losetup").args(["--detach", &device]).status();
        }
        let mut unmount = Command::new("umount");
        unmount.args(["--lazy", "--quiet"]).arg(self.around.at("fuse"));
        let _ = unmount.stderr(Stdio::null()).status();
    }
}

impl Drop for LoggedDisk {
    fn drop(&mut self) {
        self.let_go();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What happens to a disk.
pub(super) enum Event {
    Write {
        offset: usize,
        bytes: Vec<u8>,
    },
    /// All that was written before stays.
    Flush,
    Mark(String),
}

fn events(mut log: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some((head, rest)) = log.split_at_checked(13) {
        let offset = u64::from_le_bytes(head[1..9].try_into().unwrap()) as usize;
        let length = u32::from_le_bytes(head[9..].try_into().unwrap()) as usize;
        let (bytes, rest) = rest.split_at(length);
        events.push(match head[0] {
            b'w' => Event::Write { offset, bytes: bytes.to_owned() },
            b'f' => Event::Flush,
            b'm' => Event::Mark(String::from_utf8(bytes.to_owned()).unwrap()),
            other => panic!("an event of kind {other}"),
        });
        log = rest;
    }
    assert!(log.is_empty(), "half an event");
    events
}

/// What a disk holds for sure, page by page; the rest is zero.
#[derive(Default)]
pub(super) struct Durable {
    pages: BTreeMap<usize, Vec<u8>>,
    /// How many events that is.
    pub(super) until: usize,
}

impl Durable {
    /// Goes on to the last flush before the event `cut`.
    pub(super) fn advance(&mut self, events: &[Event], cut: usize) {
        let is_flush = |event: &Event| matches!(event, Event::Flush);
        let Some(flush) = events[..cut].iter().rposition(is_flush) else { return };
        for event in &events[self.until.min(flush)..flush] {
            each_page(event, |at, bytes| self.write(at, bytes));
        }
        self.until = self.until.max(flush);
    }

    /// Part of one page.
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let page = self.pages.entry(at / PAGE).or_insert_with(|| vec![0; PAGE]);
        page[at % PAGE..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Makes an image of what may be left when the power is cut before the event `cut`:
    /// each page that was written after the last flush is there or not. Returns how many
    /// of them are not.
    pub(super) fn image(&self, path: &Path, pending: &[Event], dice: &mut Dice) -> usize {
        let image = File::options().write(true).open(path).unwrap();
        for (number, page) in &self.pages {
            image.write_all_at(page, (number * PAGE) as u64).unwrap();
        }
        let mut left_out = 0;
        for event in pending {
            each_page(event, |at, bytes| match dice.below(2) {
                0 => image.write_all_at(bytes, at as u64).unwrap(),
                _ => left_out += 1,
            });
        }
        left_out
    }
}

fn each_page(event: &Event, mut take: impl FnMut(usize, &[u8])) {
    let Event::Write { offset, bytes } = event else { return };
    let mut at = *offset;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (part, later) = rest.split_at(rest.len().min(PAGE - at % PAGE));
        take(at, part);
        (at, rest) = (at + part.len(), later);
    }
}

/// An empty image, sparse.
pub(super) fn empty_image(place: &Place, bytes: u64) -> PathBuf {
    let path = place.at("image");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

/// Mounts a device or an image.
pub(super) fn mount(what: &Path, options: &str, on: &Path) {
    succeed(Command::new("mount").args(["-o", options]).arg(what).arg(on));
}
