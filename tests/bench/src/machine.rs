//! What machine this is, and what is measured on it.

use crate::bench::Bench;
use crate::{Fallible, bench};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// The processors that this process may use.
pub(crate) fn cpus() -> Fallible<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    if cpus.is_empty() { Err("no processor".into()) } else { Ok(cpus) }
}

/// Everything that figures depend on.
pub(crate) fn describe(bench: &Bench) -> Fallible<Value> {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let peers: Map<String, Value> =
        bench.peers.all().map(|peer| (peer.name.to_owned(), json!(peer.version))).collect();
    Ok(json!({
        "cpus": cpus()?.len(),
        "cpu": processor(),
        "memoryMiB": memory_mib(),
        "kernel": format!("{} {}", text(system.sysname()), text(system.release())),
        "architecture": text(system.machine()),
        "scratchFileSystem": file_system(bench.scratch.path())?,
        "dateUtc": said(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))?,
        "quick": bench.quick,
        "weirBytes": bench::length(&bench.weir)?,
        "weirVersion": said(Command::new(&bench.weir).arg("--version"))?,
        "peers": peers,
    }))
}

fn said(command: &mut Command) -> Fallible<String> {
    let output = command.output().map_err(|why| format!("{command:?}: {why}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The processor's name, where the kernel tells it.
fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = told.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(": ")).map(|(_, name)| name.to_owned());
    name.unwrap_or_else(|| "unknown".to_owned())
}

fn memory_mib() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1024)
}

/// The type of the file system that holds the path: that of the innermost mount above it.
pub(crate) fn file_system(path: &Path) -> Fallible<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let innermost = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| path.starts_with(point))
        // Of mounts on each other the last counts.
        .max_by_key(|(point, _)| point.len());
    Ok(innermost.map_or("unknown", |(_, kind)| kind).to_owned())
}
