//! A lock with what is known of its packages, and what is said of them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::compat::Matrix;
use crate::model::lock::{Lock, LockedWheel, Requirements, WheelLayer};

/// What kind of thing does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisfitKind {
    /// Two distributions install one module, or one path with different content.
    SamePath,
    /// A package is for another CUDA major than the stack's.
    OtherCuda,
    /// A library of the operating system is not in the image.
    SystemLibrary,
    /// A pre-release that no requirement names.
    PreRelease,
    /// A requested package is years behind its newest release.
    Old,
}

/// Locked packages that do not go together or lack something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// What kind.
    pub kind: MisfitKind,
    /// The packages, sorted.
    pub packages: Vec<String>,
    /// What does not fit, and what to do.
    pub text: String,
    /// Packages of the distribution that mend it.
    pub apt: Vec<String>,
    /// Libraries of the operating system that the image lacks, sorted.
    pub libraries: Vec<String>,
    /// Where the fact comes from, if it is one of the matrix.
    pub source: Option<String>,
}

impl Misfit {
    /// One that no package of the distribution mends.
    pub(super) fn new(kind: MisfitKind, packages: Vec<String>, text: String, source: Option<String>) -> Self {
        Self { kind, packages, text, apt: Vec::new(), libraries: Vec::new(), source }
    }
}

/// What is known of locked packages beside the lock.
#[derive(Debug, Clone, Copy)]
pub struct KnownPackages<'a> {
    /// The matrix.
    pub matrix: &'a Matrix,
    /// What wheels of the cache require.
    pub requirements: &'a Requirements,
    /// What every image requires.
    pub developer: &'a [String],
    /// Paths that several wheels of the cache install with different content.
    pub shared: &'a [SharedPath],
    /// What indexes list of requested packages.
    pub listed: &'a BTreeMap<String, ListedReleases>,
}

/// A lock with what is known of its packages.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) lock: &'a Lock,
    pub(super) known: KnownPackages<'a>,
}

impl<'a> Question<'a> {
    /// The wheels that are not of the stack itself.
    pub(super) fn added_wheels(&self) -> impl Iterator<Item = &'a LockedWheel> {
        let stack = &self.lock.stack;
        self.lock.wheels.iter().filter(move |wheel| {
            matches!(wheel.layer, WheelLayer::Stack | WheelLayer::User)
                && wheel.name != stack.package
                && !stack.companions.contains_key(&wheel.name)
                && !stack.toolkit_wheels().contains_key(wheel.name.as_str())
        })
    }

    /// ` (required by albumentations)`; empty for a package that was requested itself, and where nothing is known.
    pub(super) fn required_by(&self, name: &str) -> String {
        let origin = self.lock.origin(name, self.known.requirements, self.known.developer);
        let chains = origin.map(|origin| origin.chains).unwrap_or_default();
        let last = chains.first().and_then(|chain| chain.through.last());
        last.map(|by| format!(" (required by `{}`)", by.name)).unwrap_or_default()
    }
}

/// The files of a wheel, as its archive lists them: where each is installed, with checksum and size.
pub type WheelFiles = Vec<(String, FileContent)>;

/// Checksum (CRC-32) and size of a file.
pub type FileContent = (u32, u64);

/// Two packages that install a path with different content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPath {
    /// The package whose file is replaced.
    pub replaced: String,
    /// The package whose file stays: the last by name.
    pub stays: String,
    /// The first such path.
    pub path: String,
    /// How many there are.
    pub count: usize,
}

/// What an index lists of a package: the day of each release, `2026-03-01`, by version; yanked files are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedReleases(pub BTreeMap<String, String>);
