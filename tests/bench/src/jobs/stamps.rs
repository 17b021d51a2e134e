//! Jobs that say when something happened to them.

use crate::Fallible;
use crate::clock::now_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;
use weir_common::sys::signals::{SignalReader, SignalSet};

/// Writes when it was started.
pub(super) fn stamp(file: &str) -> Fallible<()> {
    let started_ns = now_ns();
    Ok(std::fs::write(file, started_ns.to_ne_bytes())?)
}

/// Writes the time, eight bytes, now and then.
pub(super) fn ticks(count: &str, gap_us: &str) -> Fallible<()> {
    let (count, gap) = (count.parse::<u32>()?, Duration::from_micros(gap_us.parse()?));
    let mut out = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    for _ in 0..count {
        std::thread::sleep(gap);
        out.write_all(&now_ns().to_ne_bytes())?;
    }
    Ok(())
}

/// Writes to a FIFO when each of so many signals arrived; and a time before the first, once
/// it can take them.
pub(super) fn signals(count: &str, fifo: &str) -> Fallible<()> {
    let count = count.parse::<u32>()?;
    let signals = SignalReader::new(SignalSet::of(Signal::USR1.as_raw()))
        .map_err(|why| format!("cannot read signals: {why:?}"))?;
    let mut out = OpenOptions::new().write(true).open(fifo)?;
    out.write_all(&now_ns().to_ne_bytes())?;
    for _ in 0..count {
        poll(&mut [PollFd::new(&signals, PollFlags::IN)], None)?;
        let arrived_ns = now_ns();
        signals.next().ok_or("woken without a signal")?;
        out.write_all(&arrived_ns.to_ne_bytes())?;
    }
    Ok(())
}
