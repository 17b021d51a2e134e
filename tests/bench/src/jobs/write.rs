//! Writers: lines of 80 bytes, in writes of any size.

use super::Report;
use crate::run::{self, Place};
use crate::{Fallible, clock};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

/// With its newline.
pub(crate) const LINE_BYTES: u64 = 80;

/// The first bytes of every write: lines of 79 letters and a newline.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    let letter = |at: u64| match at % LINE_BYTES {
        79 => b'\n',
        column => b'a' + (column % 26) as u8,
    };
    (0..bytes as u64).map(letter).collect()
}

/// Writes so many bytes as fast as they are taken.
pub(super) fn write(size: &str, total: &str, report: &str, cpu: &str) -> Fallible<()> {
    if cpu != "-" {
        run::pin(Place::On(cpu.parse()?))?;
    }
    let (buffer, total) = (pattern(size.parse()?), total.parse()?);
    let mut out = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let began_ns = clock::now_ns();
    write_all(&mut out, &buffer, total)?;
    Report::since(began_ns).leave(report)
}

/// The same, and stays until a signal ends it.
pub(super) fn write_and_stay(size: &str, total: &str, report: &str, cpu: &str) -> Fallible<()> {
    write(size, total, report, cpu)?;
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn write_all(out: &mut File, buffer: &[u8], total: u64) -> Fallible<()> {
    let mut left = total;
    while left > 0 {
        let now = left.min(buffer.len() as u64);
        out.write_all(&buffer[..now as usize])?;
        left -= now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_lines_of_eighty_bytes() {
        let text = pattern(200);
        let lines: Vec<usize> = text.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lines, [79, 79, 40]);
    }
}
