//! The user's additions to the stack, as the lock records them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fields::{index_name, moment, sha256, wheel_name};

/// The user's additions to the stack. Empty: the image is the spec's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct UserAdditions {
    /// `<project>` or `<project>-<environment>`; `None`: no project file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The moment whose index state was resolved (RFC 3339, UTC); `None`: when the lock was made.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "moment")]
    pub as_of: Option<String>,
    /// Python requirements (`requests>=2`), sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<String>,
    /// Distribution packages by name, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<String>,
    /// Python packages whose source distribution is built if no wheel is compatible, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_source: Vec<AllowedSource>,
    /// Names of further package indexes, first searched first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// Python packages that come from one index only, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python_index: Vec<PackageIndex>,
    /// Environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Files of the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<LockedCopy>,
    /// Commands of the build, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<LockedRun>,
    /// Commands that must succeed in the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<LockedCheck>,
    /// Libraries that may be missing although a binary requires them, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_lack: Vec<String>,
}

/// A package that comes from one index only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageIndex {
    /// Its normalized name.
    #[serde(deserialize_with = "wheel_name")]
    pub name: String,
    /// The name of the index, [`DEFAULT_INDEX`] or [`FRAMEWORK_INDEX`].
    #[serde(deserialize_with = "index_name")]
    pub index: String,
}

/// The name of the default package index.
pub const DEFAULT_INDEX: &str = "default";
/// The name of the framework's own index.
pub const FRAMEWORK_INDEX: &str = "framework";

/// A package whose source distribution may be built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedSource {
    /// Its normalized name.
    pub name: String,
    /// Build requirements that it does not declare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
}

/// Files of the project, pinned by their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedCopy {
    /// Path in the project.
    pub from: String,
    /// Path in the image.
    pub to: String,
    /// Whether it is a directory, whose content is copied.
    pub folder: bool,
    /// SHA-256 over names, modes and content, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
}

/// A command of the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedRun {
    /// The command.
    pub command: String,
    /// Names of the secrets it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// A command that must succeed in the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedCheck {
    /// Its name in the report.
    pub name: String,
    /// The command.
    pub command: String,
}

impl LockedCopy {
    /// Returns the name of a single file in the build context: as in the project, so that a directory at `to` keeps it.
    pub fn file_name(&self) -> &str {
        context_name(&self.from)
    }
}

/// Returns the same for a path of the project. Names that a Dockerfile reads as patterns are replaced by a plain one.
pub fn context_name(from: &str) -> &str {
    let name = from.rsplit('/').next().unwrap_or_default();
    if name.is_empty()
        || name.starts_with('.') && name.trim_matches('.').is_empty()
        || name.contains(['*', '?', '[', '\\'])
    {
        "file"
    } else {
        name
    }
}

impl UserAdditions {
    /// Whether there are no additions.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the same packages are requested: what was resolved for one then serves the other.
    pub fn same_packages(&self, other: &Self) -> bool {
        self.packages() == other.packages()
    }

    /// The part that packages are resolved for.
    fn packages(&self) -> Self {
        let Self {
            project: _,
            as_of,
            python,
            apt,
            allow_source,
            mut indexes,
            python_index,
            variables: _,
            copy: _,
            run: _,
            checks: _,
            may_lack: _,
        } = self.clone();
        // Locks of older versions have them sorted.
        indexes.sort();
        Self { as_of, python, apt, allow_source, indexes, python_index, ..Self::default() }
    }
}
