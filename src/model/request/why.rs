//! `why`.

use super::project::ProjectOptions;
use super::spec_parts::SpecParts;

/// A request for `why`.
#[derive(Debug, Clone)]
pub struct Why {
    /// The package.
    pub package: String,
    /// Whose lock: a spec, a lock file or a project's directory.
    pub name: Option<String>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
}
