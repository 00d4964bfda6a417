//! `[trust]`: projects that may ask for more than their own folder.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use super::environment::{Environment, set};

/// `[trust]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrustConfig {
    /// Directories; a project in one of them is not asked about.
    #[serde(default)]
    pub projects: Vec<Utf8PathBuf>,
}

impl TrustConfig {
    /// Adds the directories of `ENVFORGE_TRUSTED_PROJECTS`, separated by `:`.
    pub(super) fn with_environment(mut self, environment: &Environment) -> Self {
        let more = set(environment, "ENVFORGE_TRUSTED_PROJECTS").unwrap_or_default();
        self.projects.extend(more.split(':').filter(|path| !path.is_empty()).map(Utf8PathBuf::from));
        self
    }

    /// Whether a project in that folder is trusted.
    pub fn covers(&self, folder: &Utf8Path) -> bool {
        self.projects.iter().any(|trusted| trusted.is_absolute() && folder.starts_with(trusted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusted_directory_covers_its_projects_only() {
        let trust = TrustConfig { projects: vec!["/work/team".into(), "relative".into()] };
        assert!(trust.covers("/work/team/a".into()) && trust.covers("/work/team".into()));
        for other in ["/work", "/work/team2", "/relative", "relative/a"] {
            assert!(!trust.covers(other.into()), "{other}");
        }
    }
}
