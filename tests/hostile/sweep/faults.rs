//! What is done to a run, in the words of strace(1), and the proof that it was done.

/// One fault at the n-th call of one name, in each process of the run: weir itself, its
/// drainer's thread, the job before its exec, and the copy in the background all count
/// for themselves.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) call: String,
    pub(super) what: What,
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The call is not made, and answers so.
    Error(&'static str),
    /// The process ends where it would have made the call.
    Kill,
    /// The call is made a little later.
    Delay,
}

impl What {
    /// The class that it is counted under.
    pub(super) fn class(self) -> &'static str {
        match self {
            What::Error(errno) => errno,
            What::Kill => "SIGKILL",
            What::Delay => "delay",
        }
    }
}

impl Fault {
    pub(super) fn words(&self) -> String {
        let (call, at) = (&self.call, self.at);
        let what = match self.what {
            What::Error(errno) => format!("error={errno}"),
            What::Kill => "signal=SIGKILL".to_owned(),
            // Long enough for every other process to get ahead.
            What::Delay => "delay_enter=2000".to_owned(),
        };
        format!("inject={call}:{what}:when={at}")
    }

    /// How often the trace says that it has happened.
    pub(super) fn hits(&self, trace: &str) -> usize {
        match self.what {
            What::Error(_) => trace.matches("(INJECTED)").count(),
            What::Delay => trace.matches("(DELAYED)").count(),
            What::Kill => trace.matches("+++ killed by SIGKILL +++").count(),
        }
    }
}

/// What any system call of a file's may answer, on one kernel or another.
pub(super) const EVERY_ERRNO: &[&str] = &[
    "ENOSPC",
    "EDQUOT",
    "EIO",
    "EROFS",
    "EPERM",
    "EACCES",
    "EMFILE",
    "ENFILE",
    "ENOMEM",
    "EINTR",
    "EAGAIN",
    "EEXIST",
    "ENOENT",
    "ELOOP",
    "EINVAL",
    "ENOSYS",
    "EOPNOTSUPP",
];

/// One for each way in which weir tells errors apart: no room (ENOSPC), a device (EIO), a
/// prohibition (EPERM), a limit (EMFILE, ENOMEM), try again (EINTR, EAGAIN), a name that
/// is taken or gone (EEXIST, ENOENT), and what the kernel does not have (EINVAL, ENOSYS).
pub(super) const EVERY_KIND: &[&str] = &[
    "ENOSPC", "EIO", "EPERM", "EMFILE", "ENOMEM", "EINTR", "EAGAIN", "EEXIST", "ENOENT", "EINVAL",
    "ENOSYS",
];
