//! Starting the job as if weir were not there.

use super::relay::Relay;
use crate::plan::{Plan, Scope, Stdin};
use crate::refusal::{Code, Refusal};
use std::os::fd::{AsFd, OwnedFd};
use weir_common::Errno;
use weir_common::sys::inherited::Inherited;
use weir_common::sys::process::{self, Pid};
use weir_common::sys::spawn::{self, Group, Job, Starting, Step};
use weir_common::sys::{files, signals, streams};

/// What weir changes for itself, and gives back to the job.
pub(super) struct Setting {
    inherited: Inherited,
    child_ignored: bool,
    umask: u32,
    directory: Option<OwnedFd>,
    stdin: Option<OwnedFd>,
}

impl Setting {
    /// Takes weir's own settings, and opens what the job starts with.
    pub(super) fn take_over(plan: &Plan, inherited: Inherited) -> Result<Setting, Refusal> {
        let fail = |what| move |errno: Errno| Refusal::new(Code::System, what).because(errno);
        let directory = plan.directory.as_ref().map(|path| {
            let refusal = Refusal::new(Code::System, "cannot enter directory").at(path);
            files::open_working_directory(path).map_err(|errno| refusal.because(errno))
        });
        let stdin = match plan.stdin {
            Stdin::Inherited => None,
            Stdin::Null => Some(files::open_null().map_err(fail("cannot open /dev/null"))?),
        };
        // Before the job: it must find nothing of weir's in /proc, its environment and
        // descriptors least of all.
        process::shut_from_view().map_err(fail("cannot keep the job from looking into weir"))?;
        Ok(Setting {
            inherited,
            child_ignored: signals::keep_ended_children(),
            // Nothing that weir makes has a mode that a umask should change.
            umask: process::replace_umask(0),
            directory: directory.transpose()?,
            stdin,
        })
    }
}

/// What became of a start.
pub(super) enum Start {
    /// The job runs.
    Running(Pid),
    /// There is no such command, or it cannot be executed.
    Failed {
        /// What to say of it.
        refusal: Refusal,
        /// The reason that the receipt gives.
        errno: Errno,
        /// The job's end of the stream, if there is one.
        output: Option<OwnedFd>,
    },
}

/// Starts the job with `output` as its standard output and error, or without it with
/// weir's own. A refusal means that weir itself could not, and the job has nothing to do
/// with it.
pub(super) fn start(
    plan: &Plan,
    setting: &Setting,
    output: Option<OwnedFd>,
    relay: &Relay<'_>,
) -> Result<Start, Refusal> {
    let job = Job {
        words: &plan.words,
        hidden: plan.hidden,
        stdin: setting.stdin.as_ref().map(AsFd::as_fd),
        directory: setting.directory.as_ref().map(AsFd::as_fd),
        umask: setting.umask,
        inherited: setting.inherited,
        child_ignored: setting.child_ignored,
        group: match plan.scope {
            Scope::Job => Group::Inherited,
            Scope::Group => Group::Own(relay.terminal().filter(|terminal| terminal.is_ours())),
        },
    };
    let failed = match spawn::start(&job, output, |starting| await_start(starting, relay)) {
        Ok(pid) => return Ok(Start::Running(pid)),
        Err(failed) => failed,
    };
    let command =
        plan.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let cannot_run = |code| Refusal::new(code, "cannot run").at(&command);
    let errno = failed.errno;
    let refusal = match failed.step {
        Step::Fork => {
            return Err(Refusal::new(Code::System, "cannot make a process").because(errno));
        }
        Step::Descriptors => {
            return Err(
                Refusal::new(Code::System, "cannot hand descriptors to the job").because(errno)
            );
        }
        Step::Directory => {
            let refusal = Refusal::new(Code::System, "cannot enter directory");
            return Err(refusal
                .at(plan.directory.as_deref().unwrap_or("/".as_ref()))
                .because(errno));
        }
        Step::Find => cannot_run(Code::NotFound).because(errno),
        Step::Execute => cannot_run(Code::NotExecutable).because(errno),
        Step::Interpreter => cannot_run(Code::NotExecutable)
            .because(format_args!("its interpreter or loader: {errno}"))
            .hint(
                "the file is there, but the program that its first line or its header names is not",
            ),
    };
    Ok(Start::Failed { refusal, errno, output: failed.output })
}

/// Waits until the job's program runs, and passes signals on meanwhile: a program on a
/// file system that hangs takes its time.
fn await_start(starting: &Starting<'_>, relay: &Relay<'_>) {
    let pid = starting.pid();
    relay.pass_on_early(pid);
    while let Ok(Some(0)) = streams::first_readable([relay.signals.as_fd(), starting.as_fd()], None)
    {
        while let Some(arrived) = relay.signals.next() {
            relay.pass_on(pid, arrived);
        }
    }
}

/// Tells a failed start where its reader looks: in the log, through the stream, so that
/// the quota holds.
pub(super) fn tell_in_log(refusal: &Refusal, output: OwnedFd) {
    // An empty pipe takes a line at once; nobody reads yet.
    let _ = streams::write_without_waiting(&output, refusal.line().as_bytes());
}
