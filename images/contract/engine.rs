//! What runs containers, and one container of theirs.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_tests::{PATIENCE, collect};

/// Where `images/contract/run` has put what the engines work with.
pub(crate) fn home() -> PathBuf {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    house.join("target/contract")
}

/// An engine, and under podman the runtime below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// podman on runc.
    PodmanRunc,
    /// podman on crun.
    PodmanCrun,
    /// docker's daemon, on runc.
    Docker,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::PodmanRunc => "runc",
            Engine::PodmanCrun => "crun",
            Engine::Docker => "docker",
        })
    }
}

/// A command in front of which cgroup version 2 is hidden: beside version 1 crun works
/// with neither.
pub(crate) fn without_mixed_cgroups(program: &str) -> Command {
    let script = "umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh", program]);
    command
}

impl Engine {
    /// The engine's command line, up to its own verb.
    pub(crate) fn command(self) -> Command {
        let home = home();
        let podman = |mut command: Command, runtime: &str| {
            command.env("CONTAINERS_CONF", home.join("podman/containers.conf"));
            command.arg("--root").arg(home.join("podman/store"));
            command.arg("--runroot").arg(home.join("podman/run"));
            command.args(["--runtime", runtime]);
            // A container out of memory leaves a file where podman was started.
            command.current_dir(home.join("podman"));
            command
        };
        match self {
            Engine::PodmanRunc => podman(Command::new("podman"), "runc"),
            Engine::PodmanCrun => podman(without_mixed_cgroups("podman"), "crun"),
            Engine::Docker => {
                let mut command = Command::new("docker");
                command
                    .arg("--host")
                    .arg(format!("unix://{}", home.join("docker/socket").display()));
                command
            }
        }
    }

    /// Runs a verb of the engine's to its end.
    #[track_caller]
    fn try_verb(self, words: &[&str]) -> Output {
        let mut command = self.command();
        command.args(words);
        Client::start(command).wait().unwrap_or_else(|| panic!("{self} {words:?} never ended"))
    }

    /// The same; it must succeed.
    #[track_caller]
    pub(crate) fn verb(self, words: &[&str]) -> String {
        let output = self.try_verb(words);
        assert!(output.status.success(), "{self} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A name that no other container of these checks has.
pub(crate) fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("weir-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A command that runs, and what it says.
struct Client {
    child: Child,
    /// Taken when it has ended by itself.
    streams: Option<[JoinHandle<Vec<u8>>; 2]>,
}

impl Client {
    fn start(mut command: Command) -> Client {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Client { child, streams: Some([collect(stdout), collect(stderr)]) }
    }

    /// Waits for its end; `None` when there is none in time, and then it is killed.
    fn wait(&mut self) -> Option<Output> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.kill();
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] = self.streams.take()?.map(|stream| stream.join().unwrap());
        Some(Output { status, stdout, stderr })
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A container that runs.
pub(crate) struct Live {
    engine: Engine,
    name: String,
    client: Client,
}

/// A check that fails leaves no container behind.
impl Drop for Live {
    fn drop(&mut self) {
        if self.client.streams.is_none() {
            return;
        }
        // podman's `rm` would ask the container to end, and wait.
        self.engine.try_verb(&["kill", "--signal=KILL", &self.name]);
        // The first time podman may find out that nobody watches it any more, and fail.
        let remove = || self.engine.try_verb(&["rm", "--force", &self.name]).status.success();
        let _ = remove() || remove();
        self.client.kill();
    }
}

impl Live {
    /// Starts one; the words are those after `run --name NAME`.
    pub(crate) fn start(engine: Engine, words: &[OsString]) -> Live {
        let name = fresh_name();
        let mut command = engine.command();
        command.args(["run", "--rm", "--network", "none", "--name", &name]).args(words);
        Live { engine, name, client: Client::start(command) }
    }

    /// Sends its process 1 a signal.
    #[track_caller]
    pub(crate) fn kill(&self, signal: &str) {
        self.engine.verb(&["kill", "--signal", signal, &self.name]);
    }

    /// Stops it as a user does: TERM, and KILL after so long.
    #[track_caller]
    pub(crate) fn stop(&self, grace: Duration) {
        self.engine.verb(&["stop", "--time", &grace.as_secs().to_string(), &self.name]);
    }

    /// Its process 1, by the number that it has outside.
    #[track_caller]
    pub(crate) fn process_one(&self) -> u32 {
        let said = self.engine.verb(&["inspect", "--format", "{{.State.Pid}}", &self.name]);
        said.trim().parse().unwrap()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Output {
        self.client.wait().expect("the container never ended")
    }
}
