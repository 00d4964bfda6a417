//! The Python that a project asks for, and which of the versions that exist fit.

use std::str::FromStr as _;

use pep440_rs::{Operator, Version, VersionSpecifier, VersionSpecifiers};

use super::place::Origin;
use super::reading::{Kind, PythonFact, Reading};
use crate::model::versions::PythonVersion;

/// Reads `.python-version`: the first version that is one of CPython.
pub fn from_python_version(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Python);
    for (at, line) in text.lines().enumerate() {
        let plain = line.split('#').next().unwrap_or_default().trim();
        if plain.is_empty() {
            continue;
        }
        let origin = Origin::line(file, at + 1);
        let version = plain.trim_start_matches("cpython-").trim_start_matches("cpython@");
        match exact(version) {
            Some(versions) if reading.python.is_empty() => {
                reading.python.push(PythonFact { origin, versions, by: format!("`{plain}`") });
            }
            Some(_) => reading.leave(origin, plain, "the first version of the file is taken"),
            None => reading.leave(origin, plain, "not a version of CPython"),
        }
    }
    reading
}

/// A minor that no Python has yet.
const NEWEST: u8 = 40;

/// Reads the Python of a `runtime.txt` (`python-3.10.13`) or a `.tool-versions` (`python 3.12.4`).
pub fn from_runtime_file(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Python);
    for (at, line) in text.lines().enumerate() {
        let version = line.trim().strip_prefix("python").map(|rest| rest.trim_start_matches(['-', ' ']));
        if let Some(versions) = version.and_then(|rest| exact(rest.split_whitespace().next()?)) {
            let by = format!("`{}`", line.trim());
            reading.python.push(PythonFact { origin: Origin::line(file, at + 1), versions, by });
        }
    }
    reading
}

/// The minor of a version as a condition: `3.11.3` gives `==3.11.*`.
pub(super) fn exact(version: &str) -> Option<VersionSpecifiers> {
    let version = Version::from_str(version.trim()).ok()?;
    let [major, minor, ..] = *version.release() else { return None };
    format!("=={major}.{minor}.*").parse().ok()
}

/// Reads a condition on Python as files write it: `>=3.10,<3.13`, `3.11`, `3.11.*`, `^3.9`, `~3.10`.
pub(super) fn condition(written: &str) -> Option<VersionSpecifiers> {
    if written.contains('|') {
        return union(written);
    }
    let plain = written.trim();
    if plain.is_empty() || plain == "*" {
        return Some(VersionSpecifiers::empty());
    }
    if plain.starts_with(|c: char| c.is_ascii_digit()) {
        return exact(plain.trim_end_matches(".*"));
    }
    super::conditions::specifiers(plain)
}

/// The minors that one of the alternatives allows: `~3.9 || ~3.11` is 3.9 and 3.11.
fn union(written: &str) -> Option<VersionSpecifiers> {
    let parts = written.split('|').map(str::trim).filter(|part| !part.is_empty());
    let parts = parts.map(condition).collect::<Option<Vec<_>>>()?;
    let is_allowed = |minor: &u8| {
        let python = PythonVersion { major: 3, minor: *minor };
        parts.iter().any(|part| allows(part, python))
    };
    let minors: Vec<u8> = (0..=NEWEST).filter(is_allowed).collect();
    let (first, last) = (*minors.first()?, *minors.last()?);
    let mut all = vec![format!(">=3.{first}")];
    if last < NEWEST {
        all.push(format!("<3.{}", last + 1));
    }
    all.extend((first..last).filter(|minor| !minors.contains(minor)).map(|minor| format!("!=3.{minor}.*")));
    all.join(",").parse().ok()
}

/// Whether a minor of Python has a release that all conditions allow. A patch in an equality (`==3.11.3`) means its minor: a
/// distribution has one patch release of each.
pub(super) fn allows(versions: &VersionSpecifiers, python: PythonVersion) -> bool {
    versions.iter().all(|one| fits(one, python))
}

fn fits(one: &VersionSpecifier, python: PythonVersion) -> bool {
    let (major, minor) = (u64::from(python.major), u64::from(python.minor));
    let release = one.version().release();
    if matches!(one.operator(), Operator::Equal | Operator::ExactEqual | Operator::EqualStar) {
        return release.first() == Some(&major) && release.get(1).is_none_or(|wanted| *wanted == minor);
    }
    [0, 99].into_iter().any(|patch| one.contains(&Version::new([major, minor, patch])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_choose_minors() {
        let allowed = |written: &str| {
            let versions = condition(written).unwrap_or_else(|| panic!("{written}"));
            (7..=14)
                .filter(|minor| allows(&versions, PythonVersion { major: 3, minor: *minor }))
                .map(|minor| minor.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (written, expected) in [
            ("==3.10.*", "10"),
            (">=3.10", "10 11 12 13 14"),
            (">=3.10,<3.13", "10 11 12"),
            (">= 3.10, <3.12", "10 11"),
            ("<=3.11", "7 8 9 10 11"),
            ("3.11", "11"),
            ("3.11.3", "11"),
            ("==3.7.13", "7"),
            ("~=3.11", "11 12 13 14"),
            ("~=3.11.2", "11"),
            ("^3.12", "12 13 14"),
            ("!=3.9.*,>=3.8,<3.11", "8 10"),
            (">=3.10.4,<3.11", "10"),
            ("*", "7 8 9 10 11 12 13 14"),
            ("~3.9 || ~3.11", "9 11"),
            ("^3.9 || ^3.11", "9 10 11 12 13 14"),
            ("3.10.*|3.12.*", "10 12"),
            (">=3.9 <3.11", "9 10"),
        ] {
            assert_eq!(allowed(written), expected, "{written}");
        }
    }

    #[test]
    fn python_version_file_gives_its_first_version() {
        let reading = from_python_version(".python-version", "# ours\n3.11.9\n3.12\n");
        assert_eq!(reading.python[0].versions.to_string(), "==3.11.*");
        assert_eq!(reading.left.len(), 1);
        let reading = from_python_version(".python-version", "pypy3.10\n");
        assert!(reading.python.is_empty() && reading.left.len() == 1);
    }
}
