//! The lock as plain values (DESIGN §6). `toml.rs` reads and writes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::added::Added;
use super::fields::{file_name, pool_path, sha256};
use crate::stack::Stack;

/// A package of the distribution, pinned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedDeb {
    /// The package: `libc6`.
    pub name: String,
    /// Its version: `2.36-9+deb12u14`.
    pub version: String,
    /// `amd64`, `arm64` or `all`.
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

/// Which kind of index a wheel comes from. No address: hashes make the origin irrelevant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// The default package index.
    Default,
    /// The framework's own index, for the variant of the stack.
    Framework,
    /// None: somebody built it, and this machine's cache has it.
    Local,
}

/// A wheel, pinned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedWheel {
    /// The normalised package name: `nvidia-cudnn-cu12`.
    pub name: String,
    /// Its version: `9.10.2.21`, `2.8.0`, `2.7.1+cu118`.
    pub version: String,
    /// The wheel's file name.
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    /// SHA-256 of the wheel, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
    /// Size in bytes, if the index said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The kind of index.
    pub index: IndexKind,
    /// The layer it belongs to.
    pub layer: WheelLayer,
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
    /// What the user added.
    User,
}

/// The base, pinned: exactly one of `digest` and `packages` is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedBase {
    /// `image` or `bootstrap`.
    pub provider: BaseProvider,
    /// `debian:12`.
    pub name: String,
    /// `bookworm`.
    pub suite: String,
    /// The registry digest (`sha256:…`), or the id of a local image that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Content digest of a bootstrapped base (hex SHA-256 by DESIGN §6), a record: its packages decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// True if it holds a CUDA of its own, beside which the framework's is put.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cuda: bool,
    /// Every package of a bootstrapped base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<LockedDeb>,
}

/// How a base came to be.
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
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its wheel's file name.
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    /// SHA-256 of that wheel, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
}

impl LockedTool {
    /// The wheel it comes in, as one of the default index.
    pub fn as_wheel(&self) -> LockedWheel {
        LockedWheel {
            name: self.name.clone(),
            version: self.version.clone(),
            file: self.file.clone(),
            sha256: self.sha256.clone(),
            size: None,
            index: IndexKind::Default,
            layer: WheelLayer::Stack,
        }
    }
}

/// A source distribution, pinned, and what its wheel was built with. The wheel is one of the lock's, and no index has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSource {
    /// The normalised package name: `docopt`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The archive's file name.
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    /// SHA-256 of the archive, hex.
    #[serde(deserialize_with = "sha256")]
    pub sha256: String,
    /// Size in bytes, if the index said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What its build asks for beyond what the image has, or in another version: sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<LockedTool>,
}

impl LockedSource {
    /// The archive as a file of an index, where it is found as wheels are.
    pub fn as_file(&self) -> LockedWheel {
        LockedWheel {
            name: self.name.clone(),
            version: self.version.clone(),
            file: self.file.clone(),
            sha256: self.sha256.clone(),
            size: self.size,
            index: IndexKind::Default,
            layer: WheelLayer::User,
        }
    }
}

/// Records that never make a lock stale.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// When the lock was made, RFC 3339, UTC.
    pub created: String,
    /// Version of envforge.
    pub envforge: String,
    /// Edition of the matrix.
    pub matrix: String,
    /// SHA-256 of the agent, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Content digest of the image, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// Everything an image is made of, byte by byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of this format: 1.
    pub schema: u32,
    /// What was asked for, as typed: `pytorch-cuda:2.8-cu128`.
    pub spec: String,
    /// What is wanted beside the stack.
    #[serde(default, skip_serializing_if = "Added::is_empty")]
    pub added: Added,
    /// The stack it was resolved to, with its target.
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
    /// Distribution packages the user added and what they need, in a layer of their own, sorted by name.
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
    pub records: Records,
}

impl Lock {
    /// Every .deb above the base, in the order they are installed.
    pub fn debs(&self) -> impl Iterator<Item = &LockedDeb> {
        self.system.iter().chain(&self.unpacked).chain(&self.apt)
    }

    /// The wheels that no index has.
    pub fn local_wheels(&self) -> impl Iterator<Item = &LockedWheel> {
        self.wheels.iter().filter(|wheel| wheel.index == IndexKind::Local)
    }

    /// The image without the Python packages, files and commands that the user added: what those are built in.
    #[must_use]
    pub fn below_the_user(&self) -> Self {
        let mut below = self.clone();
        below.wheels.retain(|wheel| wheel.layer != WheelLayer::User);
        below.sources.clear();
        below.added = Added { apt: self.added.apt.clone(), ..Added::default() };
        below
    }

    /// The same without its records, to compare what decides content.
    #[must_use]
    pub fn without_records(self) -> Self {
        Self { records: Records::default(), ..self }
    }

    /// True if a wheel comes from the framework's own index.
    pub fn uses_framework_index(&self) -> bool {
        self.wheels.iter().any(|wheel| wheel.index == IndexKind::Framework)
    }
}
