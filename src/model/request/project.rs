//! Which project.

use camino::Utf8PathBuf;

/// Which project, and which of its environments.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// An environment of envforge.toml.
    pub environment: Option<String>,
    /// The project's folder or file.
    pub project: Option<Utf8PathBuf>,
}
