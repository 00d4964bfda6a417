//! The lock as plain values . `toml.rs` reads and writes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::added::{DEFAULT_INDEX, FRAMEWORK_INDEX, UserAdditions};
use super::fields::{
    deb_name, digest, file_name, image_name, optional_digest, optional_index_name, pool_path, sha256,
    version, wheel_name,
};
use crate::model::stack::Stack;

/// A package of the distribution, pinned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedDeb {
    /// The package: `libc6`.
    #[serde(deserialize_with = "deb_name")]
    pub name: String,
    /// Its version: `2.36-9+deb12u14`.
    #[serde(deserialize_with = "version")]
    pub version: String,
    /// `amd64`, `arm64` or `all`.
    #[serde(deserialize_with = "deb_name")]
    pub architecture: String,
    /// SHA-256 of the .deb, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
    /// Size of the .deb in bytes.
    pub size: u64,
    /// Path below the mirror's root, `pool/main/g/glibc/…deb`: no address.
    #[serde(deserialize_with = "pool_path")]
    pub path: String,
}

/// The kind of index a wheel comes from. No address: hashes make the origin irrelevant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// The default package index.
    Default,
    /// The framework's own index, for the variant of the stack.
    Framework,
    /// None: it was built locally and is in this machine's cache.
    Local,
}

/// A wheel, pinned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedWheel {
    /// The normalised package name: `nvidia-cudnn-cu12`.
    #[serde(deserialize_with = "wheel_name")]
    pub name: String,
    /// Its version: `9.10.2.21`, `2.8.0`, `2.7.1+cu118`.
    #[serde(deserialize_with = "version")]
    pub version: String,
    /// The wheel's file name.
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    /// SHA-256 of the wheel, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
    /// Size in bytes, if the index lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The kind of index.
    pub index: IndexKind,
    /// The name of the further index it was found in, if that is recorded.
    #[serde(
        default,
        rename = "index-name",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_index_name"
    )]
    pub index_name: Option<String>,
    /// The layer it belongs to.
    pub layer: WheelLayer,
}

impl LockedWheel {
    /// Returns the name of its index.
    pub fn index_label(&self) -> &str {
        match (&self.index_name, self.index) {
            (Some(name), _) => name,
            (None, IndexKind::Default) => DEFAULT_INDEX,
            (None, IndexKind::Framework) => FRAMEWORK_INDEX,
            (None, IndexKind::Local) => "local",
        }
    }
}

/// The layer of the image a wheel is installed in, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WheelLayer {
    /// CUDA libraries (`nvidia-*`).
    Cuda,
    /// The framework, its companions and what they need.
    Framework,
    /// The developer stack.
    Stack,
    /// Packages of the user.
    User,
    /// The project itself. No lock file has it: it is added to the lock of an image for its build.
    Project,
}

/// The base, pinned: exactly one of `digest` and `packages` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedBase {
    /// `image` or `bootstrap`.
    pub provider: BaseProvider,
    /// `debian:12`.
    #[serde(deserialize_with = "image_name")]
    pub name: String,
    /// `bookworm`.
    #[serde(deserialize_with = "deb_name")]
    pub suite: String,
    /// The registry digest (`sha256:…`), or the id of a local image that has none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_digest")]
    pub digest: Option<String>,
    /// Content digest of a bootstrapped base (hex SHA-256), a record: its packages decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Fingerprint of an image's layers and configuration (`sha256:…`), the same on every engine; a record: the digest
    /// decides.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_digest")]
    pub image: Option<String>,
    /// Whether it contains a CUDA of its own, next to the framework's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cuda: bool,
    /// Every package of a bootstrapped base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<LockedDeb>,
}

/// The source of a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaseProvider {
    /// A registry or local image.
    Image,
    /// Built from the distribution's packages.
    Bootstrap,
}

/// A tool that made the lock or runs in the build, pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTool {
    /// `uv`.
    #[serde(deserialize_with = "wheel_name")]
    pub name: String,
    /// Its version.
    #[serde(deserialize_with = "version")]
    pub version: String,
    /// Its wheel's file name.
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    /// SHA-256 of that wheel, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
}

impl LockedTool {
    /// Returns its wheel, as one of the default index.
    pub fn as_wheel(&self) -> LockedWheel {
        LockedWheel {
            name: self.name.clone(),
            version: self.version.clone(),
            file: self.file.clone(),
            sha256: self.sha256.clone(),
            size: None,
            index: IndexKind::Default,
            index_name: None,
            layer: WheelLayer::Stack,
        }
    }
}

/// A source distribution, pinned, with the build requirements of its wheel. The wheel is one of the lock's and of no index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSource {
    /// The normalised package name: `docopt`.
    #[serde(deserialize_with = "wheel_name")]
    pub name: String,
    /// Its version.
    #[serde(deserialize_with = "version")]
    pub version: String,
    /// The archive's file name.
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    /// SHA-256 of the archive, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
    /// Size in bytes, if the index lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Build requirements that the image does not have in that version, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<LockedTool>,
    /// SHA-256 of the recipe of the matrix that it is built by, hex; absent: without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
}

impl LockedSource {
    /// Returns the archive as a file of an index, which is found like wheels.
    pub fn as_file(&self) -> LockedWheel {
        LockedWheel {
            name: self.name.clone(),
            version: self.version.clone(),
            file: self.file.clone(),
            sha256: self.sha256.clone(),
            size: self.size,
            index: IndexKind::Default,
            index_name: None,
            layer: WheelLayer::User,
        }
    }
}

/// Records, which never make a lock stale.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockMetadata {
    /// When the lock was made, RFC 3339, UTC.
    pub created: String,
    /// Version of envforge.
    pub envforge: String,
    /// Version of the matrix.
    pub matrix: String,
    /// SHA-256 of the agent, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Content digest of the image, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Version of the form that layers are written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<u32>,
    /// Digest of the image's configuration, `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_digest")]
    pub config: Option<String>,
    /// Layers of the image, lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerRecord>,
}

/// A layer of the image that was built from a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LayerRecord {
    /// The component it holds: `framework`.
    pub component: String,
    /// Digest of its tar, `sha256:…`.
    #[serde(deserialize_with = "digest")]
    pub diff_id: String,
    /// Size of its tar in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Digest of the compressed tar, `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_digest")]
    pub digest: Option<String>,
    /// Size of the compressed tar in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed_size: Option<u64>,
}

/// Everything an image is made of, byte by byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of this format; it decides what the image is, as every pin does.
    pub schema: u32,
    /// The requested spec: `pytorch-cuda:2.8-cu128`.
    pub spec: String,
    /// The user's additions to the stack.
    #[serde(default, skip_serializing_if = "UserAdditions::is_empty")]
    pub added: UserAdditions,
    /// The resolved stack, with its target.
    pub stack: Stack,
    /// The base.
    pub base: LockedBase,
    /// uv, per platform one.
    pub tools: Vec<LockedTool>,
    /// Distribution packages above the base, sorted by name.
    pub system: Vec<LockedDeb>,
    /// Distribution or vendor packages that are unpacked and not installed: nvcc and profilers, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpacked: Vec<LockedDeb>,
    /// Distribution packages of the user with their dependencies, in a layer of their own, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<LockedDeb>,
    /// Wheels, sorted by layer, then name.
    pub wheels: Vec<LockedWheel>,
    /// Source distributions that wheels above were built from, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<LockedSource>,
    /// Environment variables of the image.
    pub environment: BTreeMap<String, String>,
    /// Records.
    pub records: LockMetadata,
}

impl Lock {
    /// Returns every .deb above the base, in installation order.
    pub fn debs(&self) -> impl Iterator<Item = &LockedDeb> {
        self.system.iter().chain(&self.unpacked).chain(&self.apt)
    }

    /// Whether the image keeps its PATH in login shells: since schema 3.
    pub fn keeps_login_path(&self) -> bool {
        self.schema > 2
    }

    /// Returns the wheels of no index.
    pub fn local_wheels(&self) -> impl Iterator<Item = &LockedWheel> {
        self.wheels.iter().filter(|wheel| wheel.index == IndexKind::Local)
    }

    /// Returns the image without Python packages, files and commands of the user: the one those are built in.
    #[must_use]
    pub fn without_user_layers(&self) -> Self {
        let mut below = self.clone();
        below.wheels.retain(|wheel| wheel.layer < WheelLayer::User);
        below.sources.clear();
        below.added = UserAdditions { apt: self.added.apt.clone(), ..UserAdditions::default() };
        below
    }

    /// Returns the lock of the image that has the project's own wheel, too. What is recorded of the image without it counts for its
    /// other layers only.
    #[must_use]
    pub fn with_project(&self, wheel: LockedWheel) -> Self {
        let mut lock = self.clone();
        lock.wheels.push(LockedWheel { index: IndexKind::Local, layer: WheelLayer::Project, ..wheel });
        (lock.records.content, lock.records.config) = (None, None);
        lock
    }

    /// Returns the lock without its records, to compare the deciding part.
    #[must_use]
    pub fn without_records(self) -> Self {
        Self { records: LockMetadata::default(), ..self }
    }

    /// Returns the lock with what the matrix says now of the stack that it fits. The target, the ptxas for it and the reasons stay:
    /// a lock is made to be used elsewhere.
    #[must_use]
    pub fn with_facts_of(self, fresh: &Stack) -> Self {
        let Stack { ptxas, target, matrix, reasons, .. } = self.stack;
        Self { stack: Stack { ptxas, target, matrix, reasons, ..fresh.clone() }, ..self }
    }

    /// Returns the names of the indexes that it may need, without the default one and the framework's.
    pub fn further_indexes(&self) -> impl Iterator<Item = &String> {
        let pinned = self.added.python_index.iter().map(|pin| &pin.index);
        let further = pinned.filter(|index| ![DEFAULT_INDEX, FRAMEWORK_INDEX].contains(&index.as_str()));
        self.added.indexes.iter().chain(further)
    }

    /// Whether a wheel comes from the framework's own index.
    pub fn uses_framework_index(&self) -> bool {
        self.wheels.iter().any(|wheel| wheel.index == IndexKind::Framework)
    }
}
