//! The options of `weir run`: one list, from which the parser, the environment
//! variables and the help text all come.

/// Which option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Log,
    Root,
    RunId,
    AttemptId,
    Quota,
    MinFree,
    Reserve,
    Profile,
    Receipt,
    ReceiptRoot,
    Fresh,
    Sync,
    LogFd,
    StatusFd,
    Tee,
    Shell,
    Chdir,
    Stdin,
    Quiet,
    AfterExit,
    Grace,
    SignalScope,
    Subreaper,
    Reopenable,
}

/// One option.
pub(crate) struct Spec {
    pub(crate) name: Name,
    /// Without the dashes.
    pub(crate) long: &'static str,
    /// What its value is called; `None` for a flag.
    pub(crate) value: Option<&'static str>,
    /// The option that says the same thing in another way: given on the command line,
    /// either keeps the other's environment variable out.
    pub(crate) rival: Option<Name>,
    pub(crate) help: &'static str,
}

impl Spec {
    /// `WEIR_QUOTA` for `--quota`.
    pub(crate) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.long.replace('-', "_").to_uppercase())
    }
}

/// No variable whose name begins so reaches the job.
pub(crate) const VARIABLE_PREFIX: &str = "WEIR_";

const fn option(name: Name, long: &'static str, value: &'static str, help: &'static str) -> Spec {
    Spec { name, long, value: Some(value), rival: None, help }
}

const fn flag(name: Name, long: &'static str, help: &'static str) -> Spec {
    Spec { name, long, value: None, rival: None, help }
}

const fn rivals(other: Name, spec: Spec) -> Spec {
    Spec { rival: Some(other), ..spec }
}

/// In the order of the help text; `Name` is in the same order.
pub(crate) const OPTIONS: [Spec; 24] = [
    rivals(Name::Root, option(Name::Log, "log", "FILE", "the log; its fact stands beside it")),
    rivals(
        Name::Log,
        option(Name::Root, "root", "DIR", "the log is DIR/<shard>/<artifact>.log, by the ids"),
    ),
    option(Name::RunId, "run-id", "ID", "the caller's id of the run [made up]"),
    option(Name::AttemptId, "attempt-id", "ID", "the caller's id of this attempt [made up]"),
    option(Name::Quota, "quota", "SIZE", "how long the log may get: 64K to 1G [64M; edge 4M]"),
    option(Name::MinFree, "min-free", "SIZE", "space to leave free: 0 to 1T [256M; edge 32M]"),
    flag(Name::Reserve, "reserve", "allocate the whole quota before the job starts"),
    option(Name::Profile, "profile", "NAME", "edge or standalone defaults [standalone]"),
    rivals(
        Name::ReceiptRoot,
        option(Name::Receipt, "receipt", "FILE", "publish a receipt of the job's end there"),
    ),
    rivals(
        Name::Receipt,
        option(
            Name::ReceiptRoot,
            "receipt-root",
            "DIR",
            "... at DIR/<2 characters>/<attempt id>.json",
        ),
    ),
    flag(Name::Fresh, "fresh", "start over: remove an ended attempt's log and records"),
    option(Name::Sync, "sync", "WHAT", "what is put on disk: full, records or none [full]"),
    option(Name::LogFd, "log-fd", "N", "the log is open already, in append mode, as fd N"),
    option(Name::StatusFd, "status-fd", "N", "write one JSON line per event to fd N"),
    flag(Name::Tee, "tee", "copy the kept bytes to standard output as well"),
    option(Name::Shell, "shell", "STRING", "run /bin/sh -c STRING instead of COMMAND"),
    option(Name::Chdir, "chdir", "DIR", "the job's working directory"),
    option(Name::Stdin, "stdin", "FROM", "the job's standard input: inherit or null [inherit]"),
    flag(Name::Quiet, "quiet", "errors only on standard error"),
    option(
        Name::AfterExit,
        "after-exit",
        "HOW",
        "if the output is still held then: linger, wait or kill",
    ),
    option(Name::Grace, "grace", "DURATION", "how long linger waits first, and kill for TERM [5s]"),
    option(
        Name::SignalScope,
        "signal-scope",
        "WHO",
        "who gets weir's signals: job, or its own group [job]",
    ),
    flag(Name::Subreaper, "subreaper", "adopt and reap the job's orphans"),
    flag(Name::Reopenable, "reopenable", "a job under another user may reopen /dev/stdout"),
];

/// The option with this name.
pub(crate) fn spec(name: Name) -> &'static Spec {
    &OPTIONS[name as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_stands_where_its_name_says() {
        for (at, one) in OPTIONS.iter().enumerate() {
            assert_eq!(one.name as usize, at, "--{}", one.long);
        }
    }

    #[test]
    fn rivals_name_each_other() {
        for one in &OPTIONS {
            if let Some(rival) = one.rival {
                assert_eq!(spec(rival).rival, Some(one.name), "--{}", one.long);
            }
        }
    }
}
