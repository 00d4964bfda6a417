//! The real program in a folder of its own: empty home, cache and state, no detected GPU.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// What a run said.
#[derive(Debug)]
pub(crate) struct Run {
    /// Exit code; 128 + signal if it died of one.
    pub(crate) code: i32,
    /// What it wrote on stdout.
    pub(crate) stdout: String,
    /// What it wrote on stderr.
    pub(crate) stderr: String,
}

impl Run {
    /// Reads the outcome of a finished process.
    pub(crate) fn of(output: &Output) -> Self {
        let status = output.status;
        Self {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The program with folders of its own, removed with this value.
pub(crate) struct Program {
    folder: TempDir,
    without: &'static [&'static str],
    variables: Vec<(String, String)>,
}

impl Program {
    /// Empty home, cache, state and temporary folder; no GPU; the caller's environment without those variables.
    pub(crate) fn new(without: &'static [&'static str]) -> Self {
        let folder = tempfile::Builder::new().prefix("envforge-test-").tempdir().expect("a temporary folder");
        let program = Self { folder, without, variables: Vec::new() };
        for name in ["home", "cache", "state", "tmp"] {
            std::fs::create_dir(program.path(name)).expect("a folder below the temporary one");
        }
        program.with("ENVFORGE_GPU", "").with("ENVFORGE_DRIVER", "")
    }

    /// The same with an environment variable set, or set anew.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets an environment variable, or sets it anew.
    pub(crate) fn set(&mut self, name: &str, value: impl AsRef<str>) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.as_ref().to_owned()));
    }

    /// A path below the program's folder.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, not started: standard input is empty, all output is caught.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_envforge")), args)
    }

    /// The same for a copy of the program.
    pub(crate) fn command_of(&self, binary: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(binary);
        for name in self.without {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(self.folder.path())
            // A terminal as people have it: whoever runs the tests may have another, or none.
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("ENVFORGE_CACHE_DIR", self.path("cache"))
            .env("ENVFORGE_STATE_DIR", self.path("state"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(&self.command(args).output().expect("the program starts"))
    }
}
