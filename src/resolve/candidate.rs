//! What is asked, and one complete choice that the rules judge.

use super::options::ResolveOptions;
use super::refusal::Refused;
use super::rule::Rule;
use crate::compat::Matrix;
use crate::compat::tables::{Base, Channel, DriverBranch, ForwardCompat, Product, SourceBuild, Variant};
use crate::spec::{CudaWish, Spec};
use crate::stack::Flavour;
use crate::target::{Target, TargetGpu};
use crate::versions::{ComputeCapability, CudaApiVersion, DriverVersion, PythonVersion, ToolkitVersion};

/// Classes of GPU on which forward-compatibility packages are legal.
const DATA_CENTRE: [&str; 2] = ["datacenter", "superchip"];

/// Everything that is given: spec, target, matrix, options.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) target: &'a Target,
    pub(crate) matrix: &'a Matrix,
    pub(crate) options: &'a ResolveOptions,
}

/// A choice of binary, Python and base, to be judged.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) question: Question<'a>,
    pub(crate) product: &'a Product,
    pub(crate) variant: &'a Variant,
    pub(crate) python: PythonVersion,
    /// `None` where no base brings that Python.
    pub(crate) base: Option<&'a Base>,
}

impl<'a> Question<'a> {
    /// The branch of the target's driver.
    pub(crate) fn branch(&self) -> Option<&'a DriverBranch> {
        self.matrix.branch_of(self.target.driver.as_ref()?)
    }

    /// True if every GPU of the target is of a class on which forward compatibility is legal.
    ///
    /// A GPU known by its capability alone counts if all products with that capability do.
    pub(crate) fn all_data_centre(&self) -> bool {
        let legal = |class: &str| DATA_CENTRE.contains(&class);
        let product = |gpu: &TargetGpu| {
            let named = gpu.name.as_deref().and_then(|name| self.matrix.gpu_named(name).ok());
            named.and_then(|named| named.product)
        };
        let gpus = &self.target.gpus;
        !gpus.is_empty()
            && gpus.iter().all(|gpu| match (&gpu.name, product(gpu)) {
                (_, Some(row)) => legal(&row.class),
                (Some(_), None) => false,
                (None, None) => {
                    let same =
                        |row: &&crate::compat::tables::Gpu| row.compute_capability == gpu.compute_capability;
                    let mut rows = self.matrix.gpus.iter().filter(same).peekable();
                    rows.peek().is_some() && rows.all(|row| legal(&row.class))
                }
            })
    }
}

impl<'a> Candidate<'a> {
    /// The binary as a package is named: `torch 2.8.0+cu128`.
    pub(crate) fn label(&self) -> String {
        match &self.product.package {
            Some(package) => {
                let package = self.variant.package.as_ref().unwrap_or(package);
                format!("{package} {}+{}", self.variant.version, self.variant.cuda)
            }
            None => format!("CUDA {}", self.variant.version),
        }
    }

    /// True if something is compiled with this CUDA: the flavour is `devel`, or the framework is built from source.
    pub(crate) fn needs_nvcc(&self) -> bool {
        self.question.spec.flavour == Flavour::Devel || self.variant.channel == Channel::Source
    }

    /// The row that says how it is built, if nobody publishes it.
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

    /// The CUDA minor of the variant's toolkit: `12.8`.
    pub(crate) fn toolkit_minor(&self) -> String {
        format!("{}.{}", self.variant.toolkit.major(), self.variant.toolkit.minor())
    }

    /// A refusal that rests on the variant's own row.
    pub(crate) fn refuse(&self, rule: Rule, text: String) -> Refused {
        Refused::new(rule, text, &self.variant.source)
    }

    /// The lowest driver of the variant's toolkit by minor-version compatibility, and its source.
    pub(crate) fn driver_floor(&self) -> Option<(&'a DriverVersion, &'a str)> {
        let matrix = self.question.matrix;
        let own = matrix.toolkit(&self.variant.toolkit).map(|row| (&row.min_driver, row.source.as_str()));
        own.or_else(|| {
            let row = matrix.minor_floor(self.variant.cuda.major)?;
            Some((&row.linux, row.source.as_str()))
        })
    }

    /// True if the driver is known and older than the floor.
    pub(crate) fn driver_below_floor(&self) -> bool {
        let driver = self.question.target.driver.as_ref();
        match (driver, self.driver_floor()) {
            (Some(driver), Some((floor, _))) => driver < floor,
            _ => false,
        }
    }

    /// The forward-compatibility package that would make the variant run on this driver, whether admitted or not.
    pub(crate) fn forward_compat(&self) -> Option<&'a ForwardCompat> {
        let branch = self.question.branch()?;
        let row = self.question.matrix.forward_compat_of(&api_version(&self.variant.toolkit)?)?;
        let helps = row.base_branches.contains(&branch.branch) && self.driver_below_floor();
        (helps && self.question.all_data_centre()).then_some(row)
    }

    /// The package in use: it helps, it is legal, and the user admitted it.
    pub(crate) fn forward_compat_in_use(&self) -> Option<&'a ForwardCompat> {
        self.forward_compat().filter(|_| self.question.options.forward_compat)
    }

    /// True if the target's driver can translate PTX of the variant's toolkit; an unknown driver is given the benefit.
    pub(crate) fn driver_knows_ptx(&self) -> bool {
        if self.question.target.driver.is_none() || self.forward_compat_in_use().is_some() {
            return true;
        }
        let needed = api_version(&self.variant.toolkit);
        self.question.branch().zip(needed).is_some_and(|(branch, needed)| branch.max_cuda >= needed)
    }

    /// True if the binary's machine code runs on the GPU.
    pub(crate) fn has_machine_code_for(&self, gpu: ComputeCapability) -> bool {
        self.variant.arch.iter().flatten().any(|arch| arch.cubin_runs_on(gpu))
    }

    /// True if the binary's PTX can be translated for the GPU, by a driver that knows it.
    pub(crate) fn has_ptx_for(&self, gpu: ComputeCapability) -> bool {
        self.variant.ptx.iter().any(|ptx| *ptx <= gpu)
    }
}

/// The package that carries a product: `torch`.
pub(crate) fn package(product: &Product) -> &str {
    product.package.as_deref().unwrap_or(&product.framework)
}

/// The CUDA that names a row in a spec; the version of the toolkit alone says it already.
pub(crate) fn cuda_of(product: &Product, row: &Variant) -> Option<CudaWish> {
    product.package.as_ref().map(|_| row.cuda.into())
}

/// 12.8 of 12.8.1, as drivers count.
pub(crate) fn api_version(toolkit: &ToolkitVersion) -> Option<CudaApiVersion> {
    format!("{}.{}", toolkit.major(), toolkit.minor()).parse().ok()
}

/// The target's GPU as a text: its name and capability.
pub(crate) fn gpu_label(target: &Target, cc: ComputeCapability) -> String {
    let named = target.gpus.iter().find(|gpu| gpu.compute_capability == cc && gpu.name.is_some());
    match named.and_then(|gpu| gpu.name.as_deref()) {
        Some(name) => format!("{name} ({cc})"),
        None => format!("{cc}"),
    }
}
