//! What a job tells about itself when it is done.

use crate::{Fallible, clock};
use std::path::Path;

/// A job's own time, and the processor time that it has used since its fork.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// From its first write until after its last.
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
}

impl Report {
    /// Of this process, which began at that time.
    pub(super) fn since(began_ns: u64) -> Report {
        Report { wall_ns: clock::now_ns() - began_ns, cpu_ns: clock::own_cpu_ns() }
    }

    /// Under another name first: who waits for it finds it whole.
    pub(super) fn leave(self, at: &str) -> Fallible<()> {
        let draft = format!("{at}.tmp");
        std::fs::write(&draft, format!("{} {}", self.wall_ns, self.cpu_ns))?;
        Ok(std::fs::rename(draft, at)?)
    }

    /// Reads one, and removes it.
    pub(crate) fn take(at: &Path) -> Fallible<Report> {
        let text = std::fs::read_to_string(at)
            .map_err(|why| format!("a job's report {}: {why}", at.display()))?;
        std::fs::remove_file(at)?;
        let (wall, cpu) = text.split_once(' ').ok_or("a report of one word")?;
        Ok(Report { wall_ns: wall.parse()?, cpu_ns: cpu.parse()? })
    }
}
