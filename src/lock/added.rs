//! What a user wants beside the stack, as the lock keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fields::sha256;

/// Everything that is wanted beside the stack. Empty: the image is the spec's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Added {
    /// `<project>` or `<project>-<environment>`; `None`: no project file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Python requirements (`requests>=2`), sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<String>,
    /// Distribution packages by name, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<String>,
    /// Python packages whose source distribution is built where no wheel fits, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_source: Vec<AllowedSource>,
    /// Names of the package indexes beside the default one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
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
    /// Libraries that may be missing from the image though something in it names them, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_lack: Vec<String>,
}

/// A package whose source distribution may be built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedSource {
    /// Its name, normalised.
    pub name: String,
    /// What its build needs and does not say, as requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
}

/// Files of the project, pinned by their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedCopy {
    /// Where they lie in the project.
    pub from: String,
    /// Where they lie in the image.
    pub to: String,
    /// True for a folder, whose content lies there.
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
    /// What a single file is called in the build context: as in the project, so that a folder at `to` takes it by its name.
    pub fn file_name(&self) -> &str {
        context_name(&self.from)
    }
}

/// The same for a path of the project. A Dockerfile would read a pattern in some names; those files get a plain one.
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

impl Added {
    /// True if nothing is wanted beside the stack.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if the same packages are wanted: what was resolved for one then serves the other.
    pub fn same_packages(&self, other: &Self) -> bool {
        let packages = |added: &Self| {
            let Self { python, apt, allow_source, indexes, .. } = added.clone();
            (python, apt, allow_source, indexes)
        };
        packages(self) == packages(other)
    }
}
