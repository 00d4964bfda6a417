//! Exit codes, and what every error of envforge can say about itself: its code and its hints.

use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;

/// How a command ended. These codes are public: people script against them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    /// The command worked and the answer is no: impossible stack, failed check, stale lock.
    No = 1,
    /// The call or a file is wrong.
    Usage = 2,
    /// Something outside failed: engine, network, driver, disk.
    Outside = 3,
    /// Interrupted by a signal.
    Interrupted = 130,
}

/// What `shell` ends with if it fails itself, as `docker run` does: other codes are the program's.
pub(crate) const SHELL_FAILURE: u8 = 125;

impl Exit {
    /// Every code.
    pub const ALL: [Self; 5] = [Self::Done, Self::No, Self::Usage, Self::Outside, Self::Interrupted];

    /// The code's meaning, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "success",
            Self::No => "check failed or no solution",
            Self::Usage => "usage error",
            Self::Outside => "external failure",
            Self::Interrupted => "interrupted",
        }
    }

    /// Examples of commands that end with the code, as one sentence.
    pub const fn examples(self) -> &'static str {
        match self {
            Self::Done => "The command did its work and the answer is yes.",
            Self::No => {
                "The command did its work and the answer is no: an unsatisfiable spec, a failed check, a lock file that is out of date."
            }
            Self::Usage => {
                "An argument, a project file, a lock file or a setting is wrong; a second attempt needs a change."
            }
            Self::Outside => {
                "The container engine, the network, a registry, the driver or the disk failed, or a node gave no report; a second attempt may succeed."
            }
            Self::Interrupted => {
                "Ctrl-C or a signal ended the command. Unfinished images, containers and jobs are removed."
            }
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that a command may end with. Every module's error implements it.
pub trait Failure: Error {
    /// The exit code of a command that ends with this error.
    fn exit(&self) -> Exit;

    /// What the user can do about it, one imperative per line.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a file could not be used, for a sentence that names it: `no such file or directory`.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        // Rust calls it "entity not found".
        ErrorKind::NotFound => "no such file or directory".to_owned(),
        kind @ (ErrorKind::PermissionDenied | ErrorKind::IsADirectory | ErrorKind::NotADirectory) => {
            kind.to_string()
        }
        // It may say more than its kind.
        _ => error.to_string(),
    }
}

impl Failure for std::io::Error {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        match self.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                vec!["free disk space on that file system, then run the command again".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}
