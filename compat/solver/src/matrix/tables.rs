//! The rows of the compatibility matrix, as plain values.
//!
//! Owns the shape of the data in `compat/*.toml`. Must not contain facts or rules: facts are data,
//! rules are in `resolve`.
//! Every row carries its `source`; an absent fact is `None`, never a guess.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::coupled::{CoupledPackage, CoupledRelease, SourceRecipe};
use super::needs::{DistributionLibrary, FrameworkRequirement, SameModule, WheelLibraries};
use crate::versions::{
    ComputeCapability, CudaApiVersion, CudaVariant, DriverVersion, FrameworkVersion, GlibcVersion,
    LibraryVersion, Machine, PythonVersion, ToolkitVersion,
};

/// The compatibility facts known to envforge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// The matrix version: the newest date of its facts and 12 hex digits of their hash, `2026-11-20.1a2b3c4d5e6f`.
    pub edition: String,
    /// Driver branches, oldest first.
    pub branches: Vec<DriverBranch>,
    /// Lowest driver for each CUDA major by minor-version compatibility.
    pub minor_floors: Vec<MinorFloor>,
    /// Forward-compatibility packages.
    pub forward_compat: Vec<ForwardCompat>,
    /// Toolkit releases with the driver each is named for (`12.8.1`).
    pub toolkits: Vec<Toolkit>,
    /// The targets of each toolkit's compiler (`12.8`).
    pub compilers: Vec<Compiler>,
    /// Compute capabilities with their architecture and last driver branch.
    pub capabilities: Vec<Capability>,
    /// GPU products by NVML name.
    pub gpus: Vec<Gpu>,
    /// cuDNN builds.
    pub cudnn: Vec<CudnnBuild>,
    /// NCCL builds.
    pub nccl: Vec<NcclBuild>,
    /// CUDA component wheels of each toolkit release.
    pub components: Vec<Components>,
    /// Published framework variants.
    pub variants: Vec<Variant>,
    /// Versions that exist but have no rows (for messages).
    pub known_versions: Vec<KnownVersion>,
    /// Published wheels that no image can use (for messages).
    pub rowless_wheels: Vec<RowlessWheels>,
    /// Companion releases with the Pythons they have wheels for.
    pub companions: Vec<Companion>,
    /// Base systems.
    pub bases: Vec<Base>,
    /// Companion versions of the developer stack per Python.
    pub stacks: Vec<DeveloperStack>,
    /// Products a spec can name, with or without rows.
    pub products: Vec<Product>,
    /// GPU chips with every product name their drivers print, for names that have no row in `gpus`.
    pub chips: Vec<Chip>,
    /// NumPy lines a framework's binaries accept.
    pub numpy_limits: Vec<NumpyLimit>,
    /// Library builds bundled by frameworks with unknown GPU code.
    pub unmeasured: Vec<UnmeasuredLibrary>,
    /// The wheels that carry the parts of a toolkit.
    pub component_wheels: Vec<ComponentWheel>,
    /// nvcc from a base distribution's own package.
    pub nvcc_packages: Vec<NvccPackage>,
    /// nvcc from wheels.
    pub nvcc_wheels: Vec<NvccWheels>,
    /// ptxas from wheels.
    pub ptxas_wheels: Vec<PtxasWheels>,
    /// The vendor's apt repositories.
    pub nvcc_repositories: Vec<NvccRepository>,
    /// The packages of one toolkit in the vendor's repositories.
    pub nvcc_vendor: Vec<NvccVendor>,
    /// The profilers of each toolkit in the vendor's repositories.
    pub profilers: Vec<Profilers>,
    /// The oldest CUDA that the build of each release line accepts.
    pub source_floors: Vec<SourceFloor>,
    /// Measured device code of images.
    pub device_code: Vec<DeviceCodeSize>,
    /// Unpublished variants that can be built from source.
    pub source_builds: Vec<SourceBuild>,
    /// Compilers that frameworks call at run time.
    pub jit: Vec<JitCompiler>,
    /// Packages that are coupled to torch or to a CUDA release.
    pub coupled_packages: Vec<CoupledPackage>,
    /// Their releases.
    pub coupled_releases: Vec<CoupledRelease>,
    /// How source distributions that compile CUDA code are built.
    pub source_recipes: Vec<SourceRecipe>,
    /// What releases of frameworks require of other packages.
    pub requirements: Vec<FrameworkRequirement>,
    /// Distributions that install one module.
    pub same_modules: Vec<SameModule>,
    /// Libraries of the operating system that wheels load.
    pub wheel_libraries: Vec<WheelLibraries>,
    /// The distribution's packages that have them.
    pub distribution_libraries: Vec<DistributionLibrary>,
    /// Names that conda gives to packages of the package index.
    pub conda_names: Vec<CondaName>,
    /// Images of NVIDIA's catalogue whose framework is a build of its own.
    pub catalogue: Vec<CatalogueImage>,
    /// Packages that need a framework, by their own metadata.
    pub implied_frameworks: Vec<ImpliedFramework>,
    /// The same as variants, for the rules: derived, see `from_source.rs`.
    pub source_variants: Vec<Variant>,
    /// What this machine's own file added.
    pub local: Option<LocalRows>,
}

/// The rows that a machine's own file adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalRows {
    /// The file.
    pub file: String,
    /// Their labels.
    pub rows: BTreeSet<String>,
}

/// The name of a package in conda's channels, and on the package index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CondaName {
    /// Its name in conda's channels: `pytorch`.
    pub name: String,
    /// Its normalized name on the package index: `torch`; `{major}` in it stands for the CUDA major: `cudf-cu{major}`.
    pub pypi: String,
    /// Why the package is not taken over under that name; `None`: it is.
    #[serde(default)]
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// A release of an image of NVIDIA's catalogue, and the framework in it, as its release notes list them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueImage {
    /// Its name: `nvcr.io/nvidia/pytorch`.
    pub image: String,
    /// Its release, with which its tags begin: `24.01`.
    pub release: String,
    /// The package of its framework: `torch`.
    pub package: String,
    /// Its version, a build of NVIDIA's own: `2.2.0a0`.
    pub version: String,
    /// The CUDA: `12.3.2`.
    pub cuda: String,
    /// The Python: `3.10`.
    pub python: String,
    /// Where the row comes from.
    pub source: String,
}

/// A package whose METADATA requires a framework without an extra.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpliedFramework {
    /// Its normalized name: `accelerate`.
    pub package: String,
    /// The framework: `pytorch`.
    pub framework: String,
    /// Where the row comes from.
    pub source: String,
}

/// A library build with unmeasured GPU code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnmeasuredLibrary {
    /// `cudnn` or `nccl`.
    pub library: String,
    /// The release: `7.6.5.32`.
    pub version: LibraryVersion,
    /// The CUDA major it is built for.
    pub cuda_major: u8,
    /// The processor of the build.
    pub machine: Machine,
    /// The reason why it has no row.
    pub why: String,
    /// Where it is known from.
    pub source: String,
}

/// A product a spec can name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// Its name in a spec: `pytorch-cuda`.
    pub name: String,
    /// Its framework, the key of [`Variant::framework`]: `pytorch`.
    pub framework: String,
    /// The package that carries it: `torch`; `None` for the toolkit alone.
    pub package: Option<String>,
    /// Packages of the framework on the default index that carry no row; their releases have a reason.
    #[serde(default)]
    pub other_packages: Vec<String>,
    /// Other names users give it: a spec may begin with them.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Names of something else that is easily taken for it, whose versions are others: `onnx` for `onnxruntime`. They are only
    /// suggested.
    #[serde(default)]
    pub similar: Vec<String>,
    /// The name of its licence, if that restricts whom its binaries may be passed on to.
    pub licence: Option<String>,
    /// Further packages of it under that licence.
    #[serde(default)]
    pub licence_covers: Vec<String>,
    /// Whether the matrix has rows of it.
    pub rows: bool,
    /// Where the row comes from.
    pub source: String,
}

/// A GPU chip and the product names drivers print for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    /// The chip's name: `GK210`.
    pub name: String,
    /// The architecture's name: `Kepler`.
    pub arch: String,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// Product names, as a driver lists them.
    #[serde(default)]
    pub names: Vec<String>,
    /// The only processor of machines with this chip; `None`: any.
    pub machine: Option<Machine>,
    /// Names that vGPU profiles use for boards with this chip: `A100D` of `GRID A100D-80C`.
    #[serde(default)]
    pub vgpu_boards: Vec<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The NumPy line a range of framework versions can work with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumpyLimit {
    /// The framework: `pytorch`.
    pub framework: String,
    /// First version of the range; `None`: from the beginning.
    pub first: Option<FrameworkVersion>,
    /// Last version of the range; `None`: to the newest.
    pub last: Option<FrameworkVersion>,
    /// The requirement on numpy (`<2`); `None`: both lines work.
    pub numpy: Option<String>,
    /// The reason of the limit.
    pub why: String,
    /// Where the row comes from.
    pub source: String,
}

/// A driver branch such as R570.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverBranch {
    /// Its number: 570.
    pub branch: u32,
    /// NVIDIA's support class: LTSB, PB, NFB.
    pub kind: Option<String>,
    /// The month or day its support ends: `2028-08`.
    pub end_of_life: Option<String>,
    /// Who says so: `NVIDIA`, or `endoflife.date`.
    pub end_of_life_by: Option<String>,
    /// The newest CUDA this branch supports without a forward-compatibility package.
    pub max_cuda: CudaApiVersion,
    /// The oldest compute capability it drives.
    pub oldest_gpu: ComputeCapability,
    /// The GPU architectures it drives, by name, as the source says it.
    pub architectures: String,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The lowest driver on which any CUDA of one major runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinorFloor {
    /// 12 for CUDA 12.x.
    pub cuda_major: u8,
    /// The floor on Linux.
    pub linux: DriverVersion,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// A `cuda-compat` package and the driver branches it may be used on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardCompat {
    /// The CUDA it provides.
    pub cuda: CudaApiVersion,
    /// The package: `cuda-compat-12-8`.
    pub package: String,
    /// Branches on which it is supported (data-center GPUs only).
    pub base_branches: Vec<u32>,
    /// Branches that support this CUDA natively.
    pub native: Vec<u32>,
    /// Where the row comes from.
    pub source: String,
}

/// A toolkit release and its drivers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolkit {
    /// The release: `12.8.1`.
    pub cuda: ToolkitVersion,
    /// The driver it ships with or is named for; `None` where only the branch is published.
    pub native_driver: Option<DriverVersion>,
    /// The branch of that driver; `None`: not read.
    pub branch: Option<u32>,
    /// The lowest driver its applications run on (minor-version compatibility).
    pub min_driver: DriverVersion,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The targets and host compilers of one CUDA minor's nvcc.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    /// The CUDA minor: `12.8`.
    pub cuda: ToolkitVersion,
    /// Targets nvcc knows, plain (no `a` or `f`).
    pub targets: Vec<ComputeCapability>,
    /// The PTX ISA it writes.
    pub ptx_isa: String,
    /// Newest host gcc major nvcc accepts.
    pub gcc_max: u32,
    /// Newest host clang major nvcc accepts.
    pub clang_max: u32,
    /// Where the row comes from.
    pub source: String,
}

/// A compute capability and its life span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// The capability.
    pub cc: ComputeCapability,
    /// The architecture's name: `Hopper`.
    pub arch: String,
    /// First CUDA that compiles for it.
    pub first_cuda: ToolkitVersion,
    /// Last CUDA that compiles for it; `None`: not dropped.
    pub last_cuda: Option<ToolkitVersion>,
    /// Last driver branch that drives it; `None`: not dropped.
    pub last_driver_branch: Option<u32>,
    /// Where the row comes from.
    pub source: String,
}

/// A GPU product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The name NVML prints: `NVIDIA A100-SXM4-80GB`.
    pub name: String,
    /// Other names people and drivers use for the same chip.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// `datacenter`, `workstation`, `geforce`, `laptop`...
    pub class: String,
    /// The architecture's name.
    pub arch: String,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// PCI device ids (hex, without vendor); products can share one.
    #[serde(default)]
    pub pci_ids: Vec<String>,
    /// Marketed memory, GB.
    pub memory_gb: Option<f64>,
    /// Memory bandwidth, GB/s.
    pub bandwidth_gb_s: Option<f64>,
    /// Dense peak rates in TFLOP/s by kind: `fp64`, `fp32`, `tf32_tensor`, `fp16_tensor`, `fp8_tensor`...
    #[serde(default)]
    pub tflops: BTreeMap<String, f64>,
    /// Total NVLink bandwidth per GPU, both directions, GB/s.
    pub nvlink_gb_s: Option<f64>,
    /// PCI Express generation.
    pub pcie_gen: Option<f64>,
    /// Whether the name was read from a driver's own list, and which.
    pub name_seen: Option<String>,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The GPU code of one build of a library.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuCode {
    /// Targets with machine code; families stand for their members (8.0 for 8.9).
    pub sass: Vec<ComputeCapability>,
    /// Targets with PTX.
    pub ptx: Vec<ComputeCapability>,
}

/// A cuDNN release for one CUDA major.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CudnnBuild {
    /// The release: `9.10.2.21`.
    pub version: LibraryVersion,
    /// The CUDA major it is built for.
    pub cuda_major: u8,
    /// The processor it is built for: builds of one release differ in their GPU code.
    pub machine: Machine,
    /// Its GPU code.
    pub code: GpuCode,
    /// Its lowest driver, if known.
    pub min_driver: Option<DriverVersion>,
    /// Where the row comes from.
    pub source: String,
}

/// An NCCL release for one CUDA major.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NcclBuild {
    /// The wheel: `nvidia-nccl-cu12`.
    pub package: String,
    /// The release: `2.27.3`.
    pub version: LibraryVersion,
    /// The processor it is built for: builds of one release differ in their GPU code.
    pub machine: Machine,
    /// The toolkit it was built with.
    pub built_with_cuda: String,
    /// Its GPU code.
    pub code: GpuCode,
    /// Where the row comes from.
    pub source: String,
}

/// The component wheels of one toolkit release: package name to version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// The toolkit release.
    pub cuda: ToolkitVersion,
    /// Component (`cudart`, `cublas`) to version.
    pub versions: BTreeMap<String, String>,
    /// Where the row comes from.
    pub source: String,
}

/// The wheel that carries a part of a toolkit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentWheel {
    /// The part, as [`Components::versions`] names it: `cublas`.
    pub part: String,
    /// Its package, without the suffix of older majors: `nvidia-cublas`.
    pub package: String,
    /// True for libraries: they make up the toolkit as a product of its own.
    pub library: bool,
    /// The oldest glibc any of its wheels needs.
    pub glibc: GlibcVersion,
    /// Where the row comes from.
    pub source: String,
}

/// nvcc from a base distribution's own package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvccPackage {
    /// The base: `debian:12`.
    pub base: String,
    /// The toolkit.
    pub cuda: ToolkitVersion,
    /// The part of the archive that holds it: `non-free`.
    pub component: String,
    /// The package.
    pub package: String,
    /// Toolkit parts that are also required as wheels: `nvcc`, `cccl`.
    pub headers: Vec<String>,
    /// Packages of the command-line profilers.
    pub profilers: Vec<String>,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// nvcc from wheels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvccWheels {
    /// The CUDA major whose wheels hold nvcc.
    pub cuda_major: u32,
    /// The parts that are needed.
    pub parts: Vec<String>,
    /// Where the row comes from.
    pub source: String,
}

/// ptxas from the wheels of nvcc.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PtxasWheels {
    /// The CUDA major.
    pub cuda_major: u32,
    /// The parts that are needed: the wheel with ptxas, and those that its METADATA requires and the framework does not pin.
    pub parts: Vec<String>,
    /// The file of ptxas below site-packages.
    pub file: String,
    /// Where the row comes from.
    pub source: String,
}

/// One of the vendor's apt repositories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvccRepository {
    /// The base it is for: `debian:12`.
    pub base: String,
    /// Its folder: `debian12`.
    pub path: String,
    /// The folder below it for each processor it serves.
    pub machines: BTreeMap<Machine, String>,
    /// The CUDA minors it serves.
    pub cuda: Vec<ToolkitVersion>,
    /// The file of its signing key, next to the index.
    pub key: String,
    /// The fingerprint of that key, hex.
    pub fingerprint: String,
    /// Where the row comes from.
    pub source: String,
}

/// The packages of one toolkit in the vendor's repositories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvccVendor {
    /// The first CUDA minor packaged so.
    pub first: ToolkitVersion,
    /// The last one; `None`: to the newest.
    pub last: Option<ToolkitVersion>,
    /// The packages, without `-<major>-<minor>` at their ends.
    pub packages: Vec<String>,
    /// Toolkit parts that are also required as wheels.
    pub headers: Vec<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The profilers of a toolkit in the vendor's repositories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profilers {
    /// The toolkit.
    pub cuda: ToolkitVersion,
    /// The package of Nsight Compute.
    pub compute: String,
    /// The package of Nsight Systems, if known.
    pub systems: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The origin of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// The default package index.
    Default,
    /// The framework's own index.
    Framework,
    /// Unpublished, built from source.
    Source,
}

/// The upstream status of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In the official matrix as stable.
    Stable,
    /// In the official matrix as experimental.
    Experimental,
    /// In the official matrix as legacy.
    Legacy,
    /// Published but in no official matrix.
    Unlisted,
}

/// One published binary: framework x CUDA x machine. A `cuda` without minor stands for a wheel of a whole major.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The product's name in a spec, without `-cuda`: `pytorch`.
    pub framework: String,
    /// The framework's version.
    pub version: FrameworkVersion,
    /// The CUDA it was built for.
    pub cuda: CudaVariant,
    /// The processor.
    pub machine: Machine,
    /// Day of the first upload, `2025-08-06`.
    pub released: String,
    /// The toolkit release the variant stands for.
    pub toolkit: ToolkitVersion,
    /// Its package, if different from the product's: `cupy-cuda12x`.
    pub package: Option<String>,
    /// The requirements to install; empty: only the package in this version.
    #[serde(default)]
    pub install: Vec<String>,
    /// Parts of the toolkit that are pinned as wheels and linked at /usr/local/cuda: `runtime`, `cublas`.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Libraries that the framework's own wheel contains as files under their names: `cublas`. Those that it links
    /// statically or renames are left out.
    #[serde(default)]
    pub shared: Vec<String>,
    /// CUDA runtime pinned or bundled.
    pub cudart: Option<String>,
    /// cuDNN pinned or bundled.
    pub cudnn: Option<LibraryVersion>,
    /// NCCL pinned or bundled.
    pub nccl: Option<LibraryVersion>,
    /// Triton pinned.
    pub triton: Option<String>,
    /// The first Python whose wheels leave Triton out; `None`: no wheel does.
    pub triton_before: Option<PythonVersion>,
    /// Companion packages: `torchvision` to `0.23.0`.
    #[serde(default)]
    pub companions: BTreeMap<String, String>,
    /// CPython versions with a wheel.
    pub python: Vec<PythonVersion>,
    /// Free-threaded builds, `3.13t`.
    #[serde(default)]
    pub python_freethreaded: Vec<String>,
    /// Wheels that exist on the framework's index only and lack companions.
    #[serde(default)]
    pub python_preview: Vec<String>,
    /// GPU targets with machine code; `None`: not established.
    pub arch: Option<Vec<ComputeCapability>>,
    /// GPU targets with PTX.
    #[serde(default)]
    pub ptx: Vec<ComputeCapability>,
    /// The CUDA of the compiler that made its PTX; `None`: that of the toolkit.
    #[serde(default)]
    pub ptx_cuda: Option<CudaApiVersion>,
    /// Whether it has PTX of a CUDA that was not read: which drivers compile it is unknown, so it counts for no GPU.
    #[serde(default)]
    pub unknown_ptx: bool,
    /// Where it is published.
    pub channel: Channel,
    /// Its upstream status.
    pub status: Status,
    /// The oldest glibc that can load it.
    pub min_glibc: GlibcVersion,
    /// C++ ABI of the wheel (`true`: new).
    pub cxx11_abi: Option<bool>,
    /// Whether its publication is confirmed.
    pub verified: bool,
    /// The kind of evidence: `wheel`, `index-listing`, `release-script`, `third-party`, `announced`.
    pub evidence: String,
    /// Remarks.
    pub notes: Option<String>,
    /// Where the row comes from, in full.
    pub source: String,
}

impl Variant {
    /// Returns the Triton that the wheel for that Python requires.
    pub fn triton_for(&self, python: PythonVersion) -> Option<&String> {
        self.triton.as_ref().filter(|_| self.triton_before.is_none_or(|first| python < first))
    }
}

/// The oldest CUDA that the build system of a release line accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFloor {
    /// The framework: `pytorch`.
    pub framework: String,
    /// The release line: `2.8`.
    pub line: FrameworkVersion,
    /// The oldest CUDA it accepts: `11.0`.
    pub cuda: ToolkitVersion,
    /// Where the row comes from.
    pub source: String,
}

/// An unpublished combination that the framework's build system accepts, with patches if required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceBuild {
    /// The framework: `pytorch`.
    pub framework: String,
    /// Its version.
    pub version: FrameworkVersion,
    /// The CUDA it is built for.
    pub cuda: CudaVariant,
    /// The processor.
    pub machine: Machine,
    /// The toolkit release it is built with.
    pub toolkit: ToolkitVersion,
    /// cuDNN it is built with.
    pub cudnn: LibraryVersion,
    /// NCCL it is built with.
    pub nccl: LibraryVersion,
    /// Triton of that release.
    pub triton: Option<String>,
    /// Parts of the toolkit that it links, pinned as wheels: `cublas`.
    pub parts: Vec<String>,
    /// Companions, built likewise: `torchvision` to `0.23.0`.
    #[serde(default)]
    pub companions: BTreeMap<String, String>,
    /// CPython versions it can be built for.
    pub python: Vec<PythonVersion>,
    /// GPU targets it is compiled for, if none are named.
    pub arch: Vec<ComputeCapability>,
    /// The release archive, submodules inside: `pytorch-v2.8.0.tar.gz`.
    pub archive: String,
    /// SHA-256 of the archive, hex; `None`: not known.
    pub sha256: Option<String>,
    /// The URL of the archive, unless a setting overrides it.
    pub address: Option<String>,
    /// The patches of envforge, in `templates/patches/`.
    #[serde(default)]
    pub patches: Vec<String>,
    /// Build requirements from the package index.
    #[serde(default)]
    pub build_wheels: Vec<String>,
    /// Additional distribution packages for the build.
    #[serde(default)]
    pub build_packages: Vec<String>,
    /// The environment of its build; `{arch}`, `{jobs}`, `{version}` and `{cuda}` are filled in.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Memory that one compiler process is given, GB; `None`: not known.
    pub job_memory_gb: Option<u32>,
    /// The known facts about the build time.
    pub time: Option<String>,
    /// The reason why it is experimental.
    pub experimental: String,
    /// Where the row comes from.
    pub source: String,
}

/// The device code of an image of a variant, developer stack included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCodeSize {
    /// The framework: `pytorch`.
    pub framework: String,
    /// Its version.
    pub version: FrameworkVersion,
    /// Its CUDA.
    pub cuda: CudaVariant,
    /// The processor.
    pub machine: Machine,
    /// The number of libraries that have device code.
    pub libraries: u32,
    /// All their device code, MB.
    pub megabytes: u32,
    /// The machine code of each architecture among it, MB.
    pub machine_code: BTreeMap<ComputeCapability, u32>,
    /// Where the row comes from.
    pub source: String,
}

/// How the compiler of the variant's toolkit bounds run-time compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolkitBound {
    /// The GPU must be one of its targets.
    Targets,
    /// The GPU must not be older than all of its targets.
    Oldest,
}

/// A compiler that a framework calls at run time, and the newest GPU it has a target for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitCompiler {
    /// The framework: `jax`; `None`: every framework with this Triton.
    pub framework: Option<String>,
    /// The Triton release that carries the compiler.
    pub triton: Option<String>,
    /// The first release of the framework.
    pub first: Option<FrameworkVersion>,
    /// The last release of the framework.
    pub last: Option<FrameworkVersion>,
    /// The CUDA major, if it holds for one alone.
    pub cuda_major: Option<u8>,
    /// The compiler, for messages: `ptxas 12.4.99 of Triton 3.2.0`.
    pub component: String,
    /// The newest target; `None`: bounded by the toolkit alone.
    pub newest: Option<ComputeCapability>,
    /// Older capabilities without a target.
    #[serde(default)]
    pub missing: Vec<ComputeCapability>,
    /// Whether the compiler of the variant's toolkit is a bound, too.
    pub toolkit: Option<ToolkitBound>,
    /// Pythons with a wheel of this Triton.
    #[serde(default)]
    pub python: Vec<PythonVersion>,
    /// How this Triton takes another ptxas than its own; `None`: no other ptxas helps.
    pub other_ptxas: Option<OtherPtxas>,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// A variable from which Triton reads the path of a ptxas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PtxasVariable {
    /// The one for every GPU, to Triton 3.5; later for GPUs before Blackwell.
    #[serde(rename = "TRITON_PTXAS_PATH")]
    EveryGpu,
    /// The one for Blackwell and newer, from Triton 3.6 on.
    #[serde(rename = "TRITON_PTXAS_BLACKWELL_PATH")]
    Blackwell,
}

impl PtxasVariable {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EveryGpu => "TRITON_PTXAS_PATH",
            Self::Blackwell => "TRITON_PTXAS_BLACKWELL_PATH",
        }
    }
}

/// How a Triton takes another ptxas than its own, and where that helps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherPtxas {
    /// The variable with its path that Triton reads for these GPUs.
    pub variable: PtxasVariable,
    /// The GPUs without a target in Triton's own ptxas that this Triton compiles for with another one.
    pub gpus: Vec<ComputeCapability>,
    /// The newest CUDA major whose ptxas it takes.
    pub newest_cuda_major: u32,
}

impl JitCompiler {
    /// Whether the row is about a variant, with the Triton that its wheel requires.
    pub fn is_of(&self, variant: &Variant, triton: Option<&String>) -> bool {
        let framework = self.framework.as_ref().is_none_or(|framework| *framework == variant.framework);
        let triton = self.triton.is_none() || self.triton.as_ref() == triton;
        framework
            && triton
            && self.first.as_ref().is_none_or(|first| *first <= variant.version)
            && self.last.as_ref().is_none_or(|last| variant.version <= *last)
            && self.cuda_major.is_none_or(|major| major == variant.cuda.major)
    }
}

/// A version, or a range of them, that exists without variant rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownVersion {
    /// The framework: `pytorch`.
    pub framework: String,
    /// The version, or the first of a range.
    pub version: FrameworkVersion,
    /// The last version of the range.
    pub last: Option<FrameworkVersion>,
    /// The known facts, for messages.
    pub what: String,
    /// Where the row comes from.
    pub source: String,
}

impl KnownVersion {
    /// Returns the last version that the row covers.
    pub fn last(&self) -> &FrameworkVersion {
        self.last.as_ref().unwrap_or(&self.version)
    }
    /// Whether the row covers a version of its framework.
    pub fn covers(&self, version: &FrameworkVersion) -> bool {
        (&self.version..=self.last()).contains(&version)
    }
}

impl Matrix {
    /// Returns the package that carries a row: `cupy-cuda12x`.
    pub fn package_of<'a>(&'a self, row: &'a Variant) -> Option<&'a str> {
        let of_product =
            || self.products.iter().find(|product| product.framework == row.framework)?.package.as_deref();
        row.package.as_deref().or_else(of_product)
    }
}

/// Wheels of a package for one processor that have no row, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowlessWheels {
    /// The framework: `pytorch`.
    pub framework: String,
    /// The package that the wheels are of: `torch`.
    pub package: String,
    /// The processor that they are for.
    pub machine: Machine,
    /// The CUDA of the package, if it has one for each.
    pub cuda: Option<CudaVariant>,
    /// The release, or the first of a range.
    pub version: FrameworkVersion,
    /// The last release of the range.
    pub last: Option<FrameworkVersion>,
    /// The reason, for messages.
    pub what: String,
    /// Where the row comes from.
    pub source: String,
}

impl RowlessWheels {
    /// Whether the row is about a release for a processor.
    pub fn covers(&self, package: &str, version: &FrameworkVersion, machine: Machine) -> bool {
        let last = self.last.as_ref().unwrap_or(&self.version);
        self.package == package && self.machine == machine && (&self.version..=last).contains(&version)
    }
}

/// A companion release and the Pythons it has wheels for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Companion {
    /// The package: `torchvision`.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Pythons with a wheel; empty: one wheel for all.
    pub python: Vec<PythonVersion>,
    /// Its requirement on the framework, as written in the wheel.
    pub requires: Option<String>,
    /// Remarks.
    pub notes: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// A base system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Name and version: `debian:12`.
    pub name: String,
    /// The distribution: `debian`, `ubuntu`.
    pub distribution: String,
    /// The suite: `bookworm`.
    pub suite: String,
    /// Its C library.
    pub glibc: GlibcVersion,
    /// The Python of its packages.
    pub python: PythonVersion,
    /// Host gcc majors it has.
    pub gcc: Vec<u32>,
    /// Host clang majors it has.
    #[serde(default)]
    pub clang: Vec<u32>,
    /// Whether `bootstrap` can build it; otherwise it is only available as an image.
    pub bootstrap: bool,
    /// Why building it from packages is experimental.
    #[serde(default)]
    pub experimental: Option<String>,
    /// Whether it is the default base.
    #[serde(default)]
    pub default: bool,
    /// Whether it was checked against its own index.
    pub checked: bool,
    /// Remarks.
    pub note: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The newest developer stack for one Python, from the resolver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeveloperStack {
    /// The Python.
    pub python: PythonVersion,
    /// `1.x` or `2.x`.
    pub numpy_line: String,
    /// Whether the resolved stack is usable.
    pub usable: bool,
    /// The interpreter it was installed and imported with.
    pub tested_on: Option<String>,
    /// Remarks.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Package to version.
    pub versions: BTreeMap<String, String>,
    /// Where the row comes from.
    pub source: String,
}
