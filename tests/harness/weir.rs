//! A weir that is put together, run, and looked at.

use crate::binary::weir_binary;
use crate::tools::PATIENCE;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_common::sys::process::{self, Pid};

/// `weir run`, being put together.
pub struct Weir {
    here: PathBuf,
    before: Vec<OsString>,
    options: Vec<OsString>,
    job: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    stdin: Stdio,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
}

impl Weir {
    pub(crate) fn new(here: &Path) -> Weir {
        Weir {
            here: here.to_owned(),
            before: Vec::new(),
            options: vec!["run".into()],
            job: Vec::new(),
            variables: Vec::new(),
            stdin: Stdio::null(),
            stdout: None,
            stderr: None,
        }
    }

    /// Adds `--name value`.
    pub fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Weir {
        self.options.push(format!("--{name}").into());
        self.options.push(value.as_ref().to_owned());
        self
    }

    /// Adds `--name`.
    pub fn flag(mut self, name: &str) -> Weir {
        self.options.push(format!("--{name}").into());
        self
    }

    /// Replaces everything between `weir` and the job.
    pub fn words(mut self, words: &[&str]) -> Weir {
        self.options = words.iter().map(OsString::from).collect();
        self
    }

    /// The job, word by word.
    pub fn job(mut self, words: &[&str]) -> Weir {
        self.job = words.iter().map(OsString::from).collect();
        self
    }

    /// The job, word by word, whatever the bytes are.
    pub fn job_os(mut self, words: &[&OsStr]) -> Weir {
        self.job = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// The job, as a shell script.
    pub fn sh(self, script: &str) -> Weir {
        self.job(&["sh", "-c", script])
    }

    /// Sets a variable of weir's environment, which has no other `WEIR_*`.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Weir {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// A command that runs weir: `setpriv`, `sh -c 'exec "$@"' sh`, …
    pub fn under(mut self, words: &[&str]) -> Weir {
        self.before = words.iter().map(OsString::from).collect();
        self
    }

    /// Weir's standard input; without, it is empty.
    pub fn stdin(self, stdin: impl Into<Stdio>) -> Weir {
        Weir { stdin: stdin.into(), ..self }
    }

    /// Weir's standard output; without, the test gets it.
    pub fn stdout(self, stdout: impl Into<Stdio>) -> Weir {
        Weir { stdout: Some(stdout.into()), ..self }
    }

    /// Weir's standard error; without, the test gets it.
    pub fn stderr(self, stderr: impl Into<Stdio>) -> Weir {
        Weir { stderr: Some(stderr.into()), ..self }
    }

    /// Starts it.
    pub fn spawn(self) -> Running {
        let mut words = self.before;
        words.push(weir_binary().into());
        words.extend(self.options);
        if !self.job.is_empty() {
            words.push("--".into());
            words.extend(self.job);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.here).stdin(self.stdin);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WEIR_") {
                command.env_remove(name);
            }
        }
        command.envs(self.variables);
        command.stdout(self.stdout.unwrap_or_else(Stdio::piped));
        command.stderr(self.stderr.unwrap_or_else(Stdio::piped));
        let mut child = command.spawn().unwrap();
        Running {
            stdout: child.stdout.take().map(collect),
            stderr: child.stderr.take().map(collect),
            child,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Done {
        self.spawn().wait()
    }
}

/// Reads a stream to its end, so that nobody who writes to it has to wait.
pub fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// A weir that runs.
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Its process id (or that of the command that runs it, where that does not exec).
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by name, such as `TERM`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        send(name, self.pid());
    }

    /// Sends it a signal at once, without a shell on the way; `name` is for the message.
    #[track_caller]
    pub fn signal_number(&self, name: &str, number: i32) {
        let pid = Pid::from_raw(self.pid() as i32).unwrap();
        process::send(pid, number).unwrap_or_else(|why| panic!("cannot send {name}: {why}"));
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Done {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("weir never ended");
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let text = |stream: Option<JoinHandle<Vec<u8>>>| {
            stream.map(|one| one.join().unwrap()).unwrap_or_default()
        };
        Done { status, stdout: text(self.stdout), stderr: text(self.stderr) }
    }
}

/// Sends a signal by name: kill(1).
#[track_caller]
pub fn send(signal: &str, pid: u32) {
    let status =
        Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid.to_string()]).status();
    assert!(status.unwrap().success(), "cannot send {signal} to {pid}");
}

/// A weir that has ended.
pub struct Done {
    status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; stderr {:?}; {} bytes of stdout",
            self.status,
            self.stderr(),
            self.stdout.len()
        )
    }
}

impl Done {
    /// Its exit code, if no signal has ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// It exited with this code.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Done {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }

    /// A signal ended it.
    #[track_caller]
    pub fn dies_by(&self, signal: i32) -> &Done {
        assert_eq!(self.status.signal(), Some(signal), "{self:?}");
        assert!(!self.status.core_dumped(), "{self:?}");
        self
    }

    /// This, and nothing else, is what it wrote to its standard error.
    #[track_caller]
    pub fn says(&self, stderr: &str) -> &Done {
        assert_eq!(self.stderr(), stderr);
        self
    }

    /// Whether it has written nothing to its standard error.
    pub fn says_nothing(&self) -> bool {
        self.stderr.is_empty()
    }

    /// It was refused, with this code, on one line and perhaps one of a hint.
    #[track_caller]
    pub fn refused(&self, code: &str) -> &Done {
        let stderr = self.stderr();
        let mut lines = stderr.lines();
        let first = lines.next().unwrap_or_default();
        assert!(first.starts_with(&format!("weir: error[{code}]: ")), "{stderr:?}");
        assert!(lines.all(|line| line.starts_with("hint: ")), "{stderr:?}");
        assert!(stderr.lines().count() <= 2, "{stderr:?}");
        let expected = match code {
            "not-executable" => 126,
            "not-found" => 127,
            _ => 125,
        };
        self.exits(expected)
    }

    /// Its standard error, as text.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Its standard output, as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}
