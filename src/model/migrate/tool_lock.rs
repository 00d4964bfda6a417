//! The versions that another tool installs from its lock file, for one target. Versions only: no address, path or repository of
//! such a file is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use camino::Utf8Path;
use pep440_rs::Version;

use super::lock_selection::{LockSelection, Refused, SelectedPackage};
use super::tool_lock_error::ToolLockError;
use super::{conda_lock, poetry_lock, pylock, uv_lock};
use crate::model::compat::Matrix;
use crate::model::project::bare_name;

/// The versions that a lock file selects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolVersions {
    /// The lock file, as it was named.
    pub file: String,
    /// The version of each package.
    pub versions: BTreeMap<String, String>,
    /// The SHA-256 hashes of the files of each package, where the lock file lists them.
    pub hashes: BTreeMap<String, BTreeSet<String>>,
    /// Packages without a release of an index, with the reason.
    pub left: BTreeMap<String, &'static str>,
}

/// Returns the versions that a lock file selects, by the format that its name says.
pub fn tool_versions(
    file: &str,
    text: &str,
    selection: &LockSelection<'_>,
    matrix: &Matrix,
) -> Result<ToolVersions, ToolLockError> {
    let name = Utf8Path::new(file).file_name().unwrap_or_default();
    let found = match name {
        "uv.lock" => uv_lock::selected(text, selection),
        "poetry.lock" => poetry_lock::selected(text, selection),
        "pixi.lock" => conda_lock::selected(text, selection, matrix),
        _ if is_pylock_name(name) => pylock::selected(text, selection),
        _ => return Err(ToolLockError::UnknownTool { file: file.to_owned() }),
    };
    let found = found.map_err(|cause| match cause {
        Refused::Unreadable(why) => ToolLockError::Unreadable { file: file.to_owned(), why },
        Refused::Unusable(mismatches) => ToolLockError::Unusable { file: file.to_owned(), mismatches },
    })?;
    settled(file, found, selection)
}

/// Whether a file name is one of PEP 751: `pylock.toml`, `pylock.NAME.toml`.
pub fn is_pylock_name(name: &str) -> bool {
    let rest = name.strip_prefix("pylock.").and_then(|rest| rest.strip_suffix("toml"));
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_suffix('.').is_some_and(|name| !name.is_empty() && !name.contains('.'))
    })
}

/// One version of each package: two that remain are an error, since the tool itself would install one of them.
fn settled(
    file: &str,
    packages: Vec<SelectedPackage>,
    selection: &LockSelection<'_>,
) -> Result<ToolVersions, ToolLockError> {
    let unreadable = |why: String| ToolLockError::Unreadable { file: file.to_owned(), why };
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut left = BTreeMap::new();
    let mut hashes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for SelectedPackage { name, version, left: why, hashes: own } in packages {
        let name = bare_name(&name).map_err(unreadable)?;
        match (why, version) {
            (None, Some(version)) => {
                let parsed = Version::from_str(&version);
                let parsed =
                    parsed.map_err(|_| unreadable(format!("`{name}` has the version `{version}`")))?;
                if !own.is_empty() {
                    hashes.entry(name.clone()).or_default().extend(own);
                }
                all.entry(name).or_default().insert(parsed.to_string());
            }
            (why, _) => drop(left.insert(name, why.unwrap_or("it has no version"))),
        }
    }
    let several: Vec<_> = all
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(name, versions)| (name.clone(), versions.iter().cloned().collect()))
        .collect();
    if !several.is_empty() {
        let LockSelection { python, machine, .. } = *selection;
        return Err(ToolLockError::SeveralVersions {
            file: file.to_owned(),
            packages: several,
            python,
            machine,
        });
    }
    let versions = all.into_iter().filter_map(|(name, versions)| Some((name, versions.into_iter().next()?)));
    Ok(ToolVersions { file: file.to_owned(), versions: versions.collect(), hashes, left })
}

#[cfg(test)]
#[path = "tool_lock_tests.rs"]
mod tests;
