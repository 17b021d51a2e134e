//! Starting a job: clone(2), execve(2), and the search along `PATH`.
//!
//! The standard library's `Command` resets the signal mask and SIGPIPE, drops
//! malformed environment entries and cannot run a script without `#!`; a launcher
//! must change nothing of the kind.

use super::errno::Errno;
use super::inherited::Inherited;
use super::process::{self, Pid};
use super::signals::{self, Disposition};
use super::terminal::Terminal;
use super::twin;
use std::ffi::{CStr, CString, c_char};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// What the job is and what it starts with. Everything that is not named here it
/// inherits as it is.
#[derive(Debug)]
pub struct Job<'a> {
    /// The command and its arguments; the command is looked up along `PATH` unless it
    /// has a slash.
    pub words: &'a [CString],
    /// The variables that are kept from the job.
    pub hidden: Hidden<'a>,
    /// Standard input, or `None` for the inherited one.
    pub stdin: Option<BorrowedFd<'a>>,
    /// The working directory, or `None` for the inherited one.
    pub directory: Option<BorrowedFd<'a>>,
    /// The file mode creation mask.
    pub umask: u32,
    /// The signal state that this process was started with.
    pub inherited: Inherited,
    /// Whether SIGCHLD was ignored then.
    pub child_ignored: bool,
    /// Which process group it is in.
    pub group: Group<'a>,
}

/// Variables that are kept from a job.
#[derive(Clone, Copy, Debug)]
pub enum Hidden<'a> {
    /// Those whose names begin so.
    Prefix(&'a str),
    /// Those with these names.
    Names(&'a [&'a str]),
}

impl Hidden<'_> {
    fn hides(self, entry: &CStr) -> bool {
        let entry = entry.to_bytes();
        match self {
            Hidden::Prefix(prefix) => entry.starts_with(prefix.as_bytes()),
            Hidden::Names(names) => names.iter().any(|name| {
                entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
            }),
        }
    }
}

/// The process group that a job is in.
#[derive(Clone, Copy, Debug)]
pub enum Group<'a> {
    /// The one that this process is in.
    Inherited,
    /// One of its own, which gets this terminal's foreground.
    Own(Option<&'a Terminal>),
}

/// The step of a start that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No process could be made for it.
    Fork,
    /// Its descriptors could not be put in place.
    Descriptors,
    /// Its working directory could not be entered.
    Directory,
    /// The command was not found.
    Find,
    /// The command was found but not started.
    Execute,
    /// The command is there, but the interpreter or loader that it names is not.
    Interpreter,
}

/// A start that failed. Nothing of the job has run.
#[derive(Debug)]
pub struct StartError {
    /// What failed.
    pub step: Step,
    /// Why.
    pub errno: Errno,
    /// The job's output, handed back: the failure can still be told through it.
    pub output: Option<OwnedFd>,
}

/// Starts a job whose standard output and error are `output`, or without it the inherited
/// ones, and nothing else of ours; returns when its program runs.
///
/// To be called while the process has one thread; the caller blocks signals first, and
/// the job gets the inherited mask back. `meanwhile` is called as soon as the process is
/// there, and should return when [`Starting`] can be read: then its program runs, or could
/// not be started. Until then it may wait, and pass signals on, by what is in
/// [`super::streams`], [`super::signals`], [`super::terminal`] and [`process`].
pub fn start(
    job: &Job<'_>,
    output: Option<OwnedFd>,
    meanwhile: impl FnOnce(&Starting<'_>),
) -> Result<Pid, StartError> {
    let fail = |step, errno, output| Err(StartError { step, errno, output });
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (verdict, reporter) = match rustix::pipe::pipe_with(flags) {
        Ok(ends) => ends,
        Err(errno) => return fail(Step::Fork, errno.into(), output),
    };
    let mut program = Program::new(job);
    // Raw, since it is closed here while the child has it still.
    let (given, end) = (output.as_ref().map(AsFd::as_fd), reporter.as_raw_fd());
    let mut child = || run_child(job, &mut program, given, end);
    // SAFETY: this process has one thread. The child calls only async-signal-safe functions
    // and allocates nothing. What it works with is dropped, and reaped with its last word,
    // after `verdict`, which is there when it is another program or at its end. Meanwhile
    // this thread goes to the kernel past `errno`: by rustix, here and in all that a
    // `meanwhile` may call.
    let twin = match unsafe { twin::begin(&mut child) } {
        Ok(twin) => twin,
        Err(errno) => return fail(Step::Fork, errno, output),
    };
    // Or the end would never come.
    drop(reporter);
    let verdict = Verdict(verdict);
    if let Group::Own(_) = job.group {
        // The child does it too; whoever comes first, it is done when either goes on. After
        // its execve this one is refused, and not needed.
        process::lead_group(twin.pid);
    }
    meanwhile(&Starting { pid: twin.pid, verdict: verdict.0.as_fd() });
    match verdict.wait() {
        None => Ok(twin.pid),
        Some(message) => {
            // SAFETY: a null pointer makes waitpid(2) only reap; the pid is our child's,
            // and the child has said its last word.
            unsafe { libc::waitpid(twin.pid.raw(), std::ptr::null_mut(), 0) };
            let (step, errno) = decode(message);
            fail(step, errno, output)
        }
    }
}

/// A process that is about to become the job. It can be read ([`AsFd`]) as soon as it is
/// known whether the job's program runs.
#[derive(Debug)]
pub struct Starting<'a> {
    pid: Pid,
    verdict: BorrowedFd<'a>,
}

impl Starting<'_> {
    /// The job's process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }
}

impl AsFd for Starting<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.verdict
    }
}

/// Where a child says why it could not become the job.
struct Verdict(OwnedFd);

impl Verdict {
    /// Waits for what it says, or for the end: execve(2) has closed it, or a signal was
    /// quicker. Either way the job was there.
    fn wait(&self) -> Option<[u8; MESSAGE_BYTES]> {
        let mut message = [0; MESSAGE_BYTES];
        loop {
            match super::streams::read(&self.0, &mut message) {
                Ok(MESSAGE_BYTES) => return Some(message),
                Ok(_) => return None,
                // Tried again: one or the other always comes, and before that nothing that
                // the child works with may go.
                Err(_) => {}
            }
        }
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        // Also where a `meanwhile` panics.
        if std::thread::panicking() {
            self.wait();
        }
    }
}

const MESSAGE_BYTES: usize = 8;

const STEPS: [Step; 5] =
    [Step::Descriptors, Step::Directory, Step::Find, Step::Execute, Step::Interpreter];

fn encode(step: Step, errno: i32) -> [u8; MESSAGE_BYTES] {
    let at = STEPS.iter().position(|one| *one == step).unwrap_or(0) as u32;
    let mut message = [0; MESSAGE_BYTES];
    message[..4].copy_from_slice(&at.to_ne_bytes());
    message[4..].copy_from_slice(&errno.to_ne_bytes());
    message
}

fn decode(message: [u8; MESSAGE_BYTES]) -> (Step, Errno) {
    let [a, b, c, d, e, f, g, h] = message;
    let at = u32::from_ne_bytes([a, b, c, d]) as usize;
    let step = STEPS.get(at).copied().unwrap_or(Step::Execute);
    (step, Errno::from_raw(i32::from_ne_bytes([e, f, g, h])))
}

/// Everything that execve(2) needs, laid out beforehand: the child may not allocate.
struct Program {
    candidates: Vec<CString>,
    arguments: Vec<*const c_char>,
    /// `/bin/sh`, a place for the script, and its arguments.
    shell_arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    searched: bool,
}

const SHELL: &CStr = c"/bin/sh";
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";
const SCRIPT_AT: usize = 1;

impl Program {
    fn new(job: &Job<'_>) -> Program {
        let command = job.words.first().map_or(c"", |word| word.as_c_str());
        let searched = !command.to_bytes().contains(&b'/');
        let candidates = if searched { search(command) } else { vec![command.to_owned()] };
        let words = || job.words.iter().map(|word| word.as_ptr());
        let end = [std::ptr::null()];
        let mut shell_arguments = vec![SHELL.as_ptr(), std::ptr::null()];
        shell_arguments.extend(words().skip(1).chain(end));
        Program {
            candidates,
            arguments: words().chain(end).collect(),
            shell_arguments,
            environment: environment()
                .filter(|entry| !job.hidden.hides(entry))
                .map(CStr::as_ptr)
                .chain(end)
                .collect(),
            searched,
        }
    }
}

/// Where along `PATH` the command may be, in order.
fn search(command: &CStr) -> Vec<CString> {
    if command.is_empty() {
        return Vec::new();
    }
    let path = environment()
        .find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH);
    path.split(|byte| *byte == b':')
        .filter_map(|directory| {
            let mut candidate = directory.to_vec();
            // An empty entry is the working directory.
            if !candidate.is_empty() {
                candidate.push(b'/');
            }
            candidate.extend_from_slice(command.to_bytes());
            CString::new(candidate).ok()
        })
        .collect()
}

/// The environment as it is, entry by entry, malformed ones too.
fn environment() -> impl Iterator<Item = &'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library keeps `environ`, null or an array that a null ends. weir
    // never changes its environment, so the array and its strings stay as they are.
    let mut at = unsafe { environ };
    std::iter::from_fn(move || {
        // SAFETY: as above; the walk stops at the null.
        unsafe {
            if at.is_null() || (*at).is_null() {
                return None;
            }
            let entry = CStr::from_ptr(*at);
            at = at.add(1);
            Some(entry)
        }
    })
}

/// Becomes the job, or says why not.
fn run_child(
    job: &Job<'_>,
    program: &mut Program,
    output: Option<BorrowedFd<'_>>,
    reporter: RawFd,
) {
    let (step, errno) = prepare(job, output).unwrap_or_else(|| execute(program));
    let message = encode(step, errno);
    // SAFETY: write(2) is async-signal-safe; the message is alive. One write of eight bytes
    // into an empty pipe is whole.
    unsafe { libc::write(reporter, message.as_ptr().cast(), message.len()) };
}

fn errno_now() -> i32 {
    Errno::last().raw()
}

/// Puts everything in place that the job inherits; says what failed.
fn prepare(job: &Job<'_>, output: Option<BorrowedFd<'_>>) -> Option<(Step, i32)> {
    if let Group::Own(terminal) = job.group {
        // Before the terminal is ours, it would stop whoever takes it.
        super::terminal::block_background_stops();
        // SAFETY: setpgid(2) and getpid(2) are async-signal-safe.
        unsafe { libc::setpgid(0, 0) };
        if let Some(terminal) = terminal {
            terminal.give_to(Pid::own());
        }
    }
    // SAFETY: all of these are async-signal-safe system calls on numbers that are
    // open, or (close) may be closed already.
    unsafe {
        let given = [job.stdin, output, output];
        for ((standard, given), open) in (0..).zip(given).zip(job.inherited.standard_open) {
            match given {
                Some(given) if libc::dup2(given.as_raw_fd(), standard) < 0 => {
                    return Some((Step::Descriptors, errno_now()));
                }
                Some(_) => {}
                // The runtime has put /dev/null where nothing was.
                None if !open => {
                    libc::close(standard);
                }
                None => {}
            }
        }
        if let Some(directory) = job.directory {
            if libc::fchdir(directory.as_raw_fd()) < 0 {
                return Some((Step::Directory, errno_now()));
            }
        }
        libc::umask(job.umask as libc::mode_t);
    }
    if !job.inherited.pipe_ignored {
        signals::dispose(libc::SIGPIPE, Disposition::Default);
    }
    if job.child_ignored {
        signals::dispose(libc::SIGCHLD, Disposition::Ignored);
    }
    // Last: from here on a signal to the job does what it would do to the job.
    signals::set_mask(job.inherited.mask);
    None
}

/// Replaces the child by the job's program; returns only when that failed.
fn execute(program: &mut Program) -> (Step, i32) {
    let mut failure = (Step::Find, libc::ENOENT);
    for candidate in &program.candidates {
        // SAFETY: the path and both arrays are alive, and a null ends each array.
        unsafe {
            libc::execve(
                candidate.as_ptr(),
                program.arguments.as_ptr(),
                program.environment.as_ptr(),
            );
        }
        let errno = errno_now();
        let here = || exists(candidate);
        match errno {
            libc::ENOEXEC if is_text(candidate) => {
                program.shell_arguments[SCRIPT_AT] = candidate.as_ptr();
                // SAFETY: as above.
                unsafe {
                    let arguments = program.shell_arguments.as_ptr();
                    libc::execve(SHELL.as_ptr(), arguments, program.environment.as_ptr());
                }
                return (Step::Interpreter, errno_now());
            }
            libc::ENOENT if here() => failure = (Step::Interpreter, errno),
            libc::ENOENT | libc::ENOTDIR if !program.searched => return (Step::Find, errno),
            // Not here; and a directory that cannot be searched is as if it were not there.
            libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ESTALE | libc::ETIMEDOUT => {}
            libc::EACCES if program.searched && !here() => {}
            libc::EACCES if program.searched => failure = (Step::Execute, errno),
            _ => return (Step::Execute, errno),
        }
    }
    failure
}

fn exists(path: &CStr) -> bool {
    // SAFETY: access(2) reads the path, which is alive.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 }
}

/// Whether a file that the kernel does not know how to run may be a script: a shell
/// takes it for one unless its first line has a NUL byte.
fn is_text(path: &CStr) -> bool {
    let mut head = [0u8; 256];
    // SAFETY: open, read and close are async-signal-safe; the buffer is alive.
    let got = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY);
        if file < 0 {
            return false;
        }
        let got = libc::read(file, head.as_mut_ptr().cast(), head.len());
        libc::close(file);
        got
    };
    let head = &head[..usize::try_from(got).unwrap_or(0)];
    let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    got >= 0 && !first_line.contains(&0)
}
