//! What is wrong with an `envforge.toml`, all of it at once, each with its place.

use std::fmt::{self, Write as _};

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Place {
    /// The place of a byte offset.
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where; `None`: nowhere in particular.
    pub place: Option<Place>,
    /// What.
    pub text: String,
    /// What to do, if there is more to say.
    pub hint: Option<String>,
}

/// Why a project file, or a file it names, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// It says something that it may not.
    #[error("{}", listed(file, problems))]
    Invalid {
        /// The file.
        file: String,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// It is of another version of the format.
    #[error("`{file}` has format {found}, and this envforge reads {}", super::SCHEMA)]
    OtherSchema {
        /// The file.
        file: String,
        /// The version it says.
        found: i64,
    },
    /// There is no environment of that name.
    #[error("`{file}` has no environment `{name}`")]
    NoEnvironment {
        /// The file.
        file: String,
        /// The name asked for.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A file it names cannot be read.
    #[error("`{file}`, which `{named_by}` names, cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The file that names it.
        named_by: String,
        /// Why.
        why: String,
    },
}

fn listed(file: &str, problems: &[Problem]) -> String {
    let mut text = format!("`{file}` cannot be used:");
    for problem in problems {
        match problem.place {
            Some(place) => drop(write!(text, "\n  - {place}: {}", problem.text)),
            None => drop(write!(text, "\n  - {}", problem.text)),
        }
    }
    text
}

impl ProjectError {
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Invalid { problems, .. } => {
                let mut hints: Vec<_> = problems.iter().filter_map(|problem| problem.hint.clone()).collect();
                hints.sort();
                hints.dedup();
                hints
            }
            Self::OtherSchema { found, .. } if *found > i64::from(super::SCHEMA) => {
                vec!["it was written for a newer envforge: update this one".to_owned()]
            }
            Self::OtherSchema { .. } => vec![format!("write `schema = {}`", super::SCHEMA)],
            Self::NoEnvironment { known, .. } if known.is_empty() => {
                vec!["it has the default environment only: leave out -e".to_owned()]
            }
            Self::NoEnvironment { known, .. } => vec![format!("it has: {}", known.join(", "))],
            Self::Unreadable { .. } => Vec::new(),
        }
    }
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        2
    }
}
