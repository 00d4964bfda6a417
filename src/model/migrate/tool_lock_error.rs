//! Why no versions are taken from a lock file of another tool.

use super::lock_selection::Mismatch;
use crate::failure::{Exit, Failure};
use crate::model::versions::{Machine, PythonVersion};

/// Why no versions are taken from a lock file of another tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolLockError {
    /// The file name is of no known tool.
    #[error("unsupported lock file `{file}`")]
    UnknownTool {
        /// The file.
        file: String,
    },
    /// The file cannot be opened.
    #[error("cannot open `{file}`: {why}")]
    Unopened {
        /// The file.
        file: String,
        /// The problem.
        why: String,
    },
    /// The text is not a lock, or one of another format.
    #[error("cannot read `{file}`: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The problem.
        why: String,
    },
    /// It does not match the target or the selection.
    #[error("cannot use `{file}`:\n  - {}", mismatches.iter().map(text).collect::<Vec<_>>().join("\n  - "))]
    Unusable {
        /// The file.
        file: String,
        /// Every mismatch.
        mismatches: Vec<Mismatch>,
    },
    /// Packages of which several versions remain.
    #[error(
        "`{file}` has several versions for Python {python} on {machine}:\n  - {}",
        packages.iter().map(|(name, versions)| format!("{name}: {}", versions.join(", "))).collect::<Vec<_>>().join("\n  - ")
    )]
    SeveralVersions {
        /// The file.
        file: String,
        /// Each package with its versions.
        packages: Vec<(String, Vec<String>)>,
        /// The Python of the image.
        python: PythonVersion,
        /// The processor of the image.
        machine: Machine,
    },
}

fn text(mismatch: &Mismatch) -> String {
    match mismatch {
        Mismatch::Python { requires, python } => {
            format!("it requires Python `{requires}`, and the image has Python {python}")
        }
        Mismatch::Platform { platforms, machine } => {
            format!("it is for `{}`, and the image is for Linux on {machine}", platforms.join("`, `"))
        }
        Mismatch::Missing { what, name, known } if known.is_empty() => {
            format!("{what} `{name}` not found: it has none")
        }
        Mismatch::Missing { what, name, known } => {
            format!("{what} `{name}` not found: it has `{}`", known.join("`, `"))
        }
    }
}

impl Failure for ToolLockError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        let mismatches = match self {
            Self::Unusable { mismatches, .. } => mismatches.as_slice(),
            Self::UnknownTool { .. } => {
                return vec![
                    "give a uv.lock, pylock.toml, pylock.NAME.toml, poetry.lock or pixi.lock".to_owned(),
                ];
            }
            Self::Unopened { .. } => return Vec::new(),
            Self::Unreadable { .. } => return vec!["write it again with its tool".to_owned()],
            Self::SeveralVersions { .. } => {
                return vec!["select one of them with `--extra` or `--group`, as for its tool".to_owned()];
            }
        };
        let hint = |mismatch: &Mismatch| match mismatch {
            Mismatch::Python { .. } => Some("choose another Python with `--python`"),
            Mismatch::Platform { .. } => Some("lock it with its tool for this platform too"),
            Mismatch::Missing { .. } => None,
        };
        mismatches.iter().filter_map(hint).map(str::to_owned).collect()
    }
}
