//! The part of a stack that decides an image: what a lock's hash covers and what makes a lock match.
//!
//! Facts of the matrix about that choice (requirements, status, reasons) are left out: they may change while a lock matches.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::compat::tables::Channel;
use crate::model::stack::{Flavour, ForwardCompatChoice, Nvcc, PtxasChoice, SourceChoice, Stack};
use crate::model::target::{Target, TargetSource};
use crate::model::versions::{
    ComputeCapability, CudaVariant, FrameworkVersion, LibraryVersion, Machine, PythonVersion, ToolkitVersion,
};

/// The deciding fields of a [`Stack`], named as in the lock file.
#[derive(Serialize)]
pub(super) struct StackChoice<'a> {
    product: &'a str,
    framework: &'a str,
    package: &'a str,
    version: &'a FrameworkVersion,
    cuda: &'a CudaVariant,
    toolkit: &'a ToolkitVersion,
    cudnn: Option<&'a LibraryVersion>,
    nccl: Option<&'a LibraryVersion>,
    triton: Option<&'a str>,
    companions: &'a BTreeMap<String, String>,
    python: &'a PythonVersion,
    flavour: Flavour,
    machine: Machine,
    channel: Channel,
    base: &'a str,
    suite: &'a str,
    forward_compat: Option<ForwardCompatPackage<'a>>,
    install: &'a [String],
    parts: &'a BTreeMap<String, String>,
    nvcc: Option<&'a Nvcc>,
    ptxas: Option<&'a PtxasChoice>,
    source_build: Option<SourceInputs<'a>>,
    numpy: Option<&'a str>,
    target: &'a Target,
}

#[derive(Serialize)]
struct ForwardCompatPackage<'a> {
    package: &'a str,
}

/// The deciding fields of a [`SourceChoice`].
#[derive(Serialize)]
struct SourceInputs<'a> {
    archive: &'a str,
    sha256: Option<&'a str>,
    patches: &'a [String],
    arch: &'a [ComputeCapability],
    nvcc: &'a Nvcc,
    parts: &'a BTreeMap<String, String>,
}

impl<'a> StackChoice<'a> {
    pub(super) fn of(stack: &'a Stack) -> Self {
        let Stack {
            // Follows from the fields below.
            name: _,
            product,
            framework,
            package,
            version,
            cuda,
            toolkit,
            cudnn,
            nccl,
            triton,
            companions,
            python,
            glibc: _,
            flavour,
            machine,
            channel,
            status: _,
            experimental: _,
            local: _,
            licence: _,
            base,
            suite,
            requires: _,
            forward_compat,
            install,
            shared: _,
            parts,
            nvcc,
            ptxas,
            source_build,
            numpy,
            target,
            matrix: _,
            reasons: _,
        } = stack;
        Self {
            product,
            framework,
            package,
            version,
            cuda,
            toolkit,
            cudnn: cudnn.as_ref(),
            nccl: nccl.as_ref(),
            triton: triton.as_deref(),
            companions,
            python,
            flavour: *flavour,
            machine: *machine,
            channel: *channel,
            base,
            suite,
            forward_compat: forward_compat.as_ref().map(|choice| {
                let ForwardCompatChoice { package, source: _ } = choice;
                ForwardCompatPackage { package }
            }),
            install,
            parts,
            nvcc: nvcc.as_ref(),
            ptxas: ptxas.as_deref(),
            source_build: source_build.as_deref().map(SourceInputs::of),
            numpy: numpy.as_deref(),
            target,
        }
    }

    /// Whether the user named the target.
    pub(super) fn has_named_target(&self) -> bool {
        self.target.source == TargetSource::Named
    }

    /// The fields as texts, by their place in messages and their name there; the target and what follows from it on request.
    pub(super) fn facts(&self, with_target: bool) -> BTreeMap<(usize, &str), String> {
        let Self {
            product,
            framework,
            package,
            version,
            cuda,
            toolkit,
            cudnn,
            nccl,
            triton,
            companions,
            python,
            flavour,
            machine,
            channel,
            base,
            suite,
            forward_compat,
            install,
            parts,
            nvcc,
            ptxas,
            source_build,
            numpy,
            target,
        } = self;
        let mut facts = Facts::default();
        facts.add("product", product);
        facts.add("framework", framework);
        facts.add("package", package);
        facts.add(package, version);
        facts.add("CUDA variant", cuda);
        facts.add("CUDA toolkit", toolkit);
        facts.add_some("cuDNN", *cudnn);
        facts.add_some("NCCL", *nccl);
        facts.add_some("triton", *triton);
        facts.add_all(companions);
        facts.add("Python", python);
        facts.add_some("numpy requirement", *numpy);
        facts.add("flavour", flavour);
        facts.add("processor", machine);
        facts.add_some("channel", serde_json::to_value(channel).ok().as_ref().and_then(|text| text.as_str()));
        facts.add_some("install request", (!install.is_empty()).then(|| install.join(", ")));
        facts.add_source(source_build.as_ref(), with_target);
        facts.add("base", base);
        facts.add("suite of the base", suite);
        facts.add_nvcc(*nvcc, NVCC);
        facts.add_all(parts);
        facts.add_some("forward-compatibility package", forward_compat.as_ref().map(|choice| choice.package));
        // Without a named target it follows from the machine that made the lock.
        facts.add_some("ptxas for Triton", ptxas.filter(|_| with_target).map(ptxas_text));
        facts.add_some("target", with_target.then(|| target_text(target)));
        facts.found
    }
}

impl<'a> SourceInputs<'a> {
    fn of(choice: &'a SourceChoice) -> Self {
        let SourceChoice {
            archive,
            sha256,
            patches,
            arch,
            job_memory_gb: _,
            time: _,
            experimental: _,
            nvcc,
            parts,
        } = choice;
        Self { archive, sha256: sha256.as_deref(), patches, arch, nvcc, parts }
    }
}

/// Names of the fields of a compiler in messages.
const NVCC: [&str; 4] = ["source of nvcc", "archive component of nvcc", "gcc for nvcc", "repository of nvcc"];
const BUILD_NVCC: [&str; 4] = [
    "source of the building nvcc",
    "archive component of the building nvcc",
    "gcc for the building nvcc",
    "repository of the building nvcc",
];

#[derive(Default)]
struct Facts<'a> {
    place: usize,
    found: BTreeMap<(usize, &'a str), String>,
}

impl<'a> Facts<'a> {
    fn add(&mut self, name: &'a str, value: &dyn std::fmt::Display) {
        self.add_some(name, Some(value));
    }

    fn add_some(&mut self, name: &'a str, value: Option<impl std::fmt::Display>) {
        self.place += 1;
        if let Some(value) = value {
            self.found.insert((self.place, name), value.to_string());
        }
    }

    fn add_all(&mut self, values: &'a BTreeMap<String, String>) {
        self.place += 1;
        self.found.extend(values.iter().map(|(name, value)| ((self.place, name.as_str()), value.clone())));
    }

    fn add_nvcc(&mut self, nvcc: Option<&'a Nvcc>, names: [&'a str; 4]) {
        let Some(Nvcc { source, packages, component, gcc, repository }) = nvcc else {
            self.place += names.len();
            return;
        };
        let packages = packages.join(", ");
        let text = if packages.is_empty() { source.to_string() } else { format!("{source}: {packages}") };
        self.add(names[0], &text);
        self.add_some(names[1], component.as_ref());
        self.add(names[2], gcc);
        self.add_some(
            names[3],
            repository.as_ref().map(|repository| {
                let crate::model::stack::VendorRepository { path, key, fingerprint } = repository;
                format!("{path} ({key}, {fingerprint})")
            }),
        );
    }

    fn add_source(&mut self, source: Option<&SourceInputs<'a>>, with_target: bool) {
        let Some(SourceInputs { archive, sha256, patches, arch, nvcc, parts }) = source else {
            self.place += SOURCE_PLACES;
            return;
        };
        self.add("source archive", archive);
        self.add_some("SHA-256 of the source archive", *sha256);
        self.add("patches", &patches.join(", "));
        let arch = arch.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        // Without a named target they follow from the machine that made the lock.
        self.add_some("GPU targets of the source build", with_target.then_some(arch));
        self.add_nvcc(Some(nvcc), BUILD_NVCC);
        self.add_all(parts);
    }
}

/// The places that a source build takes.
const SOURCE_PLACES: usize = 5 + BUILD_NVCC.len();

fn ptxas_text(ptxas: &PtxasChoice) -> String {
    let PtxasChoice { cuda, parts, file, variable, gpus } = ptxas;
    let wheels =
        parts.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ");
    let gpus = gpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!("CUDA {cuda} ({wheels}), {file} as {} for {gpus}", variable.as_str())
}

fn target_text(target: &Target) -> String {
    let Target { source: _, driver, gpus, machine: _ } = target;
    let driver = driver.as_ref().map(|driver| format!("driver {driver}"));
    let gpus = gpus.iter().map(|gpu| match &gpu.name {
        Some(name) => format!("{name} ({})", gpu.compute_capability),
        None => gpu.compute_capability.to_string(),
    });
    let parts: Vec<_> = driver.into_iter().chain(gpus).collect();
    if parts.is_empty() { "any".to_owned() } else { parts.join(", ") }
}
