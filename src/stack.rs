//! The stack: what `resolve` chose, with reasons. A plain value; `plan --json` prints it, `lock` pins it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compat::tables::{Channel, Status};
use crate::target::Target;
use crate::versions::{
    ComputeCapability, CudaVariant, DriverVersion, FrameworkVersion, GlibcVersion, LibraryVersion, Machine,
    PythonVersion, ToolkitVersion,
};

/// What the image is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Framework, CUDA libraries, C/C++ compiler, Python headers, developer stack.
    #[default]
    Runtime,
    /// Plus nvcc, CUDA headers, an accepted host compiler, Nsight where a source exists.
    Devel,
}

impl std::fmt::Display for Flavour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Runtime => "runtime",
            Self::Devel => "devel",
        })
    }
}

/// Why one field has the value it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The field: `cuda`.
    pub field: String,
    /// The value chosen: `cu128`.
    pub chosen: String,
    /// Why, as a clause: "the newest stable listed variant this target can run".
    pub because: String,
    /// The fact it rests on.
    pub source: String,
}

/// What the result needs of the machine that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// Lowest driver by minor-version compatibility; `None` where the matrix has no floor for this CUDA.
    pub driver: Option<DriverVersion>,
    /// Driver that has this CUDA itself; `None` where only its branch is published.
    pub driver_native: Option<DriverVersion>,
    /// GPU targets in the binary (machine code); empty: not established.
    pub gpu: Vec<ComputeCapability>,
    /// GPU targets with PTX.
    pub ptx: Vec<ComputeCapability>,
}

/// A forward-compatibility package admitted by `--forward-compat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardCompatChoice {
    /// The package: `cuda-compat-12-8`.
    pub package: String,
    /// Where its legality is written.
    pub source: String,
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
    /// Where the binary is published.
    pub channel: Channel,
    /// What upstream calls the variant.
    pub status: Status,
    /// True if upstream or the row calls it experimental.
    pub experimental: bool,
    /// The base system: `debian:12`.
    pub base: String,
    /// Its suite: `bookworm`.
    pub suite: String,
    /// What the result needs.
    pub requires: Requires,
    /// The forward-compatibility package in use, if admitted.
    pub forward_compat: Option<ForwardCompatChoice>,
    /// numpy requirement that follows from the framework's ABI (`<2`), if any.
    pub numpy: Option<String>,
    /// The target it was resolved for.
    pub target: Target,
    /// Edition of the matrix that decided.
    pub matrix: String,
    /// Why each field has its value.
    pub reasons: Vec<Reason>,
}
