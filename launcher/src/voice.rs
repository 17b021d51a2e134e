//! Everything that weir says: lines on standard error, events on the status descriptor.
//!
//! Nobody has to listen. A reader that is gone, or does not read, costs weir nothing
//! but the line; after the first one that fails the status descriptor is let go.

use crate::ending::Leave;
use crate::plan::{CapturePlan, Plan};
use crate::refusal::{Refusal, printable};
use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use weir_common::sys::files::{self, Identity, Standard};
use weir_common::sys::process::{End, Pid};
use weir_common::sys::streams;
use weir_drainer::Tally;

/// Which lines standard error gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loudness {
    /// Every line.
    All,
    /// `--quiet`: errors only.
    ErrorsOnly,
    /// None at all: it is closed, or it is the log itself.
    Nothing,
}

pub(crate) struct Voice {
    loudness: Loudness,
    status: Option<OwnedFd>,
}

impl Voice {
    pub(crate) fn new(error_is_open: bool) -> Voice {
        let loudness = if error_is_open { Loudness::All } else { Loudness::Nothing };
        Voice { loudness, status: None }
    }

    pub(crate) fn speak_to(&mut self, status: Option<OwnedFd>) {
        self.status = status;
    }

    /// Whether events go to this file.
    pub(crate) fn tells(&self, file: Identity) -> bool {
        let status = self.status.as_ref().and_then(|status| files::status(status).ok());
        status.is_some_and(|status| status.identity == file)
    }

    pub(crate) fn quieten(&mut self) {
        if self.loudness == Loudness::All {
            self.loudness = Loudness::ErrorsOnly;
        }
    }

    /// Standard error is the log: a line there would be beyond the quota.
    pub(crate) fn fall_silent(&mut self) {
        self.loudness = Loudness::Nothing;
    }

    /// Says nothing any more, to nobody.
    pub(crate) fn hang_up(&mut self) {
        self.fall_silent();
        self.status = None;
    }

    /// Whether anything can still be said on standard error.
    pub(crate) fn uses_standard_error(&self) -> bool {
        self.loudness != Loudness::Nothing
    }

    /// The status descriptor, while somebody listens.
    pub(crate) fn status(&self) -> Option<BorrowedFd<'_>> {
        self.status.as_ref().map(AsFd::as_fd)
    }

    /// Prints what was asked for on standard output.
    #[cold]
    #[inline(never)]
    pub(crate) fn print(&mut self, text: &str) -> Leave {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match streams::write(Standard::Output.borrow(), rest) {
                Ok(taken) => rest = &rest[taken..],
                Err(errno) => {
                    self.error(&format!("weir: error[system]: cannot print: {errno}\n"));
                    return Leave::Code(125);
                }
            }
        }
        Leave::Code(0)
    }

    /// A line about something that went well enough, or was asked for.
    pub(crate) fn note(&mut self, line: &str) {
        if self.loudness == Loudness::All {
            self.error(&format!("weir: {}\n", printable(line)));
        }
    }

    /// What keeps a log's state unknown: a note here, a warning for whoever has asked
    /// for events.
    #[cold]
    #[inline(never)]
    pub(crate) fn doubt(&mut self, line: &str) {
        self.note(line);
        self.tell(Event::new("warning").text("message", line));
    }

    /// A failure of weir's own after the job's start.
    #[cold]
    #[inline(never)]
    pub(crate) fn failure(&mut self, message: &str) {
        let message = printable(message);
        if self.loudness != Loudness::Nothing {
            self.error(&format!("weir: warning: {message}\n"));
        }
        self.tell(Event::new("warning").text("message", &message));
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        if self.loudness != Loudness::Nothing {
            self.error(&refusal.to_string());
        }
        let event = Event::new("refused").text("code", refusal.code().as_str());
        self.tell(event.text("message", &refusal.message()));
    }

    pub(crate) fn admitted(&mut self, plan: &Plan, capture: &CapturePlan) {
        let event = Event::new("admitted")
            .text("runId", plan.run_id.as_str())
            .text("attemptId", plan.attempt_id.as_str())
            .text("logArtifactId", capture.artifact_id.as_str());
        self.tell(event.text("log", &capture.log_path().to_string_lossy()));
    }

    pub(crate) fn started(&mut self, pid: Pid) {
        self.tell(Event::new("started").number("pid", u64::from(pid.raw().unsigned_abs())));
    }

    pub(crate) fn exited(&mut self, end: End) {
        let event = Event::new("exited");
        self.tell(match end {
            End::Code(code) => event.number("code", u64::from(code)),
            End::Signal { number, .. } => event.number("signal", u64::from(number.unsigned_abs())),
        });
    }

    pub(crate) fn drained(&mut self, tally: Tally) {
        let event = Event::new("drained").number("keptBytes", tally.kept_bytes);
        self.tell(event.number("droppedBytes", tally.dropped_bytes));
    }

    pub(crate) fn published(&mut self, record: &str, path: &Path) {
        let event = Event::new("published").text("record", record);
        self.tell(event.text("path", &path.to_string_lossy()));
    }

    fn error(&self, lines: &str) {
        let _ = streams::write_without_waiting(Standard::Error.borrow(), lines.as_bytes());
    }

    fn tell(&mut self, event: Event) {
        let Some(status) = &self.status else { return };
        if streams::write_without_waiting(status, event.line().as_bytes()).is_err() {
            // Half a line may be out; another behind it would not be one either.
            self.status = None;
        }
    }
}

/// A text as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    // Every text can be written.
    serde_json::to_string(text).unwrap_or_default()
}

/// One status line: a JSON object whose first key is `event`.
struct Event(String);

impl Event {
    fn new(name: &str) -> Event {
        Event(format!("{{\"event\":\"{name}\""))
    }

    fn text(mut self, key: &str, value: &str) -> Event {
        let _ = write!(self.0, ",\"{key}\":{}", quoted(value));
        self
    }

    fn number(mut self, key: &str, value: u64) -> Event {
        let _ = write!(self.0, ",\"{key}\":{value}");
        self
    }

    fn line(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }
}
