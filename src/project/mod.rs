//! `envforge.toml`: what a team writes down once.
//!
//! Owns the file's types and JSON schema, its errors with line and column, the merging of environments, and what
//! requirement files mean. Pure but for `copy.rs`, which reads the files to copy. Must not know what is published.

mod at;
mod check;
mod copy;
mod error;
mod file;
mod init;
mod merge;
mod names;
mod parse;
mod pyproject;
mod requirement;
mod requirements;
mod secret;

pub use at::At;
pub use copy::{CopyError, copied};
pub use error::{Place, Problem, ProjectError};
pub use file::{
    CopyWish, Environment, ExtraCheck, FILE, Index, IndexWish, Packages, ProjectFile, RunWish,
    RunWithSecrets, SCHEMA, Shell, SourceWish, SourceWithBuild, TargetWish, Verify,
};
pub use init::{Found, starter};
pub(crate) use names::name_from;
pub use names::{is_apt_name, is_name};
pub use pyproject::from_pyproject;
pub use requirement::{bare_name, requirement_name};
pub use requirements::{Requirement, from_requirements};

/// The JSON schema of `envforge.toml`.
pub fn json_schema() -> schemars::Schema {
    schemars::schema_for!(ProjectFile)
}
