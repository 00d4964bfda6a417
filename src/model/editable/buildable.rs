//! What a pyproject.toml says of the build of its project.

use std::collections::BTreeSet;

use super::dist_info::normalized;
use super::reader::{Declared, NoProject, UNKNOWN_VERSION};

/// Packages that have a build backend.
const BACKENDS: [&str; 9] = [
    "flit-core",
    "hatchling",
    "maturin",
    "meson-python",
    "pdm-backend",
    "poetry-core",
    "scikit-build-core",
    "setuptools",
    "uv-build",
];
/// The one of a project that names none.
const DEFAULT_BACKEND: &str = "setuptools";

/// A project that a build backend makes a wheel of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildableProject {
    /// Its normalized name.
    pub name: String,
    /// Its version; `None`: the build computes it.
    pub version: Option<String>,
}

/// Why a wheel cannot be built of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotBuildable {
    /// There is no project.
    NoProject(NoProject),
    /// It has no valid name.
    NoName,
    /// It does not say which of several build backends it has.
    Backends {
        /// Those that it requires, and the one that would build it.
        names: Vec<String>,
    },
}

/// Reads the project that a pyproject.toml declares for a build.
pub fn buildable(text: &str) -> Result<BuildableProject, NotBuildable> {
    let declared = Declared::read(text).map_err(NotBuildable::NoProject)?;
    let name = declared.name.as_deref().map(normalized).ok_or(NotBuildable::NoName)?;
    if declared.at(&["build-system", "build-backend"]).is_none() {
        let required = declared.build_requires();
        let mut names: BTreeSet<&str> =
            BACKENDS.into_iter().filter(|backend| required.contains(*backend)).collect();
        if declared.backend.as_deref() == Some("poetry") {
            names.insert("poetry-core");
        }
        // The standard's default, which would find nothing of the other's settings.
        if !names.is_empty() {
            names.insert(DEFAULT_BACKEND);
        }
        if names.len() > 1 {
            return Err(NotBuildable::Backends { names: names.into_iter().map(str::to_owned).collect() });
        }
    }
    let version = (declared.version != UNKNOWN_VERSION).then(|| declared.version.clone());
    Ok(BuildableProject { name, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(build: &str) -> Result<BuildableProject, NotBuildable> {
        buildable(&format!("[project]\nname = 'My.Code'\nversion = '1.0'\n{build}"))
    }

    #[test]
    fn name_is_normalized_and_a_computed_version_is_unknown() {
        let one = BuildableProject { name: "my-code".to_owned(), version: Some("1.0".to_owned()) };
        assert_eq!(read(""), Ok(one.clone()));
        assert_eq!(
            read("[build-system]\nrequires = ['hatchling', 'setuptools']\nbuild-backend = 'hatchling.build'"),
            Ok(one.clone())
        );
        assert_eq!(read("[build-system]\nrequires = ['setuptools>=61', 'wheel']"), Ok(one));
        let computed = buildable("[project]\nname = 'a'\ndynamic = ['version']").expect("a project");
        assert_eq!(computed.version, None);
    }

    #[test]
    fn project_without_a_name_or_with_two_backends_is_refused() {
        assert_eq!(buildable("[project]\nversion = '1'"), Err(NotBuildable::NoName));
        assert_eq!(buildable("[project]\nname = 'a\\nb'"), Err(NotBuildable::NoName));
        assert_eq!(buildable("[tool.x]"), Err(NotBuildable::NoProject(NoProject::Undeclared)));
        let names = |text: &str| match read(text) {
            Err(NotBuildable::Backends { names }) => names.join(" "),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            names("[build-system]\nrequires = ['flit_core >=3', 'hatchling']"),
            "flit-core hatchling setuptools"
        );
        assert_eq!(names("[build-system]\nrequires = ['hatchling']"), "hatchling setuptools");
        let poetry = buildable("[tool.poetry]\nname = 'a'\nversion = '1'");
        let expected = ["poetry-core", "setuptools"].map(str::to_owned).to_vec();
        assert_eq!(poetry, Err(NotBuildable::Backends { names: expected }));
    }
}
