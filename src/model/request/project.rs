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
    /// The option that was given and selects a project, if there is one.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self { environment: Some(_), .. } => Some("--environment"),
            Self { project: Some(_), .. } => Some("--project"),
            Self { environment: None, project: None } => None,
        }
    }

    /// Returns the options as arguments of another command, each with a blank before it.
    pub fn arguments(&self) -> String {
        let environment = self.environment.iter().map(|name| format!(" --environment {name}"));
        let project = self.project.iter().map(|path| format!(" --project {path}"));
        environment.chain(project).collect()
    }
}
