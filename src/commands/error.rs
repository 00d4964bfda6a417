//! The error of a command: what is printed, which hints follow, which code the process exits with.

use std::error::Error;
use std::process::ExitCode;

use owo_colors::OwoColorize;

use crate::address::AddressError;
use crate::base::BaseError;
use crate::compat::{CompatError, GpuNameError};
use crate::engine::EngineError;
use crate::fetch::FetchError;
use crate::lock::LockError;
use crate::packages::PackagesError;
use crate::settings::SettingsError;
use crate::spec::SpecError;
use crate::store::StoreError;
use crate::versions::VersionError;

/// How a command ended. These codes are public: people script against them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It is done.
    Done = 0,
    /// It worked and the answer is no: impossible stack, failed check, stale lock.
    No = 1,
    /// The call or a file is wrong.
    Usage = 2,
    /// Something outside failed: engine, network, driver, disk.
    Outside = 3,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// The async runtime could not start.
    #[error("the program's runtime cannot start")]
    Runtime {
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The spec cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The compatibility data cannot be read.
    #[error(transparent)]
    Compat(#[from] CompatError),
    /// The GPU is not known.
    #[error(transparent)]
    Gpu(#[from] GpuNameError),
    /// A version on the command line cannot be read.
    #[error("{option}: {cause}")]
    Version {
        /// The option.
        option: &'static str,
        /// Why.
        cause: VersionError,
    },
    /// An address in a setting cannot be read. The address itself is not repeated: it may hold credentials.
    #[error("{setting}: {cause}")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Why.
        cause: AddressError,
    },
    /// No stack fits; the text lists every reason.
    #[error("{text}")]
    Impossible {
        /// The refusal, as people read it.
        text: String,
    },
    /// The checks before the tag failed.
    #[error("the image was built but not tagged: {failed} of its checks failed")]
    ChecksFailed {
        /// How many failed or errored.
        failed: usize,
        /// The image, which stays for inspection.
        image: String,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The base.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// Packages.
    #[error(transparent)]
    Packages(#[from] PackagesError),
    /// Downloads.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Cache and state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock file cannot be read.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// `--locked`, and there is no lock or it does not fit.
    #[error("{}", stale_text(file, differences))]
    Stale {
        /// The lock file.
        file: String,
        /// What differs; empty: there is no lock.
        differences: Vec<String>,
    },
    /// The command cannot build this yet.
    #[error("`{what}` is planned but cannot be built by this version: {why}")]
    Unsupported {
        /// The spec or flavour.
        what: String,
        /// Why not.
        why: &'static str,
    },
    /// The engine's disk has too little space.
    #[error("too little disk space: {} needed in `{folder}`, {} free", gigabytes(*need_bytes), gigabytes(*free_bytes))]
    NoSpace {
        /// The folder.
        folder: String,
        /// What a build needs, bytes.
        need_bytes: u64,
        /// What is free, bytes.
        free_bytes: u64,
    },
    /// The folder to write to holds something else.
    #[error("`{dir}` is not empty")]
    NotEmpty {
        /// The folder.
        dir: String,
    },
    /// A file cannot be written.
    #[error("{0}")]
    File(#[from] std::io::Error),
}

fn stale_text(file: &str, differences: &[String]) -> String {
    if differences.is_empty() {
        return format!("there is no lock at `{file}`");
    }
    format!("the lock `{file}` does not fit what was asked:\n  - {}", differences.join("\n  - "))
}

impl CommandError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        let code = match self {
            Self::Interrupted => return Exit::Interrupted,
            Self::Runtime { .. } | Self::NoSpace { .. } | Self::File(_) => return Exit::Outside,
            Self::Settings(_)
            | Self::Address { .. }
            | Self::Version { .. }
            | Self::NotEmpty { .. }
            | Self::Unsupported { .. } => {
                return Exit::Usage;
            }
            Self::Stale { .. } | Self::Impossible { .. } | Self::ChecksFailed { .. } => return Exit::No,
            Self::Spec(error) => error.exit_code(),
            Self::Compat(error) => error.exit_code(),
            Self::Gpu(error) => error.exit_code(),
            Self::Engine(error) => error.exit_code(),
            Self::Base(error) => error.exit_code(),
            Self::Packages(error) => error.exit_code(),
            Self::Fetch(error) => error.exit_code(),
            Self::Store(error) => error.exit_code(),
            Self::Lock(error) => error.exit_code(),
        };
        match code {
            0 => Exit::Done,
            1 => Exit::No,
            2 => Exit::Usage,
            130 => Exit::Interrupted,
            _ => Exit::Outside,
        }
    }

    /// What the user can do, one line each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Settings(error) => error.hints(),
            Self::Spec(error) => error.hints(),
            Self::Compat(error) => error.hints(),
            Self::Gpu(error) => error.hints(),
            Self::Engine(error) => error.hints(),
            Self::Base(error) => error.hints(),
            Self::Packages(error) => error.hints(),
            Self::Fetch(error) => error.hints(),
            Self::Store(error) => error.hints(),
            Self::Lock(error) => error.hints(),
            Self::Stale { differences, .. } if differences.is_empty() => {
                vec!["make it with `envforge lock`, or leave out --locked".into()]
            }
            Self::Stale { .. } => vec!["update it with `envforge lock`, or leave out --locked".into()],
            Self::NoSpace { .. } => vec!["free space there, or remove images you no longer need".into()],
            Self::NotEmpty { .. } => vec!["name an empty or new folder, or add --force".into()],
            Self::ChecksFailed { image, .. } => {
                vec![
                    format!("look inside: docker run --rm -it {image} bash"),
                    format!("remove it: docker rmi {image}"),
                ]
            }
            Self::Address { .. } => vec!["an address is a URL such as `http://host/path`".into()],
            Self::Interrupted
            | Self::Impossible { .. }
            | Self::Runtime { .. }
            | Self::Version { .. }
            | Self::Unsupported { .. }
            | Self::File(_) => Vec::new(),
        }
    }

    /// The whole message: the error, its causes, then the hints after a blank line.
    pub fn report(&self, color: bool) -> String {
        let head = if color { "error:".red().bold().to_string() } else { "error:".to_owned() };
        let mut text = format!("{head} {self}");
        let mut shown = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let line = error.to_string();
            if !shown.contains(&line) {
                text.extend(["\n  caused by: ", &line]);
                shown.push_str(&line);
            }
            cause = error.source();
        }
        if let Self::Engine(EngineError::BuildFailed { output, .. }) = self {
            for line in output {
                text.extend(["\n  | ", line]);
            }
        }
        let mut hints = self.hints();
        hints.dedup();
        if !hints.is_empty() {
            text.push('\n');
        }
        for hint in hints {
            let label = if color { "hint:".cyan().to_string() } else { "hint:".to_owned() };
            text.extend(["\n", &label, " ", &hint]);
        }
        text
    }
}

/// Bytes as gigabytes with one decimal: `7.3 GB`.
fn gigabytes(bytes: u64) -> String {
    format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10)
}
