//! What became of the versions of another tool's lock file in a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::Version;
use pep508_rs::{Requirement, VerbatimUrl, VersionOrUrl};
use serde::Serialize;

use super::origin::Requirements;
use super::types::{Lock, LockedWheel, WheelLayer};
use crate::model::requirement_text::beyond_bounds;

/// A package whose version is another one in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MovedVersion {
    /// Its name.
    pub name: String,
    /// The version of the other lock file.
    pub from: String,
    /// The version of the lock.
    pub to: String,
    /// Why, if that is known.
    pub reason: Option<String>,
}

/// What became of the versions of another tool's lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptVersions {
    /// The number of versions that the lock has too.
    pub kept: usize,
    /// Versions that the lock does not have, by name.
    pub moved: Vec<MovedVersion>,
    /// Packages that are not in the image.
    pub unused: Vec<String>,
}

/// A package of the same version whose file is another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherFile {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The locked file, or the source that it was built from.
    pub file: String,
    /// Its SHA-256, hex.
    pub sha256: String,
}

/// What is known of the reasons for versions.
#[derive(Debug, Clone, Copy)]
pub struct KnownReasons<'a> {
    /// The requirements of wheels.
    pub requirements: &'a Requirements,
    /// The requirements of every image.
    pub developer: &'a [String],
    /// Releases that the stack leaves out, each with the reason, by package.
    pub excluded: &'a BTreeMap<String, Vec<(String, String)>>,
}

impl Lock {
    /// Compares the lock with versions that it was to keep.
    pub fn kept_versions(
        &self,
        versions: &BTreeMap<String, String>,
        known: KnownReasons<'_>,
    ) -> KeptVersions {
        let mut found = KeptVersions::default();
        for (name, from) in versions {
            match self.wheels.iter().find(|wheel| wheel.name == *name) {
                None => found.unused.push(name.clone()),
                Some(wheel) if is_same_release(from, wheel) => found.kept += 1,
                Some(wheel) => found.moved.push(MovedVersion {
                    name: name.clone(),
                    from: from.clone(),
                    to: wheel.version.clone(),
                    reason: self.reason_against(wheel, from, known),
                }),
            }
        }
        found
    }

    /// Returns the packages of the same version of which the other lock file lists files, and not the one that is locked.
    pub fn other_files(
        &self,
        versions: &BTreeMap<String, String>,
        hashes: &BTreeMap<String, BTreeSet<String>>,
    ) -> Vec<OtherFile> {
        let mut all = Vec::new();
        for wheel in &self.wheels {
            let (Some(version), Some(known)) = (versions.get(&wheel.name), hashes.get(&wheel.name)) else {
                continue;
            };
            let same = Version::from_str(version).ok() == Version::from_str(&wheel.version).ok();
            // What was built here has the hash of its source.
            let source = self.sources.iter().find(|source| source.name == wheel.name);
            let (file, sha256) =
                source.map_or((&wheel.file, &wheel.sha256), |source| (&source.file, &source.sha256));
            if same && !known.contains(sha256) {
                let (name, version) = (wheel.name.clone(), wheel.version.clone());
                all.push(OtherFile { name, version, file: file.clone(), sha256: sha256.clone() });
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Why the lock does not have a version of a package.
    fn reason_against(&self, wheel: &LockedWheel, version: &str, known: KnownReasons<'_>) -> Option<String> {
        let excluded = known.excluded.get(&wheel.name);
        if let Some((_, why)) = excluded.and_then(|all| all.iter().find(|(release, _)| release == version)) {
            return Some(why.clone());
        }
        let origin = self.origin(&wheel.name, known.requirements, known.developer)?;
        let bound = origin.bounds.iter().find(|(text, _)| excludes(text, version));
        if let Some((text, by)) = bound {
            let text = text.split(';').next().unwrap_or_default().trim();
            return Some(format!("`{text}` of {by}"));
        }
        let is_of_stack = [WheelLayer::Cuda, WheelLayer::Framework].contains(&wheel.layer);
        is_of_stack.then(|| "part of the stack".to_owned())
    }
}

/// Whether a wheel is of a release. The framework's wheels name their CUDA or not, by the index they come from.
fn is_same_release(version: &str, wheel: &LockedWheel) -> bool {
    let (Ok(one), Ok(other)) = (Version::from_str(version), Version::from_str(&wheel.version)) else {
        return version == wheel.version;
    };
    one == other || wheel.layer != WheelLayer::User && one.without_local() == other.without_local()
}

/// Whether a requirement excludes a version.
fn excludes(requirement: &str, version: &str) -> bool {
    if beyond_bounds(requirement).is_some() {
        return false;
    }
    let parsed = Requirement::<VerbatimUrl>::from_str(requirement);
    let (Ok(parsed), Ok(version)) = (parsed, Version::from_str(version)) else { return false };
    match parsed.version_or_url {
        Some(VersionOrUrl::VersionSpecifier(versions)) => !versions.contains(&version),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn wheel(name: &str, version: &str, layer: WheelLayer) -> LockedWheel {
        LockedWheel {
            name: name.to_owned(),
            version: version.to_owned(),
            layer,
            ..sample::lock().wheels[0].clone()
        }
    }

    #[test]
    fn other_file_of_the_same_version_is_named() {
        let mut lock = sample::lock();
        lock.wheels = ["same", "other", "moved", "unlisted", "built"]
            .map(|name| wheel(name, "1.0", WheelLayer::User))
            .into();
        lock.sources = vec![crate::model::lock::LockedSource {
            name: "built".to_owned(),
            version: "1.0".to_owned(),
            file: "built-1.0.tar.gz".to_owned(),
            sha256: "b".repeat(64),
            size: None,
            build: Vec::new(),
            recipe: None,
        }];
        let own = lock.wheels[0].sha256.clone();
        let versions: BTreeMap<String, String> =
            [("same", "1.0"), ("other", "1.0.0"), ("moved", "2.0"), ("unlisted", "1.0"), ("built", "1.0")]
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
                .into();
        let set = |hash: &str| BTreeSet::from([hash.to_owned()]);
        let hashes = BTreeMap::from([
            ("same".to_owned(), BTreeSet::from(["c".repeat(64), own])),
            ("other".to_owned(), set(&"c".repeat(64))),
            ("moved".to_owned(), set(&"c".repeat(64))),
            ("built".to_owned(), set(&"b".repeat(64))),
        ]);
        let names = |lock: &Lock| -> Vec<String> {
            lock.other_files(&versions, &hashes)
                .into_iter()
                .map(|one| format!("{} {}", one.name, one.file))
                .collect()
        };
        assert_eq!(names(&lock), [format!("other {}", lock.wheels[1].file)]);
        lock.sources[0].sha256 = "d".repeat(64);
        assert_eq!(names(&lock)[0], "built built-1.0.tar.gz");
    }

    #[test]
    fn moved_versions_have_both_versions_and_the_known_reason() {
        let mut lock = sample::lock();
        lock.added.python = vec!["rich>=14".to_owned(), "torch-scatter".to_owned(), "tqdm".to_owned()];
        lock.wheels = vec![
            wheel("nvidia-cudnn-cu12", "9.10.2.21", WheelLayer::Cuda),
            wheel("torch", "2.8.0", WheelLayer::Framework),
            wheel("torchaudio", "2.8.0+cu128", WheelLayer::Framework),
            wheel("numpy", "2.2.6", WheelLayer::User),
            wheel("numba", "0.61.2", WheelLayer::User),
            wheel("rich", "14.0.0", WheelLayer::User),
            wheel("torch-scatter", "2.1.2+pt28cu128", WheelLayer::User),
            wheel("torchao", "0.16.0", WheelLayer::User),
            wheel("tqdm", "4.67.1", WheelLayer::User),
        ];
        let requirements: Requirements =
            [("numba".to_owned(), vec!["numpy<2.3 ; python_version > '3.9'".to_owned()])].into();
        let excluded =
            [("torchao".to_owned(), vec![("0.17.0".to_owned(), "torchao 0.17.0 links CUDA 13".to_owned())])]
                .into();
        let known = KnownReasons { requirements: &requirements, developer: &[], excluded: &excluded };
        let versions = [
            ("nvidia-cudnn-cu12", "9.5.1.17"),
            ("torch", "2.7.0"),
            ("torchaudio", "2.8.0"),
            ("numpy", "2.3.1"),
            ("rich", "13.9.4"),
            ("torch-scatter", "2.1.2+pt27cu126"),
            ("torchao", "0.17.0"),
            ("tqdm", "4.67.1"),
            ("click", "8.1.7"),
        ];
        let versions = versions.map(|(name, version)| (name.to_owned(), version.to_owned())).into();
        let found = lock.kept_versions(&versions, known);
        assert_eq!((found.kept, found.unused), (2, vec!["click".to_owned()]));
        let moved: Vec<_> = found
            .moved
            .iter()
            .map(|one| {
                format!("{} {} {}: {}", one.name, one.from, one.to, one.reason.as_deref().unwrap_or("?"))
            })
            .collect();
        assert_eq!(
            moved,
            [
                "numpy 2.3.1 2.2.6: `numpy<2.3` of numba",
                "nvidia-cudnn-cu12 9.5.1.17 9.10.2.21: part of the stack",
                "rich 13.9.4 14.0.0: `rich>=14` of the project",
                "torch 2.7.0 2.8.0: `torch==2.8.0` of the matrix",
                "torch-scatter 2.1.2+pt27cu126 2.1.2+pt28cu128: ?",
                "torchao 0.17.0 0.16.0: torchao 0.17.0 links CUDA 13",
            ]
        );
    }
}
