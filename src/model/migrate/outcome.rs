//! The decision: one project, and what became of every line.

use serde::Serialize;

use super::other_framework::OtherFramework;
use super::place::Origin;
use super::reading::IndexSeen;

/// What became of something that a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is part of the project as it is.
    Kept,
    /// It is part of the project in another form.
    Changed,
    /// It may be asked for: an extra, a group.
    Offered,
    /// It is not part of the project.
    NotTakenOver,
}

/// One line of the table that `init` ends with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Row {
    /// What became of it.
    pub change: Change,
    /// Where it is written.
    #[serde(flatten)]
    pub origin: Origin,
    /// What is written there.
    pub text: String,
    /// Why it was changed or not taken over; what it became.
    pub why: String,
}

/// A package of the new project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectPackage {
    /// The requirement: `transformers>=4.40`.
    pub requirement: String,
    /// The only index it may come from.
    pub index: Option<String>,
}

/// The project that the files ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Migration {
    /// Its spec, with version and CUDA, and with the Python if a file asks for one: `pytorch-cuda:2.7.1-cu128-py3.10`.
    pub spec: String,
    /// The files it was made of, most believed first.
    pub files: Vec<String>,
    /// Requirement files that the project names, since `lock` reads them with the same meaning.
    pub requirements: Vec<String>,
    /// Whether it names pyproject.toml for the same reason.
    pub pyproject: bool,
    /// Extras and groups that it names.
    pub taken_groups: Vec<String>,
    /// Extras and groups that may be asked for.
    pub groups: Vec<String>,
    /// Packages that it lists itself.
    pub python: Vec<ProjectPackage>,
    /// Distribution packages.
    pub apt: Vec<String>,
    /// Further indexes with an address.
    pub indexes: Vec<IndexSeen>,
    /// Every requirement as it was written, for the comparison with the stack.
    pub compared: Vec<String>,
    /// What became of every line.
    pub rows: Vec<Row>,
}

/// Why there is no project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing in the files was understood.
    NothingUnderstood {
        /// The files.
        files: Vec<String>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
    /// The files name no framework of the matrix.
    NoFramework {
        /// The files.
        files: Vec<String>,
        /// A framework that they name and that is none of the matrix by that name.
        other: Option<OtherFramework>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
    /// The release of the framework is behind a variable without a value, and no other line says it.
    UnknownRelease {
        /// The image or requirement: `pytorch/pytorch:${TAG}`.
        written: String,
        /// Where it is written.
        origin: Box<Origin>,
        /// The product whose release is to be named.
        product: String,
        /// The files.
        files: Vec<String>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
    /// Lines that no release can meet together.
    Contradiction {
        /// The requirements as they are written, in the order of the files.
        lines: Vec<(String, Origin)>,
        /// The files.
        files: Vec<String>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
    /// No release of the framework satisfies what is asked for.
    NoRelease {
        /// The requirement: `torch<1.9,>=2.0`.
        requirement: String,
        /// Where it is written.
        origin: Box<Origin>,
        /// The files.
        files: Vec<String>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
    /// The spec that a person typed is another release of the framework than a line asks for.
    OtherThanTyped {
        /// The spec.
        spec: String,
        /// The requirement as it is written.
        written: String,
        /// Where it is written.
        origin: Box<Origin>,
        /// The files.
        files: Vec<String>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
    /// What is asked for does not resolve: the spec says what was meant.
    Impossible {
        /// The spec.
        spec: String,
        /// The files that ask for it.
        files: Vec<String>,
        /// What became of their lines.
        rows: Vec<Row>,
    },
}
