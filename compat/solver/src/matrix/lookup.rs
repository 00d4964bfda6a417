//! Lookups in the matrix by key.
//!
//! Owns finding rows. Must not check them against a target: that is `resolve`.

use std::collections::{BTreeMap, BTreeSet};

use super::coupled::SourceRecipe;
use super::needs::SameModule;
use super::tables::{
    Base, Capability, Companion, Compiler, ComponentWheel, Components, CudnnBuild, DeveloperStack,
    DriverBranch, ForwardCompat, JitCompiler, KnownVersion, Matrix, MinorFloor, NcclBuild, NumpyLimit,
    Product, Toolkit, Variant,
};
use crate::versions::{
    ComputeCapability, CudaApiVersion, CudaVariant, DriverVersion, FrameworkVersion, LibraryVersion, Machine,
    PythonVersion, ToolkitVersion,
};

/// A query of the variant table; `None` matches any value.
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
            && self.version.is_none_or(|prefix| row.version.is_meant_by(prefix))
            && self.cuda.is_none_or(cuda)
            && self.machine.is_none_or(|machine| machine == row.machine)
    }
}

/// Frameworks that come first where a product is offered or guessed.
const FIRST: [&str; 4] = ["pytorch", "tensorflow", "jax", "vllm"];

impl Matrix {
    /// Returns the products as they are offered: the first frameworks, the others by name, the toolkit alone.
    pub fn products_in_order(&self) -> Vec<&Product> {
        let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
        let mut all: Vec<_> = self.products.iter().collect();
        all.sort_by_key(|row| (row.package.is_none(), place(&row.framework), row.name.as_str()));
        all
    }

    /// Returns the variants that match a query, in table order.
    pub fn variants_of<'a>(&'a self, query: &'a VariantQuery<'_>) -> impl Iterator<Item = &'a Variant> {
        self.variants.iter().filter(|row| query.covers(row))
    }

    /// Returns the known versions without a variant row.
    pub fn known_versions_of<'a>(&'a self, framework: &'a str) -> impl Iterator<Item = &'a KnownVersion> {
        self.known_versions.iter().filter(move |row| row.framework == framework)
    }

    /// Returns the product with this name in a spec (`pytorch-cuda`) or one that people give it (`torch`), with or without rows.
    pub fn product(&self, name: &str) -> Option<&Product> {
        let called = || self.products.iter().find(|row| row.aliases.iter().any(|alias| alias == name));
        self.products.iter().find(|row| row.name == name).or_else(called)
    }

    /// Returns the life span of a compute capability.
    pub fn capability(&self, cc: ComputeCapability) -> Option<&Capability> {
        self.capabilities.iter().find(|row| row.cc == cc)
    }

    /// Returns how an archive of a package is built, by its SHA-256; `None`: its set-up script was not read.
    pub fn source_recipe(&self, package: &str, sha256: &str) -> Option<&SourceRecipe> {
        self.source_recipes
            .iter()
            .find(|row| row.package == package && row.sha256.iter().any(|one| one == sha256))
    }

    /// Returns the row of a module that both packages install; `None`: they do not, or are one package.
    pub fn same_module(&self, one: &str, other: &str) -> Option<&SameModule> {
        let has = |row: &SameModule, name: &str| row.packages.iter().any(|package| package == name);
        self.same_modules.iter().find(|row| one != other && has(row, one) && has(row, other))
    }

    /// Returns the distribution's package that has a library: `libgl1` for `libGL.so.1`.
    pub fn package_of_library(&self, soname: &str) -> Option<&str> {
        let row = self.distribution_libraries.iter().find(|row| row.library == soname)?;
        Some(&row.package)
    }

    /// Returns the names of packages that rows are about.
    pub fn package_names(&self) -> BTreeSet<&str> {
        let mut all: BTreeSet<&str> = BTreeSet::new();
        all.extend(self.coupled_packages.iter().map(|row| row.package.as_str()));
        all.extend(self.implied_frameworks.iter().map(|row| row.package.as_str()));
        all.extend(self.companions.iter().map(|row| row.package.as_str()));
        all.extend(self.products.iter().filter_map(|row| row.package.as_deref()));
        all.extend(self.variants.iter().filter_map(|row| row.package.as_deref()));
        all.extend(self.wheel_libraries.iter().map(|row| row.package.as_str()));
        all.extend(self.same_modules.iter().flat_map(|row| &row.packages).map(String::as_str));
        all.extend(self.stacks.iter().flat_map(|row| row.versions.keys()).map(String::as_str));
        let of_conda = self.conda_names.iter().map(|row| row.pypi.as_str());
        all.extend(of_conda.filter(|name| !name.contains('{')));
        all
    }

    /// Returns the toolkit release with exactly this version.
    pub fn toolkit(&self, version: &ToolkitVersion) -> Option<&Toolkit> {
        self.toolkits.iter().find(|row| row.cuda == *version)
    }

    /// Returns the compiler of a toolkit release, by its major and minor.
    pub fn compiler(&self, version: &ToolkitVersion) -> Option<&Compiler> {
        let same =
            |row: &&Compiler| row.cuda.major() == version.major() && row.cuda.minor() == version.minor();
        self.compilers.iter().find(same)
    }

    /// Returns the component wheels of exactly this toolkit release.
    pub fn components_of(&self, version: &ToolkitVersion) -> Option<&Components> {
        self.components.iter().find(|row| row.cuda == *version)
    }

    /// Returns the wheels of some parts of a toolkit release with their versions: `nvidia-cublas-cu12` to `12.8.4.1`. Parts
    /// that the release lacks are omitted; `None`: the release is unknown.
    pub fn wheels_of(
        &self,
        toolkit: &ToolkitVersion,
        wanted: impl Fn(&ComponentWheel) -> bool,
    ) -> Option<BTreeMap<String, String>> {
        let versions = &self.components_of(toolkit)?.versions;
        let suffix = if toolkit.major() < 13 { format!("-cu{}", toolkit.major()) } else { String::new() };
        let wheels = self.component_wheels.iter().filter(|wheel| wanted(wheel));
        let pin = |wheel: &ComponentWheel| {
            Some((format!("{}{suffix}", wheel.package), versions.get(&wheel.part)?.clone()))
        };
        Some(wheels.filter_map(pin).collect())
    }

    /// Returns the lowest driver for a CUDA major by minor-version compatibility.
    pub fn minor_floor(&self, cuda_major: u8) -> Option<&MinorFloor> {
        self.minor_floors.iter().find(|row| row.cuda_major == cuda_major)
    }

    /// Returns the forward-compatibility package that provides this CUDA.
    pub fn forward_compat_of(&self, cuda: &CudaApiVersion) -> Option<&ForwardCompat> {
        self.forward_compat.iter().find(|row| row.cuda == *cuda)
    }

    /// Returns the branch of a driver: the newest known branch that is not newer than it.
    pub fn branch_of(&self, driver: &DriverVersion) -> Option<&DriverBranch> {
        let below = self.branches.iter().filter(|row| row.branch <= driver.major());
        below.max_by_key(|row| row.branch)
    }

    /// Returns the newest CUDA that a driver supports natively.
    pub fn max_cuda_of(&self, driver: &DriverVersion) -> Option<&CudaApiVersion> {
        self.branch_of(driver).map(|row| &row.max_cuda)
    }

    /// Returns the cuDNN build with this version for a CUDA major and a processor.
    pub fn cudnn_build(
        &self,
        version: &LibraryVersion,
        cuda_major: u8,
        machine: Machine,
    ) -> Option<&CudnnBuild> {
        let same = |row: &&CudnnBuild| row.machine == machine && row.cuda_major == cuda_major;
        self.cudnn.iter().filter(same).find(|row| row.version == *version)
    }

    /// Returns the NCCL build with this version for a CUDA major and a processor.
    pub fn nccl_build(
        &self,
        version: &LibraryVersion,
        cuda_major: u8,
        machine: Machine,
    ) -> Option<&NcclBuild> {
        let suffix = format!("-cu{cuda_major}");
        let same = |row: &&NcclBuild| row.machine == machine && row.package.ends_with(&suffix);
        self.nccl.iter().filter(same).find(|row| row.version == *version)
    }

    /// Returns the base systems with this Python, the default base first.
    pub fn bases_with_python(&self, python: PythonVersion) -> Vec<&Base> {
        let mut bases: Vec<_> = self.bases.iter().filter(|row| row.python == python).collect();
        bases.sort_by(|a, b| (b.default, &a.name).cmp(&(a.default, &b.name)));
        bases
    }

    /// Returns the base system with this name (`debian:12`).
    pub fn base(&self, name: &str) -> Option<&Base> {
        self.bases.iter().find(|row| row.name == name)
    }

    /// Returns the default base.
    pub fn default_base(&self) -> Option<&Base> {
        self.bases.iter().find(|row| row.default)
    }

    /// Returns a companion release.
    pub fn companion(&self, package: &str, version: &str) -> Option<&Companion> {
        self.companions.iter().find(|row| row.package == package && row.version == version)
    }

    /// Returns the companions of a variant (package and version) without a wheel for a Python.
    pub fn missing_companions<'a>(
        &self,
        variant: &'a Variant,
        python: PythonVersion,
    ) -> Vec<(&'a str, &'a str)> {
        let lacks = |package: &str, version: &str| {
            self.companion(package, version)
                .is_some_and(|row| !row.python.is_empty() && !row.python.contains(&python))
        };
        let all = variant.companions.iter().map(|(package, version)| (package.as_str(), version.as_str()));
        all.filter(|(package, version)| lacks(package, version)).collect()
    }

    /// Returns the compilers that a variant calls at run time on a Python.
    pub fn jit_of(&self, variant: &Variant, python: PythonVersion) -> Vec<&JitCompiler> {
        let triton = variant.triton_for(python);
        self.jit.iter().filter(|row| row.is_of(variant, triton)).collect()
    }

    /// Returns the developer stacks of a Python, one for each NumPy line.
    pub fn stacks_of(&self, python: PythonVersion) -> impl Iterator<Item = &DeveloperStack> {
        self.stacks.iter().filter(move |row| row.python == python)
    }

    /// Returns the NumPy limit of a variant, if known: its framework's, or that of the PyTorch it is built on.
    pub fn numpy_limit_of(&self, variant: &Variant) -> Option<&NumpyLimit> {
        let own = self.numpy_limit(&variant.framework, &variant.version);
        own.or_else(|| self.numpy_limit("pytorch", &variant.companions.get("torch")?.parse().ok()?))
    }

    /// Returns the NumPy limit of this framework version, if known.
    pub fn numpy_limit(&self, framework: &str, version: &FrameworkVersion) -> Option<&NumpyLimit> {
        let version = version.public();
        self.numpy_limits.iter().find(|row| {
            row.framework == framework
                && row.first.as_ref().is_none_or(|first| *first <= version)
                && row.last.as_ref().is_none_or(|last| version <= *last)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version<T: std::str::FromStr>(text: &str) -> T
    where
        T::Err: std::fmt::Debug,
    {
        text.parse().unwrap()
    }

    #[test]
    fn matrix_contains_every_row() {
        let matrix = Matrix::embedded();
        let pytorch = || matrix.variants.iter().filter(|row| row.framework == "pytorch");
        assert_eq!(pytorch().filter(|row| row.version >= version("1.12")).count(), 127);
        assert_eq!(pytorch().filter(|row| row.version < version("1.12")).count(), 20);
        assert_eq!(matrix.gpus.len(), 131);
        assert_eq!(matrix.companions.len(), 76);
        assert_eq!(matrix.rows().iter().filter(|row| row.source().is_empty()).count(), 0);
    }

    #[test]
    fn variants_are_found_by_prefix_cuda_and_machine() {
        let matrix = Matrix::embedded();
        let prefix = version("2.8");
        let mut query =
            VariantQuery { framework: "pytorch", version: Some(&prefix), ..VariantQuery::default() };
        assert_eq!(matrix.variants_of(&query).filter(|row| row.machine == Machine::X86_64).count(), 3);
        query.cuda = Some(version("cu128"));
        query.machine = Some(Machine::X86_64);
        let found: Vec<_> = matrix.variants_of(&query).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].toolkit, version("12.8.1"));
        query.cuda = Some(version("cu12"));
        assert_eq!(matrix.variants_of(&query).count(), 3);
        query.framework = "caffe";
        assert_eq!(matrix.variants_of(&query).count(), 0);
    }

    #[test]
    fn version_prefix_is_not_a_string_prefix() {
        let matrix = Matrix::embedded();
        let prefix = version("2.1");
        let query = VariantQuery { framework: "pytorch", version: Some(&prefix), ..VariantQuery::default() };
        assert!(matrix.variants_of(&query).all(|row| row.version < version("2.2")));
    }

    #[test]
    fn driver_maps_to_the_newest_branch_below() {
        let matrix = Matrix::embedded();
        let branch = |driver: &str| matrix.branch_of(&version(driver)).map(|row| row.branch);
        assert_eq!(branch("535.104.05"), Some(535));
        assert_eq!(branch("430.50"), Some(418));
        assert_eq!(branch("999.1"), Some(615));
        assert_eq!(branch("340.108"), None);
        assert_eq!(matrix.max_cuda_of(&version("570.86.15")), Some(&version("12.8")));
    }

    #[test]
    fn toolkits_compilers_floors_and_components_are_found() {
        let matrix = Matrix::embedded();
        let toolkit = matrix.toolkit(&version("12.8.1")).unwrap();
        assert_eq!(toolkit.min_driver, version("525.60.13"));
        assert!(matrix.toolkit(&version("12.7.0")).is_none());
        assert_eq!(matrix.compiler(&version("12.8.1")).unwrap().cuda, version("12.8"));
        assert_eq!(matrix.minor_floor(13).unwrap().linux, version("580.65.06"));
        assert!(matrix.minor_floor(10).is_none());
        assert_eq!(matrix.components_of(&version("12.5.1")).unwrap().versions["runtime"], "12.5.82");
        assert_eq!(matrix.forward_compat_of(&version("12.8")).unwrap().package, "cuda-compat-12-8");
    }

    #[test]
    fn libraries_are_found_by_version_and_major() {
        let matrix = Matrix::embedded();
        let x86 = Machine::X86_64;
        assert!(matrix.cudnn_build(&version("9.10.2.21"), 12, x86).is_some());
        assert!(matrix.cudnn_build(&version("9.10.2.21"), 10, x86).is_none());
        let plain = matrix.nccl_build(&version("2.25.1"), 12, x86).unwrap();
        let post = matrix.nccl_build(&version("2.25.1.post1"), 12, x86).unwrap();
        let blackwell = version("10.0");
        assert!(!plain.code.sass.contains(&blackwell) && post.code.sass.contains(&blackwell));
    }

    /// The `x86_64` builds were read for both processors, and a Jetson Thor was refused for every CUDA 13.
    #[test]
    fn libraries_of_one_release_differ_by_processor() {
        let matrix = Matrix::embedded();
        let has = |release: &str, machine, gpu: &str| {
            let build = matrix.cudnn_build(&version(release), 13, machine).unwrap();
            build.code.sass.contains(&version(gpu))
        };
        for release in ["9.12.0.46", "9.24.0.43"] {
            assert!(has(release, Machine::Aarch64, "11.0"), "{release}");
            assert!(!has(release, Machine::X86_64, "11.0"), "{release}");
        }
        let nccl = |machine| matrix.nccl_build(&version("2.26.2"), 12, machine).unwrap();
        assert!(nccl(Machine::Aarch64).code.sass.contains(&version("10.0")));
        assert!(!nccl(Machine::X86_64).code.sass.contains(&version("10.0")));
    }

    #[test]
    fn each_python_has_a_stable_base_or_none() {
        let matrix = Matrix::embedded();
        let bases = |python: &str| -> Vec<_> {
            matrix.bases_with_python(version(python)).iter().map(|row| row.name.as_str()).collect()
        };
        assert_eq!(bases("3.7"), [""; 0]);
        assert_eq!(bases("3.8"), ["ubuntu:20.04"]);
        assert_eq!(bases("3.9"), ["debian:11"]);
        assert_eq!(bases("3.10"), ["ubuntu:22.04"]);
        assert_eq!(bases("3.11"), ["debian:12"]);
        assert_eq!(bases("3.12"), ["ubuntu:24.04"]);
        assert_eq!(bases("3.13"), ["debian:13"]);
        assert_eq!(bases("3.14"), ["ubuntu:26.04"]);
        assert_eq!(bases("3.15"), [""; 0]);
        assert_eq!(matrix.default_base().unwrap().name, "debian:12");
        let built: Vec<_> =
            matrix.bases.iter().filter(|row| row.bootstrap).map(|row| row.name.as_str()).collect();
        assert_eq!(built, ["debian:11", "debian:12", "debian:13", "ubuntu:22.04", "ubuntu:24.04"]);
    }

    #[test]
    fn numpy_limits_split_at_torch_2_3() {
        let matrix = Matrix::embedded();
        let limit = |text: &str| matrix.numpy_limit("pytorch", &version(text)).unwrap().numpy.clone();
        assert_eq!(limit("2.2.2"), Some("<2".to_owned()));
        assert_eq!(limit("2.3.0"), None);
    }

    /// Seen on an H100: a kernel of numba-cuda 0.30.4 does not compile with NumPy 2.5.2.
    #[test]
    fn numba_cuda_has_a_numpy_limit_since_it_has_its_own_arrays() {
        let matrix = Matrix::embedded();
        let limit =
            |text: &str| matrix.numpy_limit("numba", &version(text)).and_then(|row| row.numpy.as_deref());
        assert_eq!([limit("0.30.4"), limit("0.21.1")], [Some("<2.5"); 2]);
        assert_eq!(limit("0.20.1"), None);
    }

    /// The METADATA of vLLM 0.2.1 and of PyTorch 2.0.1 have no bound: a lock had NumPy 2.4, with which PyTorch raises.
    #[test]
    fn vllm_has_the_numpy_limit_of_its_torch() {
        let matrix = Matrix::embedded();
        let of_torch = |wanted: &str| {
            let is_it = |row: &&Variant| row.companions.get("torch").is_some_and(|torch| torch == wanted);
            let row = matrix.variants.iter().filter(|row| row.framework == "vllm").find(is_it).unwrap();
            matrix.numpy_limit_of(row).unwrap().numpy.clone()
        };
        assert_eq!(of_torch("2.0.1"), Some("<2".to_owned()));
        assert_eq!(of_torch("2.3.0"), None);
    }

    #[test]
    fn products_are_known_with_and_without_rows() {
        let matrix = Matrix::embedded();
        assert_eq!(matrix.product("pytorch-cuda").unwrap().package.as_deref(), Some("torch"));
        assert!(matrix.product("jax-cuda").unwrap().rows);
        assert_eq!(matrix.product("torch"), matrix.product("pytorch-cuda"), "by the name people give it");
        assert!(matrix.product("pytroch").is_none());
    }
}
