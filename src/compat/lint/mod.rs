//! What must hold between the rows of the matrix.
//!
//! Owns the rules a matrix has to meet before anything is resolved with it: a source in every row, no reference into
//! the void, no two rows that contradict. Must not know a fact: it only compares rows. Also compiled into `build.rs`,
//! which stops at the first faulty matrix, and used for a user's own compat files.

mod code;
mod drivers;
mod frameworks;
mod keys;
mod nvcc;
mod systems;
#[cfg(test)]
mod tests;

use std::fmt;

use thiserror::Error;

use super::rows::Row;
use super::tables::Matrix;

/// A fault of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file that holds the row.
    pub file: String,
    /// The row.
    pub row: String,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.row, self.problem)
    }
}

/// What can be wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// It does not say where it comes from.
    #[error("it has no source")]
    NoSource,
    /// Another row of its table has the same key.
    #[error("the table has this row twice")]
    Twice,
    /// It names something no row describes.
    #[error("it names {what} `{name}`, of which there is no row")]
    Unknown {
        /// The kind of thing: "toolkit".
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// It contradicts another row.
    #[error("it says {says}, but {other} says {differs}")]
    Contradicts {
        /// What this row says.
        says: String,
        /// The other row.
        other: String,
        /// What that one says.
        differs: String,
    },
    /// A list that must hold something is empty.
    #[error("its `{field}` is empty")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A table as a whole must hold something it does not.
    #[error("{wanted}")]
    Missing {
        /// What must be there.
        wanted: &'static str,
    },
}

/// Collects faults.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, row: &dyn Row, problem: Problem) {
        self.0.push(Fault { file: row.file(), row: row.label(), problem });
    }
    fn unknown(&mut self, row: &dyn Row, what: &'static str, name: impl fmt::Display) {
        self.add(row, Problem::Unknown { what, name: name.to_string() });
    }
    fn contradiction(&mut self, row: &dyn Row, says: String, other: &dyn Row, differs: String) {
        self.add(row, Problem::Contradicts { says, other: other.reference(), differs });
    }
    /// Adds an `Unknown` fault unless `known`.
    fn require(&mut self, known: bool, row: &dyn Row, what: &'static str, name: impl fmt::Display) {
        if !known {
            self.unknown(row, what, name);
        }
    }
}

/// Everything that is wrong with a matrix; empty: nothing.
pub fn faults(matrix: &Matrix) -> Vec<Fault> {
    let mut faults = Faults::default();
    keys::check(matrix, &mut faults);
    drivers::check(matrix, &mut faults);
    code::check(matrix, &mut faults);
    frameworks::check(matrix, &mut faults);
    systems::check(matrix, &mut faults);
    nvcc::check(matrix, &mut faults);
    faults.0
}
