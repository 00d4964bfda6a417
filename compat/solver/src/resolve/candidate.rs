//! The request, and one complete choice that the rules check.

use std::collections::BTreeSet;

use super::options::ResolveOptions;
use super::refusal::RuleViolation;
use super::rule::Rule;
use crate::matrix::tables::{Base, Channel, DriverBranch, ForwardCompat, Product, SourceBuild, Variant};
use crate::matrix::{DATA_CENTRE, Matrix};
use crate::spec::{CudaRequest, Flavour, Spec};
use crate::target::{Target, TargetGpu};
use crate::versions::{ComputeCapability, CudaApiVersion, DriverVersion, PythonVersion, ToolkitVersion};

/// The input: spec, target, matrix, options.
#[derive(Clone, Copy)]
pub(crate) struct ResolveRequest<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) target: &'a Target,
    pub(crate) matrix: &'a Matrix,
    pub(crate) options: &'a ResolveOptions,
}

/// A choice of binary, Python and base.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) question: ResolveRequest<'a>,
    pub(crate) product: &'a Product,
    pub(crate) variant: &'a Variant,
    pub(crate) python: PythonVersion,
    /// `None` if no base has that Python.
    pub(crate) base: Option<&'a Base>,
}

impl<'a> ResolveRequest<'a> {
    /// Returns the branch of the target's driver.
    pub(crate) fn branch(&self) -> Option<&'a DriverBranch> {
        self.matrix.branch_of(self.target.driver.as_ref()?)
    }

    /// Whether every GPU of the target is of a class that supports forward compatibility.
    pub(crate) fn all_data_centre(&self) -> bool {
        !self.target.gpus.is_empty() && self.unlike_data_centre().is_empty()
    }

    /// Returns the GPUs of the target that do not support forward compatibility.
    ///
    /// A GPU whose name fits several products counts as supported if all of them are; one without a name, if all of its capability are.
    pub(crate) fn unlike_data_centre(&self) -> Vec<&'a TargetGpu> {
        let of_name = |gpu: &TargetGpu| gpu.name.as_deref().map(|name| self.matrix.gpu_names().classes(name));
        let of_capability = |gpu: &TargetGpu| -> BTreeSet<&str> {
            let rows = self.matrix.gpus.iter().filter(|row| row.compute_capability == gpu.compute_capability);
            rows.map(|row| row.class.as_str()).collect()
        };
        let is_supported = |gpu: &TargetGpu| {
            let classes = of_name(gpu).unwrap_or_else(|| of_capability(gpu));
            !classes.is_empty() && classes.iter().all(|class| DATA_CENTRE.contains(class))
        };
        self.target.gpus.iter().filter(|gpu| !is_supported(gpu)).collect()
    }
}

impl<'a> Candidate<'a> {
    /// Returns package and version of the binary: `torch 2.8.0+cu128`.
    pub(crate) fn label(&self) -> String {
        match &self.product.package {
            Some(package) => {
                let package = self.variant.package.as_ref().unwrap_or(package);
                format!("{package} {}+{}", self.variant.version, self.variant.cuda)
            }
            None => format!("CUDA {}", self.variant.version),
        }
    }

    /// Whether nvcc is required: the flavour is `devel`, or the framework is built from source.
    pub(crate) fn needs_nvcc(&self) -> bool {
        self.question.spec.flavour == Flavour::Devel || self.variant.channel == Channel::Source
    }

    /// Returns the row of its source build, if it is unpublished.
    pub(crate) fn source_build(&self) -> Option<&'a SourceBuild> {
        let variant = self.variant;
        let same = |row: &&SourceBuild| {
            row.framework == variant.framework
                && row.version == variant.version
                && row.cuda == variant.cuda
                && row.machine == variant.machine
        };
        if variant.channel != Channel::Source {
            return None;
        }
        self.question.matrix.source_builds.iter().find(same)
    }

    /// Returns the CUDA minor of the variant's toolkit: `12.8`.
    pub(crate) fn toolkit_minor(&self) -> String {
        format!("{}.{}", self.variant.toolkit.major(), self.variant.toolkit.minor())
    }

    /// Returns a violation whose source is the variant's own row.
    pub(crate) fn refuse(&self, rule: Rule, text: String) -> RuleViolation {
        RuleViolation::new(rule, text, &self.variant.source)
    }

    /// Returns the lowest driver of the variant's toolkit by minor-version compatibility, and its source.
    pub(crate) fn driver_floor(&self) -> Option<(&'a DriverVersion, &'a str)> {
        let matrix = self.question.matrix;
        let own = matrix.toolkit(&self.variant.toolkit).map(|row| (&row.min_driver, row.source.as_str()));
        own.or_else(|| {
            let row = matrix.minor_floor(self.variant.cuda.major)?;
            Some((&row.linux, row.source.as_str()))
        })
    }

    /// Whether the driver is known and older than the lowest supported one.
    pub(crate) fn driver_below_floor(&self) -> bool {
        let driver = self.question.target.driver.as_ref();
        match (driver, self.driver_floor()) {
            (Some(driver), Some((floor, _))) => driver < floor,
            _ => false,
        }
    }

    /// Returns the forward-compatibility package of the variant's CUDA, whether or not it is supported.
    pub(crate) fn forward_compat_package(&self) -> Option<&'a ForwardCompat> {
        self.question.matrix.forward_compat_of(&api_version(&self.variant.toolkit)?)
    }

    /// Returns the forward-compatibility package that would make the variant run on this driver, allowed or not.
    pub(crate) fn forward_compat(&self) -> Option<&'a ForwardCompat> {
        let branch = self.question.branch()?;
        let row = self.forward_compat_package()?;
        let helps = row.base_branches.contains(&branch.branch) && self.driver_below_floor();
        (helps && self.question.all_data_centre()).then_some(row)
    }

    /// Returns the package in use: it helps, it is supported, and the user allowed it.
    pub(crate) fn forward_compat_in_use(&self) -> Option<&'a ForwardCompat> {
        self.forward_compat().filter(|_| self.question.options.forward_compat)
    }

    /// Returns the CUDA of the compiler that made the binary's PTX: 12.8.
    pub(crate) fn ptx_cuda(&self) -> Option<CudaApiVersion> {
        self.variant.ptx_cuda.clone().or_else(|| api_version(&self.variant.toolkit))
    }

    /// Returns the lowest driver with the CUDA of the binary's PTX, if that is another than the toolkit's.
    pub(crate) fn ptx_driver(&self) -> Option<DriverVersion> {
        let cuda = self.variant.ptx_cuda.as_ref()?;
        let rows = self.question.matrix.toolkits.iter();
        let rows = rows.filter(|row| api_version(&row.cuda).as_ref() == Some(cuda));
        rows.filter_map(|row| row.native_driver.clone()).min()
    }

    /// Returns the lowest driver that is known to compile the binary's PTX.
    pub(crate) fn compiling_driver(&self) -> Option<DriverVersion> {
        let native = || self.question.matrix.toolkit(&self.variant.toolkit)?.native_driver.clone();
        self.ptx_driver().or_else(native)
    }

    /// Returns the lowest driver on which the binary runs whatever the GPU.
    pub(crate) fn lowest_driver(&self) -> Option<DriverVersion> {
        let compiling = self.has_only_ptx().then(|| self.compiling_driver()).flatten();
        compiling.or_else(|| self.driver_floor().map(|(floor, _)| floor.clone()))
    }

    /// Whether the target's driver can compile the binary's PTX; true for an unknown driver.
    pub(crate) fn driver_knows_ptx(&self) -> bool {
        self.driver_compiles(self.ptx_cuda())
    }

    /// Whether it can compile PTX of the variant's toolkit, such as that of cuDNN.
    pub(crate) fn driver_knows_toolkit(&self) -> bool {
        self.driver_compiles(api_version(&self.variant.toolkit))
    }

    fn driver_compiles(&self, cuda: Option<CudaApiVersion>) -> bool {
        if self.question.target.driver.is_none() || self.forward_compat_in_use().is_some() {
            return true;
        }
        self.question.branch().zip(cuda).is_some_and(|(branch, cuda)| branch.max_cuda >= cuda)
    }

    /// Whether the binary's machine code runs on the GPU.
    pub(crate) fn has_machine_code_for(&self, gpu: ComputeCapability) -> bool {
        self.variant.arch.iter().flatten().any(|arch| arch.cubin_runs_on(gpu))
    }

    /// Whether the binary's PTX can be compiled for the GPU, by a driver that supports it.
    pub(crate) fn has_ptx_for(&self, gpu: ComputeCapability) -> bool {
        self.variant.ptx.iter().any(|ptx| *ptx <= gpu)
    }

    /// Returns the GPU targets of a source build: for each GPU of the target the newest of its row that runs on it; all of
    /// the row without a target GPU.
    pub(crate) fn compiled_for(&self) -> Vec<ComputeCapability> {
        let all = self.variant.arch.clone().unwrap_or_default();
        let named = self.question.target.capabilities();
        if named.is_empty() {
            return all;
        }
        let newest =
            |gpu: ComputeCapability| all.iter().filter(|code| code.cubin_runs_on(gpu)).max().copied();
        let chosen: BTreeSet<_> = named.into_iter().filter_map(newest).collect();
        chosen.into_iter().collect()
    }

    /// Whether the binary has PTX and no machine code: the driver compiles it on every GPU.
    pub(crate) fn has_only_ptx(&self) -> bool {
        self.variant.arch.as_ref().is_some_and(Vec::is_empty) && !self.variant.ptx.is_empty()
    }

    /// Whether some GPU of the target runs the binary through PTX only.
    pub(crate) fn needs_ptx(&self) -> bool {
        let lacks_code = |gpu: ComputeCapability| !self.has_machine_code_for(gpu);
        self.has_only_ptx()
            || (self.variant.arch.is_some()
                && self.question.target.capabilities().into_iter().any(lacks_code))
    }
}

/// Returns the package of a product: `torch`.
pub(crate) fn package(product: &Product) -> &str {
    product.package.as_deref().unwrap_or(&product.framework)
}

/// Returns the CUDA of a row in a spec; `None` for the toolkit alone, whose version is the CUDA.
pub(crate) fn cuda_of(product: &Product, row: &Variant) -> Option<CudaRequest> {
    product.package.as_ref().map(|_| row.cuda.into())
}

/// Returns 12.8 of 12.8.1, as drivers report it.
pub(crate) fn api_version(toolkit: &ToolkitVersion) -> Option<CudaApiVersion> {
    format!("{}.{}", toolkit.major(), toolkit.minor()).parse().ok()
}

/// Returns name and capability of the target's GPU.
pub(crate) fn gpu_label(target: &Target, cc: ComputeCapability) -> String {
    let named = target.gpus.iter().find(|gpu| gpu.compute_capability == cc && gpu.name.is_some());
    match named.and_then(|gpu| gpu.name.as_deref()) {
        Some(name) => format!("{name} ({cc})"),
        None => format!("{cc}"),
    }
}
