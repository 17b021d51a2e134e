//! A container of weir's image, being put together, and what it leaves.

use crate::engine::{Engine, Live};
use crate::left::Left;
use std::ffi::OsString;
use std::process::Output;
use weir_tests::{Place, eventually};

/// Where a check is made: an engine, and an image of weir's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// The engine.
    pub(crate) engine: Engine,
    /// The image's tag, which says what it is made from.
    pub(crate) image: &'static str,
}

impl Cell {
    /// Whether an emulator runs everything there. It has threads of its own, which limits
    /// and profiles meet, and does not know PR_SET_CHILD_SUBREAPER.
    pub(crate) fn is_emulated(self) -> bool {
        self.image == "arm64"
    }

    /// What its image is for.
    pub(crate) fn architecture(self) -> &'static str {
        if self.is_emulated() { "arm64" } else { "amd64" }
    }

    /// A container that keeps logs and receipts in a folder of the test's.
    pub(crate) fn container(self) -> Container {
        let place = Place::new();
        std::fs::create_dir(place.at("logs")).unwrap();
        place.set_mode("logs", 0o1777);
        self.container_in(place)
    }

    /// The same in the place of an earlier one.
    pub(crate) fn container_in(self, place: Place) -> Container {
        let ids = [("WEIR_RUN_ID", "run"), ("WEIR_ATTEMPT_ID", "attempt")];
        let mut variables: Vec<(String, String)> =
            ids.map(|(name, value)| (name.into(), value.into())).into();
        variables.push(("WEIR_RECEIPT_ROOT".into(), "/logs/receipts".into()));
        variables.push(("WEIR_MIN_FREE".into(), "0".into()));
        let image = format!("weir:{}", self.image);
        let flags = vec![format!("--platform=linux/{}", self.architecture()).into()];
        Container { cell: self, place, image, flags, variables, job: Vec::new() }
    }
}

/// A shell's words that end a job with 99 where [`Container::forbid`] has no effect.
pub(crate) const FORBIDDEN_TOO: &str = "ln -s a /tmp/link 2>/dev/null && exit 99";

/// A container, being put together.
pub(crate) struct Container {
    cell: Cell,
    place: Place,
    image: String,
    flags: Vec<OsString>,
    variables: Vec<(String, String)>,
    job: Vec<String>,
}

impl Container {
    /// Options of the engine's.
    pub(crate) fn flags(mut self, flags: &[&str]) -> Container {
        self.flags.extend(flags.iter().map(OsString::from));
        self
    }

    /// Options that podman needs to do what docker does without.
    pub(crate) fn podman_flags(self, flags: &[&str]) -> Container {
        match self.cell.engine {
            Engine::Docker => self,
            Engine::PodmanRunc | Engine::PodmanCrun => self.flags(flags),
        }
    }

    /// A variable; a later one takes the place of an earlier.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Container {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Another image than the cell's.
    pub(crate) fn image(self, image: &str) -> Container {
        Container { image: image.to_owned(), ..self }
    }

    /// What stands after the image's name.
    pub(crate) fn words(mut self, words: &[&str]) -> Container {
        self.job = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// The job, as a shell script.
    pub(crate) fn sh(self, script: &str) -> Container {
        self.words(&["sh", "-c", script])
    }

    /// A seccomp profile that allows every call but those, which fail with EPERM, and one
    /// that weir never makes: by [`FORBIDDEN_TOO`] the job finds out that the profile is on.
    pub(crate) fn forbid(self, calls: &[&str]) -> Container {
        let calls: Vec<&str> = calls.iter().chain(&["symlink", "symlinkat"]).copied().collect();
        let profile = serde_json::json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [{ "names": calls, "action": "SCMP_ACT_ERRNO", "errnoRet": 1 }],
        });
        let path = self.place.at("seccomp.json");
        std::fs::write(&path, profile.to_string()).unwrap();
        let option = format!("seccomp={}", path.display());
        self.flags(&["--security-opt", &option])
    }

    /// Starts it.
    pub(crate) fn start(self) -> Running {
        let mut words = self.flags;
        words.push("--volume".into());
        words.push(format!("{}:/logs", self.place.at("logs").display()).into());
        for (name, value) in self.variables {
            words.push("--env".into());
            words.push(format!("{name}={value}").into());
        }
        words.push(self.image.into());
        words.extend(self.job.into_iter().map(OsString::from));
        let live = Live::start(self.cell.engine, &words);
        Running { live, left: Left { place: self.place } }
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Ended {
        self.start().wait()
    }
}

/// A container that runs.
pub(crate) struct Running {
    /// The container.
    pub(crate) live: Live,
    /// What is on disk.
    pub(crate) left: Left,
}

impl Running {
    /// Waits until the log is just this.
    #[track_caller]
    pub(crate) fn until_log_is(&self, text: &str) {
        let path = self.left.log_path();
        eventually(&format!("the log is {text:?}"), || {
            std::fs::read(&path).is_ok_and(|log| log == text.as_bytes())
        });
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(self) -> Ended {
        Ended { output: self.live.wait(), left: self.left }
    }
}

/// A container that has ended.
pub(crate) struct Ended {
    /// How, and what its process 1 has said.
    pub(crate) output: Output,
    /// What is on disk.
    pub(crate) left: Left,
}

impl Ended {
    /// The container's exit status is this.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Ended {
        assert_eq!(self.output.status.code(), Some(code), "{:?}", self.output);
        self
    }

    /// weir has refused with this code, and left nothing.
    #[track_caller]
    pub(crate) fn refused(&self, code: &str) -> &Ended {
        self.exits(125);
        let said = String::from_utf8_lossy(&self.output.stderr);
        assert!(said.starts_with(&format!("weir: error[{code}]: ")), "{said}");
        self
    }

    /// The log is this, the fact says that it is all, and nothing else is left but the
    /// receipt.
    #[track_caller]
    pub(crate) fn is_whole(&self, log: &str) -> &Ended {
        let found = self.left.log();
        assert_eq!(String::from_utf8_lossy(&found), log, "{:?}", self.output);
        let fact = self.left.fact().expect("a fact");
        assert!(!fact.quota_reached);
        let counts = fact.counts.unwrap();
        assert_eq!(counts.start_bytes + counts.kept_bytes, log.len() as u64);
        assert_eq!(self.left.names(), Left::whole_names());
        self
    }
}
