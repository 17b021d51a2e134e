//! What `/proc` tells of processes: who they are, and the memory that they hold.

use crate::Fallible;
use crate::clock::now_ns;
use std::time::Duration;

/// One process as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) pid: i32,
    pub(crate) name: String,
    asleep: bool,
}

/// Memory in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    /// With what is shared divided among those who share it.
    pub(crate) proportional: u64,
}

/// The process and everybody below it.
pub(crate) fn tree(root: i32) -> Vec<Found> {
    let mut found = Vec::new();
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        let Some(process) = find(pid) else { continue };
        found.push(process);
        left.extend(children(pid));
    }
    found
}

/// Those whom the process has started, and whom it has adopted.
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let told = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    told.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<i32>>())
        .collect()
}

fn find(pid: i32) -> Option<Found> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, parentheses too.
    let (name, rest) = line.split_once('(')?.1.rsplit_once(')')?;
    Some(Found { pid, name: name.to_owned(), asleep: rest.trim_start().starts_with('S') })
}

/// What a process holds.
pub(crate) fn memory(pid: i32) -> Fallible<Memory> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let told = std::fs::read_to_string(&path)
        .map_err(|why| format!("{path}: {why} (only root may read it for every process)"))?;
    let kib = |key: &str| -> Fallible<u64> {
        let line = told.lines().find_map(|line| line.strip_prefix(key));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(number.ok_or_else(|| format!("{path} has no {key}"))?.parse()?)
    };
    Ok(Memory { resident: kib("Rss:")?, proportional: kib("Pss:")? })
}

/// The wrapper's own processes, once it has started its job, all of them sleep and hold as
/// much as they did a moment ago; and the job.
pub(crate) fn settled(root: i32, job: &str) -> Fallible<(Vec<Found>, i32)> {
    // What wrappers are for a moment on their way to what they will be.
    let on_the_way = ["stdbuf", "env"];
    let mut before = None;
    let look = || -> Fallible<Option<(Vec<Found>, i32)>> {
        let all = tree(root);
        let is_settled = all.iter().all(|it| it.asleep && !on_the_way.contains(&it.name.as_str()));
        let (jobs, own): (Vec<Found>, Vec<Found>) = all.into_iter().partition(|it| it.name == job);
        let [the_job] = jobs.as_slice() else { return Ok(None) };
        let held: Vec<Memory> = own.iter().flat_map(|it| memory(it.pid)).collect();
        let now = Some((own.clone(), held));
        let is_same = before == now;
        before = now;
        Ok((is_settled && is_same).then_some((own, the_job.pid)))
    };
    until(&format!("process {root} and its job {job}"), look)
}

/// Looks again and again until there is something; not for ever.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Fallible<Option<T>>) -> Fallible<T> {
    until_within(60, what, look)
}

/// The same, for so many seconds.
pub(crate) fn until_within<T>(
    seconds: u64,
    what: &str,
    mut look: impl FnMut() -> Fallible<Option<T>>,
) -> Fallible<T> {
    let deadline_ns = now_ns() + seconds * 1_000_000_000;
    while now_ns() < deadline_ns {
        if let Some(found) = look()? {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("waited in vain for {what}").into())
}
