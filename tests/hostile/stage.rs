//! The stages of a run at which its disk breaks, or its log is changed.

/// When it happens: the log holds `one`, and the job waits for a file `go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The job has output still to come.
    During,
    /// Every byte is in the log; the job and the records are not at their end.
    AfterLastByte,
    /// weir has left, and a copy of it drains what a background process writes.
    Background,
    /// The same, and that process has nothing more to write.
    BackgroundAfterLastByte,
}

impl Stage {
    /// Every one of them.
    pub(crate) const ALL: [Stage; 4] =
        [Stage::During, Stage::AfterLastByte, Stage::Background, Stage::BackgroundAfterLastByte];

    /// The job, for `sh -c`: it leaves with 3, and a file `done` when it has written all.
    pub(crate) fn job(self) -> String {
        let rest = match self.rest() {
            "" => "",
            _ => "echo two; ",
        };
        let later = format!("until [ -e go ]; do sleep 0.01; done; {rest}: >done");
        match self.is_background() {
            true => format!("echo one; ({later}) & exit 3"),
            false => format!("echo one; {later}; exit 3"),
        }
    }

    /// Whether weir itself has left by then.
    pub(crate) fn is_background(self) -> bool {
        matches!(self, Stage::Background | Stage::BackgroundAfterLastByte)
    }

    /// What is written afterwards.
    pub(crate) fn rest(self) -> &'static str {
        match self {
            Stage::During | Stage::Background => "two\n",
            Stage::AfterLastByte | Stage::BackgroundAfterLastByte => "",
        }
    }

    /// All that the job writes.
    pub(crate) fn log(self) -> String {
        format!("one\n{}", self.rest())
    }
}
