//! `why`.

use super::project::ProjectOptions;

/// A request for `why`.
#[derive(Debug, Clone)]
pub struct Why {
    /// The package.
    pub package: String,
    /// Whose lock: a spec, a lock file or a project's directory.
    pub name: Option<String>,
    /// Which project.
    pub project: ProjectOptions,
}
