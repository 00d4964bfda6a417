//! pylock.toml (PEP 751): its packages, and those that an installer takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use super::lock_selection::{
    LockSelection, Mismatches, Refused, SelectedPackage, extra_names, holds_here, normalized,
};

/// A pylock.toml.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Pylock {
    pub(super) requires_python: Option<String>,
    #[serde(default)]
    environments: Vec<String>,
    #[serde(default)]
    extras: BTreeSet<String>,
    #[serde(default)]
    dependency_groups: BTreeSet<String>,
    #[serde(default)]
    default_groups: BTreeSet<String>,
    pub(super) packages: Vec<PylockPackage>,
}

/// A package of a pylock.toml.
#[derive(Deserialize)]
pub(super) struct PylockPackage {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) marker: Option<String>,
    vcs: Option<toml::Table>,
    directory: Option<toml::Table>,
    archive: Option<toml::Table>,
    #[serde(default)]
    wheels: Vec<PylockFile>,
    sdist: Option<PylockFile>,
}

/// A file of a package.
#[derive(Deserialize)]
struct PylockFile {
    /// By algorithm.
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

impl Pylock {
    /// Reads a pylock.toml, or returns why it cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // The version decides what else there is.
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Versioned {
            lock_version: String,
        }
        let why = |error: toml::de::Error| format!("not a pylock: {}", error.message().trim());
        let version = toml::from_str::<Versioned>(text).map_err(why)?.lock_version;
        if version.starts_with("1.") {
            return toml::from_str(text).map_err(why);
        }
        Err(format!("format {version} of pylock.toml: this envforge reads 1"))
    }
}

impl PylockPackage {
    /// The SHA-256 hashes of its files.
    fn hashes(&self) -> BTreeSet<String> {
        let files = self.wheels.iter().chain(&self.sdist);
        files.filter_map(|file| file.hashes.get("sha256").cloned()).collect()
    }

    /// Why it has no release of an index.
    fn left(&self) -> Option<&'static str> {
        let elsewhere = [&self.vcs, &self.directory, &self.archive].into_iter().any(Option::is_some);
        elsewhere.then_some("it comes from a repository, a path or an address")
    }
}

/// Returns the packages that an installer with those extras and groups takes.
pub(super) fn selected(text: &str, selection: &LockSelection<'_>) -> Result<Vec<SelectedPackage>, Refused> {
    let lock = Pylock::parse(text).map_err(Refused::Unreadable)?;
    let groups: BTreeSet<String> = lock.dependency_groups.iter().map(|name| normalized(name)).collect();
    let mut mismatches = Mismatches::default();
    mismatches.python(lock.requires_python.as_deref(), selection);
    mismatches.environments(&lock.environments, selection);
    mismatches.names("extra", selection.extras, &lock.extras);
    mismatches.names("group", selection.groups, &groups);
    mismatches.check()?;
    let extras = selection.extras.iter().map(|name| format!("{EXTRA}{}", normalized(name)));
    let groups = selection.groups.iter().chain(&lock.default_groups);
    let groups = groups.map(|name| format!("{GROUP}{}", normalized(name)));
    let active = extra_names(&extras.chain(groups).collect::<Vec<_>>());
    let is_selected = |package: &&PylockPackage| {
        let marker = package.marker.as_deref().map(without_sets);
        holds_here(marker.as_deref(), selection, &active)
    };
    let package = |package: &PylockPackage| SelectedPackage {
        name: package.name.clone(),
        version: package.version.clone(),
        left: package.left(),
        hashes: package.hashes(),
    };
    Ok(lock.packages.iter().filter(is_selected).map(package).collect())
}

/// How names of `extras` and `dependency_groups` begin as extras.
const EXTRA: &str = "extras-";
const GROUP: &str = "groups-";

/// A marker with `'x' in extras` and `'x' in dependency_groups`, which only locks know, as conditions on `extra`.
fn without_sets(marker: &str) -> String {
    let mut out = String::new();
    let mut rest = marker;
    while let Some(begin) = rest.find(['\'', '"']) {
        let quote = if rest[begin..].starts_with('"') { '"' } else { '\'' };
        let Some(length) = rest[begin + 1..].find(quote) else { break };
        let (name, after) = (&rest[begin + 1..begin + 1 + length], &rest[begin + 2 + length..]);
        if let Some((operator, prefix, after)) = membership(after) {
            out.push_str(&rest[..begin]);
            let _ = write!(out, "extra {operator} '{prefix}{}'", normalized(name));
            rest = after;
        } else {
            let end = begin + 2 + length;
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    out + rest
}

/// Reads ` in extras` or ` not in dependency_groups`: the operator on `extra`, how the name begins, and the rest.
fn membership(text: &str) -> Option<(&'static str, &'static str, &str)> {
    let text = text.trim_start();
    let (operator, text) = match text.strip_prefix("not") {
        Some(rest) => ("!=", rest.trim_start()),
        None => ("==", text),
    };
    let text = text.strip_prefix("in ")?.trim_start();
    let of = |word: &str, prefix: &'static str| text.strip_prefix(word).map(|rest| (operator, prefix, rest));
    of("extras", EXTRA).or_else(|| of("dependency_groups", GROUP))
}
