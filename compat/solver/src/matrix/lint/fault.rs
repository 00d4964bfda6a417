//! Faults of rows, and their collector.

use std::fmt;

use thiserror::Error;

use super::super::rows::Row;

/// A fault of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file that holds the row.
    pub file: String,
    /// The row.
    pub row: String,
    /// The problem.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.row, self.problem)
    }
}

/// A problem of a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The row has no source.
    #[error("missing source")]
    NoSource,
    /// Another row of its table has the same key.
    #[error("duplicate row")]
    Twice,
    /// The row refers to a missing row.
    #[error("unknown {what} `{name}`")]
    Unknown {
        /// The kind of thing: "toolkit".
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The row contradicts another row.
    #[error("contradiction: {says} here, {differs} in {other}")]
    Contradicts {
        /// The value in this row.
        says: String,
        /// The other row.
        other: String,
        /// The value in the other row.
        differs: String,
    },
    /// A required list is empty.
    #[error("empty `{field}`")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A table lacks a required row.
    #[error("{wanted}")]
    Missing {
        /// The requirement.
        wanted: &'static str,
    },
}

/// Collects faults.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, row: &dyn Row, problem: Problem) {
        self.0.push(Fault { file: row.file(), row: row.label(), problem });
    }
    pub(super) fn unknown(&mut self, row: &dyn Row, what: &'static str, name: impl fmt::Display) {
        self.add(row, Problem::Unknown { what, name: name.to_string() });
    }
    pub(super) fn contradiction(&mut self, row: &dyn Row, says: String, other: &dyn Row, differs: String) {
        self.add(row, Problem::Contradicts { says, other: other.reference(), differs });
    }
    /// Adds an `Unknown` fault unless `known`.
    pub(super) fn require(
        &mut self,
        known: bool,
        row: &dyn Row,
        what: &'static str,
        name: impl fmt::Display,
    ) {
        if !known {
            self.unknown(row, what, name);
        }
    }
}
