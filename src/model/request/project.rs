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

impl ProjectOptions {
    /// Returns the options as arguments of another command, each with a blank before it.
    pub fn arguments(&self) -> String {
        let environment = self.environment.iter().map(|name| format!(" --environment {name}"));
        let project = self.project.iter().map(|path| format!(" --project {path}"));
        environment.chain(project).collect()
    }
}
