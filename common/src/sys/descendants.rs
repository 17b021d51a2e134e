//! The processes that descend from this one, as `/proc` lists them: proc(5).

use super::errno::Errno;
use super::process::Pid;

/// Whether `/proc` can be asked.
pub fn can_be_listed() -> bool {
    std::fs::metadata("/proc/self/stat").is_ok()
}

/// This process's children at this moment.
pub fn children() -> Result<Vec<Pid>, Errno> {
    let own = Pid::own();
    Ok(parents()?.into_iter().filter(|(_, parent)| *parent == own).map(|(pid, _)| pid).collect())
}

/// Everything that descends from this process, parents first, except what descends from
/// the processes in `except`. Orphans count where this process adopts them.
pub fn descendants(except: &[Pid]) -> Result<Vec<Pid>, Errno> {
    let mut left = parents()?;
    left.sort_unstable_by_key(|(_, parent)| parent.raw());
    let mut found = vec![Pid::own()];
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|parent| parent.raw()) {
        let first = left.partition_point(|(_, other)| other.raw() < parent);
        let below = left[first..].partition_point(|(_, other)| other.raw() == parent);
        // Taken out: pids that were given anew meanwhile could form a circle.
        let below = left.drain(first..first + below).map(|(child, _)| child);
        found.extend(below.filter(|child| !except.contains(child)));
        next += 1;
    }
    found.remove(0);
    Ok(found)
}

/// Every process that is still there, with its parent.
fn parents() -> Result<Vec<(Pid, Pid)>, Errno> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A process that has ended meanwhile cannot be read any more.
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { continue };
        if let (Some(parent), true) = (parent_in(&stat), pid > 0) {
            found.push((Pid::new(pid), parent));
        }
    }
    Ok(found)
}

/// The parent in a stat line `pid (name) state parent …`, of a process that is still there:
/// one that has ended and waits to be reaped is. The name may hold anything, spaces and
/// parentheses too.
fn parent_in(stat: &[u8]) -> Option<Pid> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields =
        stat[name_end + 1..].split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let state = fields.next()?;
    let parent: i32 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    (state != b"X" && parent > 0).then(|| Pid::new(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        let parent = |line: &str| parent_in(line.as_bytes()).map(Pid::raw);
        assert_eq!(parent("7 (sh) S 3 7 7 0"), Some(3));
        assert_eq!(parent("7 (a) S 9 (b) R 4 7 7"), Some(4));
        assert_eq!(parent("7 (sh) Z 3 7 7 0"), Some(3));
        assert_eq!(parent("1 (init) S 0 1 1"), None);
        assert_eq!(parent("7 (sh"), None);
    }

    #[test]
    fn a_child_and_its_children_are_found() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = String::new();
        let stdout = shell.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)
            .expect("a pid");
        let (parent, child) = (shell.id() as i32, line.trim().parse::<i32>().expect("a pid"));
        let raw = |pids: Vec<Pid>| pids.into_iter().map(Pid::raw).collect::<Vec<_>>();
        let found = raw(descendants(&[]).expect("proc"));
        let at = |pid| found.iter().position(|found| *found == pid);
        assert!(at(parent).is_some() && at(parent) < at(child), "{found:?}");
        assert!(raw(children().expect("proc")).contains(&parent));
        let without = raw(descendants(&[Pid::new(parent)]).expect("proc"));
        assert!(!without.contains(&parent) && !without.contains(&child), "{without:?}");
        super::super::process::send(Pid::new(child), 9).expect("ours");
        super::super::process::send(Pid::new(parent), 9).expect("ours");
        shell.wait().expect("it ends");
    }
}
