//! The errors of an `envforge.toml`: all problems at once, each with its position.

use std::fmt::{self, Write as _};

use crate::failure::{Exit, Failure};
use crate::model::required_version::UnmetVersion;
use crate::model::visible::visible_line;

/// A position in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Place {
    /// Returns the position of a byte offset.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One problem in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The position, if known.
    pub place: Option<Place>,
    /// The message.
    pub text: String,
    /// The fix, if known.
    pub hint: Option<String>,
}

/// An error of a project file or of a file that it lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The file has problems.
    #[error("{}", listed(file, problems))]
    Invalid {
        /// The file.
        file: String,
        /// All problems.
        problems: Vec<Problem>,
    },
    /// The file has an unsupported schema.
    #[error("unsupported schema {found} in `{file}` (supported: {})", super::SCHEMA)]
    OtherSchema {
        /// The file.
        file: String,
        /// Its schema.
        found: i64,
    },
    /// The file requires another version of envforge.
    #[error(transparent)]
    Version(#[from] UnmetVersion),
    /// The environment does not exist.
    #[error("environment `{name}` not found in `{file}`")]
    NoEnvironment {
        /// The file.
        file: String,
        /// The requested name.
        name: String,
        /// The existing environments.
        known: Vec<String>,
    },
    /// A listed file cannot be read.
    #[error("cannot read `{file}` (listed in `{named_by}`): {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The file that lists it.
        named_by: String,
        /// The reason.
        why: String,
    },
}

impl Failure for ProjectError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Invalid { problems, .. } => {
                let mut hints: Vec<_> = problems.iter().filter_map(|problem| problem.hint.clone()).collect();
                hints.sort();
                hints.dedup();
                hints
            }
            Self::OtherSchema { found, .. } if *found > i64::from(super::SCHEMA) => {
                vec!["update envforge: this file requires a newer version".to_owned()]
            }
            Self::OtherSchema { .. } => vec![format!("set `schema = {}`", super::SCHEMA)],
            Self::Version(unmet) => vec![unmet.hint()],
            Self::NoEnvironment { known, .. } if known.is_empty() => {
                vec!["omit `--environment`: the file has only the default environment".to_owned()]
            }
            Self::NoEnvironment { known, .. } => vec![format!("use one of: {}", known.join(", "))],
            Self::Unreadable { .. } => Vec::new(),
        }
    }
}

fn listed(file: &str, problems: &[Problem]) -> String {
    let mut text = format!("invalid `{file}`:");
    for problem in problems {
        let shown = visible_line(&problem.text);
        match problem.place {
            Some(place) => drop(write!(text, "\n  - {place}: {shown}")),
            None => drop(write!(text, "\n  - {shown}")),
        }
    }
    text
}
