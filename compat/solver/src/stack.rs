//! The stack: the result of `resolve`, with reasons. A plain value; `plan --json` prints it, `lock` pins it.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::matrix::tables::{Channel, PtxasVariable, Status};
pub use crate::spec::Flavour;
use crate::target::Target;
use crate::versions::{
    ComputeCapability, CudaVariant, DriverVersion, FrameworkVersion, GlibcVersion, LibraryVersion, Machine,
    PythonVersion, ToolkitVersion,
};

/// The reason for the value of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The field: `cuda`.
    pub field: String,
    /// The value chosen: `cu128`.
    pub chosen: String,
    /// The reason, as a clause: "the newest stable listed variant this target can run".
    pub because: String,
    /// The underlying fact.
    pub source: String,
}

/// Requirements on the machine that runs the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// Lowest driver by minor-version compatibility; `None` where the matrix has no floor for this CUDA.
    pub driver: Option<DriverVersion>,
    /// Driver released with this CUDA; `None` where only its branch is published.
    pub driver_native: Option<DriverVersion>,
    /// GPU targets in the binary (machine code); empty: unknown.
    pub gpu: Vec<ComputeCapability>,
    /// GPU targets with PTX.
    pub ptx: Vec<ComputeCapability>,
}

impl Requires {
    /// Returns the code of the binary that runs on a GPU: the newest cubin of its major version, else the newest PTX.
    pub fn code_for(&self, gpu: ComputeCapability) -> Option<ComputeCapability> {
        let cubin = self.gpu.iter().filter(|code| code.cubin_runs_on(gpu)).max();
        cubin.or_else(|| self.ptx.iter().filter(|code| **code <= gpu).max()).copied()
    }
}

/// A forward-compatibility package admitted by `--forward-compat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardCompatChoice {
    /// The package: `cuda-compat-12-8`.
    pub package: String,
    /// The document that permits it.
    pub source: String,
}

/// The source of nvcc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NvccSource {
    /// The base distribution's own package, unpacked.
    Distribution,
    /// Wheels of the package index.
    Wheels,
    /// Packages of the vendor's apt repository, unpacked.
    Vendor,
}

impl std::fmt::Display for NvccSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Distribution => "the base distribution's package",
            Self::Wheels => "CUDA wheels of the package index",
            Self::Vendor => "the vendor's apt repository",
        })
    }
}

/// The vendor's apt repository for a base and a processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorRepository {
    /// Its directory below the repositories' root: `debian12/x86_64`.
    pub path: String,
    /// The file of its signing key, in that directory.
    pub key: String,
    /// The fingerprint of that key.
    pub fingerprint: String,
}

/// The compiler of the devel flavour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nvcc {
    /// Its source.
    pub source: NvccSource,
    /// Packages that are unpacked but not installed: nvcc and profilers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// The component of the distribution's archive that contains them: `non-free`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The newest gcc major of the base that it accepts.
    pub gcc: u32,
    /// The vendor's repository, if that is the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<VendorRepository>,
}

/// A ptxas for Triton, whose own has no target for a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PtxasChoice {
    /// Its CUDA release.
    pub cuda: ToolkitVersion,
    /// The wheels that carry it: package to version.
    pub parts: BTreeMap<String, String>,
    /// Its file below site-packages: `nvidia/cu13/bin/ptxas`.
    #[serde(deserialize_with = "ptxas_file")]
    pub file: String,
    /// The variable from which Triton reads its path.
    pub variable: PtxasVariable,
    /// The GPUs that it is for.
    pub gpus: Vec<ComputeCapability>,
}

/// A file of NVIDIA's wheels called ptxas: the path of a lock ends up in a variable of the image.
fn ptxas_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let folder = text.strip_prefix("nvidia/").and_then(|rest| rest.strip_suffix("/bin/ptxas"));
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if folder.is_some_and(|name| !name.is_empty() && is_plain(name)) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("invalid path of ptxas `{text}`")))
}

/// The build of an unpublished variant from source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceChoice {
    /// The release archive: `pytorch-v2.8.0.tar.gz`.
    pub archive: String,
    /// Its SHA-256, hex, if the matrix lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Patches in `templates/patches/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<String>,
    /// GPU targets it is compiled for.
    pub arch: Vec<ComputeCapability>,
    /// Memory of one compiler process, GB, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_memory_gb: Option<u32>,
    /// The known build time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The reason why it is experimental.
    pub experimental: String,
    /// The compiler it is built with, which the image may lack.
    pub nvcc: Nvcc,
    /// Wheels that compiler needs: package to version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
}

/// A consistent choice of everything, proven against the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// The canonical name: `pytorch-cuda:2.8.0-cu128-py3.11`.
    pub name: String,
    /// The product's name in a spec: `pytorch-cuda`.
    pub product: String,
    /// The framework: `pytorch`.
    pub framework: String,
    /// The package that carries it: `torch`.
    pub package: String,
    /// Its version.
    pub version: FrameworkVersion,
    /// The CUDA variant.
    pub cuda: CudaVariant,
    /// The toolkit release behind it.
    pub toolkit: ToolkitVersion,
    /// cuDNN of the binary.
    pub cudnn: Option<LibraryVersion>,
    /// NCCL of the binary.
    pub nccl: Option<LibraryVersion>,
    /// Triton pinned.
    pub triton: Option<String>,
    /// Companions (`torchvision` to version) that have a wheel for this Python.
    pub companions: BTreeMap<String, String>,
    /// Python of the image.
    pub python: PythonVersion,
    /// The oldest glibc that can load the binary.
    pub glibc: GlibcVersion,
    /// runtime or devel.
    pub flavour: Flavour,
    /// The processor.
    pub machine: Machine,
    /// The channel that publishes the binary.
    pub channel: Channel,
    /// The upstream status of the variant.
    pub status: Status,
    /// Whether upstream or the row calls it experimental.
    pub experimental: bool,
    /// Whether the variant is a row of this machine's own file, not of the matrix.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// The licence of the product, if it restricts whom the image may be passed on to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The base system: `debian:12`.
    pub base: String,
    /// Its suite: `bookworm`.
    pub suite: String,
    /// Requirements on the machine.
    pub requires: Requires,
    /// The forward-compatibility package in use, if admitted.
    pub forward_compat: Option<ForwardCompatChoice>,
    /// Requirements that install the framework; empty: its package in this version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<String>,
    /// Libraries that the framework's own wheel contains as files under their names: `cublas`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// Wheels of the toolkit that are pinned, by the row, for nvcc or as the product: package to version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// The compiler, in the devel flavour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvcc: Option<Nvcc>,
    /// The ptxas for Triton, if its own has no target for a GPU of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptxas: Option<Box<PtxasChoice>>,
    /// Its build, in the source channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_build: Option<Box<SourceChoice>>,
    /// numpy requirement that follows from the framework's ABI (`<2`), if any.
    pub numpy: Option<String>,
    /// The target it was resolved for.
    pub target: Target,
    /// Version of the matrix that decided.
    pub matrix: String,
    /// The reason for the value of each field.
    pub reasons: Vec<Reason>,
}

impl Stack {
    /// Whether the product is the toolkit alone, without a framework.
    pub fn is_toolkit(&self) -> bool {
        self.framework == crate::matrix::TOOLKIT
    }

    /// Returns every pinned wheel of the toolkit: `parts`, and those that carry ptxas.
    pub fn toolkit_wheels(&self) -> BTreeMap<&str, &str> {
        let ptxas = self.ptxas.iter().flat_map(|ptxas| &ptxas.parts);
        self.parts.iter().chain(ptxas).map(|(name, version)| (name.as_str(), version.as_str())).collect()
    }

    /// Returns the wheels of cuDNN and NCCL: package to version. A source build does not declare them itself.
    pub fn library_wheels(&self) -> Vec<(String, String)> {
        let name = |part: &str| format!("nvidia-{part}-cu{}", self.cuda.major);
        let all = [("cudnn", &self.cudnn), ("nccl", &self.nccl)];
        all.into_iter()
            .filter_map(|(part, version)| Some((name(part), version.as_ref()?.to_string())))
            .collect()
    }

    /// Returns the CUDA minor version of the toolkit in the image: `12.8`.
    pub fn toolkit_minor(&self) -> String {
        format!("{}.{}", self.toolkit.major(), self.toolkit.minor())
    }

    /// Whether the GPU code of the binary was read.
    pub fn gpu_code_is_known(&self) -> bool {
        !(self.requires.gpu.is_empty() && self.requires.ptx.is_empty())
    }

    /// Returns the GPU targets that nvcc must support: the target's GPUs; if it lists none, the oldest and the newest with code.
    pub fn nvcc_targets(&self) -> Vec<ComputeCapability> {
        let named = self.target.capabilities();
        if !named.is_empty() {
            return named;
        }
        let all = &self.requires.gpu;
        let mut ends: Vec<_> = all.iter().min().into_iter().chain(all.iter().max()).copied().collect();
        ends.dedup();
        ends
    }

    /// Returns the content of the image in one line: `pytorch 2.8.0 on CUDA 12.8`.
    pub fn title(&self) -> String {
        if self.is_toolkit() {
            return format!("CUDA {}", self.version);
        }
        format!("{} {} on CUDA {}", self.framework, self.version, self.cuda.dotted())
    }
}
