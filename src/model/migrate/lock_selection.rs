//! What of a lock file of another tool is selected, and what of it does not match the target.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::Version;
use pep508_rs::ExtraName;

use super::pythons::condition;
use crate::model::marker::{holds_with, marker};
use crate::model::project::bare_name;
use crate::model::sha256::is_sha256_hex;
use crate::model::versions::{Machine, PythonVersion};

/// The target, and what of a lock file is installed.
#[derive(Debug, Clone, Copy)]
pub struct LockSelection<'a> {
    /// The Python of the image.
    pub python: PythonVersion,
    /// The processor.
    pub machine: Machine,
    /// Extras, in addition to none.
    pub extras: &'a [String],
    /// Dependency groups, in addition to the tool's default ones; of pixi the environment.
    pub groups: &'a [String],
    /// The pyproject.toml next to the lock file, which says what is default.
    pub pyproject: Option<&'a toml::Table>,
}

/// A package of a lock file that is selected.
pub(super) struct SelectedPackage {
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// Why it has no release of an index.
    pub(super) left: Option<&'static str>,
    /// The SHA-256 hashes of its files of the index, hex; empty: it lists none.
    pub(super) hashes: BTreeSet<String>,
}

/// Returns the hex digits of `sha256:…`, as uv and Poetry write it; of other kinds of hashes nothing.
pub(super) fn sha256_of(written: &str) -> Option<String> {
    let hex = written.strip_prefix("sha256:")?;
    is_sha256_hex(hex).then(|| hex.to_owned())
}

/// Why nothing of a lock file is selected.
pub(super) enum Refused {
    /// The text is not one, or one of another format.
    Unreadable(String),
    /// Everything that does not match the target or the selection.
    Unusable(Vec<Mismatch>),
}

/// What of a lock file does not match the target or the selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// It is for other Pythons.
    Python {
        /// Its condition.
        requires: String,
        /// The Python of the image.
        python: PythonVersion,
    },
    /// It is for other platforms.
    Platform {
        /// Its platforms or markers.
        platforms: Vec<String>,
        /// The processor of the image.
        machine: Machine,
    },
    /// It has no such extra, group or environment.
    Missing {
        /// `extra`, `group` or `environment`.
        what: &'static str,
        /// The requested name.
        name: String,
        /// The names it has.
        known: Vec<String>,
    },
}

/// Gathers everything that does not match.
#[derive(Default)]
pub(super) struct Mismatches(Vec<Mismatch>);

impl Mismatches {
    /// Compares a condition on Python.
    pub(super) fn python(&mut self, requires: Option<&str>, selection: &LockSelection<'_>) {
        const NEWEST_PATCH: u8 = 40;
        let python = selection.python;
        let Some(requires) = requires else { return };
        let Some(condition) = condition(requires) else { return };
        let patches = (0..NEWEST_PATCH).map(|patch| format!("{python}.{patch}"));
        let mut versions = patches.filter_map(|text| Version::from_str(&text).ok());
        if !versions.any(|version| condition.contains(&version)) {
            self.0.push(Mismatch::Python { requires: requires.to_owned(), python });
        }
    }

    /// Compares the markers of the environments that it is for; none: it is for all.
    pub(super) fn environments(&mut self, markers: &[String], selection: &LockSelection<'_>) {
        let matches = |text: &String| holds_here(Some(text), selection, &[]);
        if !markers.is_empty() && !markers.iter().any(matches) {
            self.platforms(markers.to_vec(), selection);
        }
    }

    /// Notes that it is for other platforms.
    pub(super) fn platforms(&mut self, platforms: Vec<String>, selection: &LockSelection<'_>) {
        self.0.push(Mismatch::Platform { platforms, machine: selection.machine });
    }

    /// Compares requested names with those that it has.
    pub(super) fn names(&mut self, what: &'static str, requested: &[String], known: &BTreeSet<String>) {
        for name in requested.iter().filter(|name| !known.contains(&normalized(name))) {
            let known = known.iter().cloned().collect();
            self.0.push(Mismatch::Missing { what, name: name.clone(), known });
        }
    }

    /// An error if anything does not match.
    pub(super) fn check(self) -> Result<(), Refused> {
        if self.0.is_empty() { Ok(()) } else { Err(Refused::Unusable(self.0)) }
    }
}

/// Whether a marker holds for the target with those extras; one that is not understood does.
pub(super) fn holds_here(text: Option<&str>, selection: &LockSelection<'_>, extras: &[ExtraName]) -> bool {
    let Some(tree) = text.and_then(marker) else { return true };
    holds_with(&tree, selection.machine, selection.python, extras)
}

/// A name as locks write it.
pub(super) fn normalized(name: &str) -> String {
    bare_name(name).unwrap_or_else(|_| name.to_owned())
}

/// The names as those of extras in markers.
pub(super) fn extra_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<ExtraName> {
    names.into_iter().filter_map(|name| ExtraName::from_str(name).ok()).collect()
}
