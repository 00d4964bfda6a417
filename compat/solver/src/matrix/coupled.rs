//! Packages whose wheels are coupled to torch or to a CUDA release: flash-attn, xformers, torchao.
//!
//! Owns the shape of their rows. Must not judge them: that is `resolve`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::versions::{
    ComputeCapability, CudaVariant, FrameworkVersion, GlibcVersion, Machine, PythonVersion,
};

/// A package that is coupled to torch or to a CUDA release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoupledPackage {
    /// Its normalized name: `flash-attn`.
    pub package: String,
    /// Where it is published.
    pub published: String,
    /// The requirements of a build from source.
    pub build: Option<String>,
    /// The address of the pages that have its wheels, of which the rows name only some: `{torch}` is `2.4.0`, `{cuda}` is `cu121`.
    /// What such a page has for a stack is not known here.
    pub pages: Option<String>,
    /// The reason why the package index has something else under this name.
    pub trap: Option<String>,
    /// The way to get the package that was meant.
    pub instead: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

impl CoupledPackage {
    /// Returns the address of the page with its wheels for a torch and a CUDA, where it has such pages.
    pub fn page(&self, torch: &FrameworkVersion, cuda: CudaVariant) -> Option<String> {
        let torch = format!("{}.{}.0", torch.major(), torch.minor());
        Some(self.pages.as_ref()?.replace("{torch}", &torch).replace("{cuda}", &cuda.to_string()))
    }
}

/// The place of a wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WheelPlace {
    /// The default package index.
    Default,
    /// A release page, a find-links page or an index of the project.
    Page,
    /// Nowhere: the index has the source alone.
    Sdist,
}

/// The coupling of a wheel's libraries to torch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AbiClass {
    /// One torch release, which the requirement or the file name pins.
    Pinned,
    /// A range of torch releases, which the requirement states.
    Range,
    /// Linked to libtorch, but the requirement does not say to which.
    Undeclared,
    /// The stable ABI of libtorch: a floor and no ceiling.
    Stable,
    /// Not linked to libtorch.
    None,
}

impl CoupledRelease {
    /// Returns the address of the release page that has the wheel, if it is on one.
    pub fn release_page(&self) -> Option<String> {
        let repository = self.at.as_deref()?.strip_prefix("release page of ")?;
        Some(format!("https://github.com/{repository}/releases"))
    }
}

/// Releases of a coupled package with equal facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoupledRelease {
    /// The package.
    pub package: String,
    /// Its releases, oldest first.
    pub versions: Vec<FrameworkVersion>,
    /// Day of the first upload, `2026-02-20`.
    pub released: Option<String>,
    /// Where the wheel is.
    pub place: WheelPlace,
    /// The page, in words: `release page of Dao-AILab/flash-attention`.
    pub at: Option<String>,
    /// Its requirement on torch, as METADATA states it: `>=2.10`.
    pub torch: Option<String>,
    /// The coupling of its libraries.
    pub abi: AbiClass,
    /// The torch releases that it was built for or that have every symbol it asks for; empty: not established.
    #[serde(default)]
    pub loads: Vec<FrameworkVersion>,
    /// The CUDA major that its libraries link.
    pub cuda_major: Option<u8>,
    /// The CUDAs it has libraries or files for.
    #[serde(default)]
    pub cuda: Vec<CudaVariant>,
    /// Whether any of these CUDAs serves its whole major.
    #[serde(default)]
    pub cuda_nearest: bool,
    /// Pythons with a wheel; empty: see `python_from`, or one wheel for all.
    #[serde(default)]
    pub python: Vec<PythonVersion>,
    /// The first Python of a wheel for all later ones.
    pub python_from: Option<PythonVersion>,
    /// The only processor it has a wheel for.
    pub machine: Option<Machine>,
    /// The oldest glibc that loads it, where the file's name does not say it.
    pub glibc: Option<GlibcVersion>,
    /// The reason why it is never chosen.
    pub doubt: Option<String>,
    /// The file's name, with `{version}`, `{cuda}`, `{torch}`, `{digits}`, `{abi}`, `{python}`, `{machine}`.
    pub wheel: Option<String>,
    /// Whether the file was seen; false: its build matrix was.
    #[serde(default = "seen")]
    pub verified: bool,
    /// Where the row comes from.
    pub source: String,
}

/// How source distributions of a package are built that compile CUDA code for torch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecipe {
    /// The package.
    pub package: String,
    /// The releases whose set-up scripts were read, oldest first.
    pub versions: Vec<FrameworkVersion>,
    /// SHA-256 of their archives, hex: another archive of the name has no recipe.
    pub sha256: Vec<String>,
    /// Build requirements beyond those that the archive names.
    #[serde(default)]
    pub build_wheels: Vec<String>,
    /// The patches of envforge, in `templates/patches/`.
    #[serde(default)]
    pub patches: Vec<String>,
    /// Further variables of the build. `{families}` stands for the first member of each target's generation: `80;90`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Memory that one compiler process takes, GB; `None`: not measured.
    pub job_memory_gb: Option<u32>,
    /// The oldest GPU that it has code for; `None`: any.
    pub oldest_gpu: Option<ComputeCapability>,
    /// Where the row comes from.
    pub source: String,
}

/// A wheel of the package index was seen there.
fn seen() -> bool {
    true
}
