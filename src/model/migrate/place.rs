//! Where something is written.

use std::fmt;

use serde::Serialize;

/// A file and the number of the line in it, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Origin {
    /// The file, relative to the folder that is read.
    pub file: String,
    /// The line; `None`: the file as a whole.
    pub line: Option<usize>,
}

impl Origin {
    /// The file as a whole.
    pub fn file(file: &str) -> Self {
        Self { file: file.to_owned(), line: None }
    }

    /// A line of it, from 1.
    pub fn line(file: &str, line: usize) -> Self {
        Self { file: file.to_owned(), line: Some(line) }
    }

    /// The first line of a text that holds these words, for formats whose parser gives no positions.
    pub fn holding(file: &str, text: &str, words: &str) -> Self {
        let first = words.lines().next().unwrap_or_default().trim();
        let line = text.lines().position(|line| line.contains(first)).filter(|_| !first.is_empty());
        Self { file: file.to_owned(), line: line.map(|at| at + 1) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}
