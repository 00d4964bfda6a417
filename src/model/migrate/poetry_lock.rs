//! poetry.lock: its packages, and those that `poetry install` installs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Value;

use super::lock_selection::{
    LockSelection, Mismatches, Refused, SelectedPackage, extra_names, holds_here, normalized, sha256_of,
};
use super::uv_lock::is_wheel;

/// The group of the project's own dependencies.
const MAIN: &str = "main";

/// A poetry.lock.
#[derive(Deserialize)]
pub(super) struct PoetryLock {
    #[serde(default)]
    pub(super) package: Vec<PoetryPackage>,
    #[serde(default)]
    extras: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    metadata: toml::Table,
}

/// A package of a poetry.lock.
#[derive(Deserialize)]
pub(super) struct PoetryPackage {
    pub(super) name: String,
    pub(super) version: String,
    /// One marker, or one of each group.
    pub(super) markers: Option<Value>,
    #[serde(default)]
    source: toml::Table,
    /// Absent before format 2.1.
    groups: Option<Vec<String>>,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    files: Vec<PoetryFile>,
}

/// A file of a package.
#[derive(Deserialize)]
struct PoetryFile {
    /// `sha256:…`.
    hash: Option<String>,
}

impl PoetryLock {
    /// Reads a poetry.lock, or returns why it cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lock: Self = toml::from_str(text)
            .map_err(|error| format!("not a lock of Poetry: {}", error.message().trim()))?;
        let written = lock.metadata.get("lock-version").and_then(Value::as_str).unwrap_or_default();
        if written.starts_with("1.") || written.starts_with("2.") {
            return Ok(lock);
        }
        Err(format!("format `{written}` of Poetry's lock: this envforge reads 1 and 2"))
    }

    /// The condition on Python.
    pub(super) fn python(&self) -> Option<&str> {
        self.metadata.get("python-versions").and_then(Value::as_str)
    }
}

impl PoetryPackage {
    /// Why it has no release of an index.
    pub(super) fn left(&self) -> Option<&'static str> {
        let text = |key: &str| self.source.get(key).and_then(Value::as_str);
        let kind = text("type")?;
        let is_archive = ["file", "url"].contains(&kind) && !text("url").is_some_and(is_wheel);
        (["git", "directory"].contains(&kind) || is_archive)
            .then_some("it comes from a repository, a path or an address")
    }

    /// Its marker in a group.
    fn marker(&self, group: &str) -> Option<&str> {
        let markers = self.markers.as_ref()?;
        markers.as_str().or_else(|| markers.get(group)?.as_str())
    }
}

/// Returns the packages that `poetry install` with those extras and groups installs.
pub(super) fn selected(text: &str, selection: &LockSelection<'_>) -> Result<Vec<SelectedPackage>, Refused> {
    let lock = PoetryLock::parse(text).map_err(Refused::Unreadable)?;
    let extras: BTreeSet<String> = lock.extras.keys().map(|name| normalized(name)).collect();
    let groups: BTreeSet<String> = lock
        .package
        .iter()
        .flat_map(|one| one.groups.iter().flatten())
        .map(|name| normalized(name))
        .collect();
    let mut mismatches = Mismatches::default();
    mismatches.python(lock.python(), selection);
    mismatches.names("extra", selection.extras, &extras);
    mismatches.names("group", selection.groups, &groups);
    mismatches.check()?;
    let wanted: BTreeSet<String> = selection.groups.iter().map(|name| normalized(name)).collect();
    let is_active =
        |group: &&String| wanted.contains(&normalized(group)) || !is_optional(selection.pyproject, group);
    let names: Vec<String> = selection.extras.iter().map(|name| normalized(name)).collect();
    let active_extras = extra_names(&names);
    let is_selected = |package: &&PoetryPackage| match &package.groups {
        Some(groups) => groups
            .iter()
            .filter(is_active)
            .any(|group| holds_here(package.marker(group), selection, &active_extras)),
        // Before 2.1 the lock does not say which extra needs an optional package.
        None => {
            (!package.optional || !names.is_empty())
                && holds_here(package.marker(MAIN), selection, &active_extras)
        }
    };
    let package = |package: &PoetryPackage| SelectedPackage {
        name: package.name.clone(),
        version: Some(package.version.clone()),
        left: package.left(),
        hashes: package.files.iter().filter_map(|file| sha256_of(file.hash.as_deref()?)).collect(),
    };
    Ok(lock.package.iter().filter(is_selected).map(package).collect())
}

/// Whether the project says that a group is installed on request only.
fn is_optional(pyproject: Option<&toml::Table>, group: &str) -> bool {
    let found = pyproject
        .and_then(|table| table.get("tool")?.get("poetry")?.get("group")?.get(group)?.get("optional"));
    found.and_then(Value::as_bool) == Some(true)
}
