//! Look-ups over the matrix by key.
//!
//! Owns finding rows. Must not judge them: whether a row fits a target is for `resolve`.

use super::tables::{
    Base, Capability, Companion, Compiler, Components, CudnnBuild, DeveloperStack, DriverBranch,
    ForwardCompat, KnownVersion, Matrix, MinorFloor, NcclBuild, NumpyLimit, Product, Toolkit, Variant,
};
use crate::versions::{
    ComputeCapability, CudaApiVersion, CudaVariant, DriverVersion, FrameworkVersion, LibraryVersion, Machine,
    PythonVersion, ToolkitVersion,
};

/// What is asked of the variant table; `None` leaves a column open.
#[derive(Debug, Clone, Default)]
pub struct VariantQuery<'a> {
    /// The framework: `pytorch`.
    pub framework: &'a str,
    /// A version prefix: `2.8` finds `2.8.0`.
    pub version: Option<&'a FrameworkVersion>,
    /// The CUDA; a major alone (`cu12`) finds all of that major.
    pub cuda: Option<CudaVariant>,
    /// The processor.
    pub machine: Option<Machine>,
}

impl VariantQuery<'_> {
    fn covers(&self, row: &Variant) -> bool {
        let cuda = |wanted: CudaVariant| {
            wanted.major == row.cuda.major && (wanted.minor.is_none() || wanted.minor == row.cuda.minor)
        };
        row.framework == self.framework
            && self.version.is_none_or(|prefix| row.version.starts_with(prefix))
            && self.cuda.is_none_or(cuda)
            && self.machine.is_none_or(|machine| machine == row.machine)
    }
}

impl Matrix {
    /// The variant rows a query covers, in the order of the table.
    pub fn variants_of<'a>(&'a self, query: &'a VariantQuery<'_>) -> impl Iterator<Item = &'a Variant> {
        self.variants.iter().filter(|row| query.covers(row))
    }

    /// What is known of versions that have no variant row.
    pub fn known_versions_of<'a>(&'a self, framework: &'a str) -> impl Iterator<Item = &'a KnownVersion> {
        self.known_versions.iter().filter(move |row| row.framework == framework)
    }

    /// The product with this name in a spec (`pytorch-cuda`), with or without rows.
    pub fn product(&self, name: &str) -> Option<&Product> {
        self.products.iter().find(|row| row.name == name)
    }

    /// The life span of a compute capability.
    pub fn capability(&self, cc: ComputeCapability) -> Option<&Capability> {
        self.capabilities.iter().find(|row| row.cc == cc)
    }

    /// The toolkit release with exactly this version.
    pub fn toolkit(&self, version: &ToolkitVersion) -> Option<&Toolkit> {
        self.toolkits.iter().find(|row| row.cuda == *version)
    }

    /// The compiler of a toolkit release, by its major and minor.
    pub fn compiler(&self, version: &ToolkitVersion) -> Option<&Compiler> {
        let same =
            |row: &&Compiler| row.cuda.major() == version.major() && row.cuda.minor() == version.minor();
        self.compilers.iter().find(same)
    }

    /// The component wheels of exactly this toolkit release.
    pub fn components_of(&self, version: &ToolkitVersion) -> Option<&Components> {
        self.components.iter().find(|row| row.cuda == *version)
    }

    /// The lowest driver for a CUDA major by minor-version compatibility.
    pub fn minor_floor(&self, cuda_major: u8) -> Option<&MinorFloor> {
        self.minor_floors.iter().find(|row| row.cuda_major == cuda_major)
    }

    /// The forward-compatibility package that brings this CUDA.
    pub fn forward_compat_of(&self, cuda: &CudaApiVersion) -> Option<&ForwardCompat> {
        self.forward_compat.iter().find(|row| row.cuda == *cuda)
    }

    /// The branch a driver belongs to: the newest known branch that is not above it.
    pub fn branch_of(&self, driver: &DriverVersion) -> Option<&DriverBranch> {
        let below = self.branches.iter().filter(|row| row.branch <= driver.major());
        below.max_by_key(|row| row.branch)
    }

    /// The newest CUDA a driver supports by itself.
    pub fn max_cuda_of(&self, driver: &DriverVersion) -> Option<&CudaApiVersion> {
        self.branch_of(driver).map(|row| &row.max_cuda)
    }

    /// The cuDNN build with this version for a CUDA major.
    pub fn cudnn_build(&self, version: &LibraryVersion, cuda_major: u8) -> Option<&CudnnBuild> {
        self.cudnn.iter().find(|row| row.version == *version && row.cuda_major == cuda_major)
    }

    /// The NCCL build with this version for a CUDA major.
    pub fn nccl_build(&self, version: &LibraryVersion, cuda_major: u8) -> Option<&NcclBuild> {
        let suffix = format!("-cu{cuda_major}");
        self.nccl.iter().find(|row| row.version == *version && row.package.ends_with(&suffix))
    }

    /// Base systems whose packages bring this Python, the default base first.
    pub fn bases_with_python(&self, python: PythonVersion) -> Vec<&Base> {
        let mut bases: Vec<_> = self.bases.iter().filter(|row| row.python == python).collect();
        bases.sort_by(|a, b| (b.default, &a.name).cmp(&(a.default, &b.name)));
        bases
    }

    /// The base system with this name (`debian:12`).
    pub fn base(&self, name: &str) -> Option<&Base> {
        self.bases.iter().find(|row| row.name == name)
    }

    /// The base chosen when nothing else decides.
    pub fn default_base(&self) -> Option<&Base> {
        self.bases.iter().find(|row| row.default)
    }

    /// A companion release.
    pub fn companion(&self, package: &str, version: &str) -> Option<&Companion> {
        self.companions.iter().find(|row| row.package == package && row.version == version)
    }

    /// Developer stacks known for one Python, one for each NumPy line.
    pub fn stacks_of(&self, python: PythonVersion) -> impl Iterator<Item = &DeveloperStack> {
        self.stacks.iter().filter(move |row| row.python == python)
    }

    /// The NumPy line that binaries of this framework version work with, if the matrix says so.
    pub fn numpy_limit(&self, framework: &str, version: &FrameworkVersion) -> Option<&NumpyLimit> {
        self.numpy_limits.iter().find(|row| {
            row.framework == framework
                && row.first.as_ref().is_none_or(|first| first <= version)
                && row.last.as_ref().is_none_or(|last| version <= last)
        })
    }
}
