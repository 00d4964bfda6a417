//! `envforge.toml`: the project file of a team.
//!
//! Owns the file's types and JSON schema, its errors with line and column, the merging of environments, and the
//! parsing of requirement files. Must not know which versions exist.

mod check;
mod error;
pub(crate) mod file;
mod merge;
mod names;
mod package_edit;
mod parse;
mod pyproject;
mod requirement;
mod requirements;
pub(crate) mod secret;
mod spanned;
mod trust;

pub(crate) use check::managed_folder;
pub use error::{Place, Problem, ProjectError};
pub use file::{
    AllowSourceEntry, Cluster, CopyEntry, Environment, ExtraCheck, FILE, Index, IndexEntry, Packages,
    ProjectFile, ProjectMode, PythonEntry, RequirementOfIndex, RunStep, RunWithSecrets, SCHEMA, Shell,
    SourceWithBuild, TargetConfig, Verify,
};
pub(crate) use names::name_from;
pub use names::{is_apt_name, is_name};
pub use package_edit::{NotListed, PackageChange, PackageEdit, PackageList};
pub use pyproject::from_pyproject;
pub use requirement::{bare_name, requirement_name};
pub use requirements::{Requirement, RequirementFiles, decoded, from_requirements};
pub use spanned::SpannedValue;
pub use trust::{HostRequest, requests_digest};

/// The file next to `envforge.toml` with its JSON schema, for editors.
pub const SCHEMA_FILE: &str = ".envforge.schema.json";

/// Returns the JSON schema of `envforge.toml`.
pub fn json_schema() -> schemars::Schema {
    schemars::schema_for!(ProjectFile)
}
