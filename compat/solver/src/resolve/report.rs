//! `plan --json`: the result as one documented object. Unknown facts are null.

use serde::Serialize;

use super::branch_advice::DriverAdvice;
use super::companion_choice::CompanionChoice;
use super::device_code::DeviceCodeShare;

use super::refusal::{Alternative, RuleViolation, Unsatisfiable};
use super::source_report::SourceReport;
use crate::matrix::tables::Channel;
use crate::spec::{Flavour, Spec};
use crate::stack::{Reason, Stack};
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::{
    ComputeCapability, CudaVariant, DriverVersion, FrameworkVersion, GlibcVersion, LibraryVersion,
    PythonVersion, ToolkitVersion,
};

/// Version of the object's shape.
const SCHEMA: u32 = 1;

/// The object that `plan --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// Version of this shape.
    pub schema: u32,
    /// The requested spec, as given.
    pub spec: String,
    /// `ok`, `unknown` or `impossible`.
    pub verdict: Verdict,
    /// The canonical name.
    pub name: Option<String>,
    /// runtime or devel.
    pub flavour: Flavour,
    /// `linux/amd64`.
    pub platform: &'static str,
    /// Where the binary is published.
    pub channel: Option<Channel>,
    /// Whether the variant is experimental upstream.
    pub experimental: bool,
    /// Whether the variant is a row of this machine's own file, not of the matrix.
    pub local: bool,
    /// The licence of the product, if it restricts whom the image may be passed on to.
    pub licence: Option<String>,
    /// The resolved versions.
    pub stack: Option<StackReport>,
    /// The requirements of the result.
    pub requires: Option<RequiresReport>,
    /// The target machine.
    pub target: TargetReport,
    /// The base system.
    pub base: Option<BaseReport>,
    /// The reason for each value.
    pub reasons: Vec<Reason>,
    /// What is not known about the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Every violated rule.
    pub refusals: Vec<RuleViolation>,
    /// The driver that would open a refused request, if the target's is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_advice: Option<DriverAdvice>,
    /// The closest specs that resolve; for a source build, the closest published ones.
    pub alternatives: Vec<AlternativeReport>,
    /// The source build, in the source channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_build: Option<SourceReport>,
    /// The release of each requested package that is coupled to torch or CUDA.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionChoice>,
    /// Requested packages of which the matrix knows nothing: the package index decides at `lock`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_checked: Vec<String>,
    /// The part of the image's device code that the target runs, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_code: Option<DeviceCodeShare>,
}

impl PlanReport {
    /// Adds the chosen releases of coupled packages.
    #[must_use]
    pub fn with_companions(mut self, companions: Vec<CompanionChoice>) -> Self {
        self.companions = companions;
        self
    }

    /// Adds the requested packages that only the package index knows.
    #[must_use]
    pub fn with_not_checked(mut self, packages: Vec<String>) -> Self {
        self.not_checked = packages;
        self
    }

    /// Adds the part of the device code that the target runs.
    #[must_use]
    pub fn with_device_code(mut self, share: Option<DeviceCodeShare>) -> Self {
        self.device_code = share;
        self
    }

    /// Adds the warning that the base was not read: whether it fits is not known.
    #[must_use]
    pub fn with_unread_base(mut self, warning: Option<String>) -> Self {
        if warning.is_some() {
            self.verdict = Verdict::Unknown;
        }
        self.warnings.extend(warning);
        self
    }

    /// Adds the source build and the published alternatives to the report.
    #[must_use]
    pub fn with_source(mut self, source: SourceReport, nearest: &[Alternative]) -> Self {
        self.source_build = Some(source);
        self.alternatives = nearest.iter().map(offer).collect();
        self
    }
}

/// The result in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The spec resolves.
    Ok,
    /// The spec resolves, but the GPU code of the binary or the base was not read: whether it runs is not known.
    Unknown,
    /// The spec violates rules.
    Impossible,
}

/// `stack` of the object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StackReport {
    /// The framework.
    pub framework: FrameworkReport,
    /// The CUDA.
    pub cuda: CudaReport,
    /// cuDNN of the binary.
    pub cudnn: Option<LibraryVersion>,
    /// NCCL of the binary.
    pub nccl: Option<LibraryVersion>,
    /// Triton pinned.
    pub triton: Option<String>,
    /// The companion, if it has a wheel.
    pub torchvision: Option<String>,
    /// The companion, if it has a wheel.
    pub torchaudio: Option<String>,
    /// Python of the image.
    pub python: PythonVersion,
    /// The oldest glibc that can load the binary.
    pub glibc: GlibcVersion,
}

/// `stack.framework`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrameworkReport {
    /// `pytorch`.
    pub name: String,
    /// `2.8.0`.
    pub version: FrameworkVersion,
}

/// `stack.cuda`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CudaReport {
    /// `cu128`.
    pub variant: CudaVariant,
    /// `12.8.1`.
    pub toolkit: ToolkitVersion,
}

/// `requires` of the object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequiresReport {
    /// `>=525.60.13`.
    pub driver: Option<String>,
    /// `>=570.124.06`.
    pub driver_native: Option<String>,
    /// GPU targets with machine code; null: not known.
    pub gpu: Option<Vec<ComputeCapability>>,
    /// GPU targets with PTX.
    pub ptx: Vec<ComputeCapability>,
}

/// `target` of the object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetReport {
    /// detected, named or any.
    pub source: TargetSource,
    /// The driver, if known.
    pub driver: Option<DriverVersion>,
    /// The GPUs, if any are known.
    pub gpus: Vec<TargetGpu>,
}

/// `base` of the object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BaseReport {
    /// auto, image or bootstrap.
    pub provider: String,
    /// `debian:12`.
    pub name: String,
    /// Its digest; null in a plan, which asks no registry.
    pub digest: Option<String>,
}

/// One of `alternatives`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AlternativeReport {
    /// The spec, pinned.
    pub spec: String,
    /// The command to run.
    pub command: String,
}

/// Returns the report of a result. `typed` is the spec as given, `provider` the setting for bases.
pub fn plan_report(
    typed: &str,
    spec: &Spec,
    target: &Target,
    provider: &str,
    answer: &Result<Stack, Unsatisfiable>,
) -> PlanReport {
    let mut report = PlanReport {
        schema: SCHEMA,
        spec: typed.to_owned(),
        verdict: Verdict::Impossible,
        name: None,
        flavour: spec.flavour,
        platform: target.machine.platform(),
        channel: None,
        experimental: false,
        local: false,
        licence: None,
        stack: None,
        requires: None,
        target: TargetReport {
            source: target.source,
            driver: target.driver.clone(),
            gpus: target.gpus.clone(),
        },
        base: None,
        reasons: Vec::new(),
        warnings: Vec::new(),
        refusals: Vec::new(),
        driver_advice: None,
        alternatives: Vec::new(),
        source_build: None,
        companions: Vec::new(),
        not_checked: Vec::new(),
        device_code: None,
    };
    match answer {
        Ok(stack) => accept(&mut report, stack, provider),
        Err(refusal) => refuse(&mut report, refusal),
    }
    report
}

fn accept(report: &mut PlanReport, stack: &Stack, provider: &str) {
    report.verdict = if stack.gpu_code_is_known() { Verdict::Ok } else { Verdict::Unknown };
    report.warnings = unknown_code(stack).into_iter().collect();
    report.name = Some(stack.name.clone());
    report.channel = Some(stack.channel);
    report.experimental = stack.experimental;
    report.local = stack.local;
    report.licence.clone_from(&stack.licence);
    report.reasons.clone_from(&stack.reasons);
    report.stack = Some(StackReport {
        framework: FrameworkReport { name: stack.framework.clone(), version: stack.version.clone() },
        cuda: CudaReport { variant: stack.cuda, toolkit: stack.toolkit.clone() },
        cudnn: stack.cudnn.clone(),
        nccl: stack.nccl.clone(),
        triton: stack.triton.clone(),
        torchvision: stack.companions.get("torchvision").cloned(),
        torchaudio: stack.companions.get("torchaudio").cloned(),
        python: stack.python,
        glibc: stack.glibc.clone(),
    });
    let at_least = |driver: &DriverVersion| format!(">={driver}");
    report.requires = Some(RequiresReport {
        driver: stack.requires.driver.as_ref().map(at_least),
        driver_native: stack.requires.driver_native.as_ref().map(at_least),
        gpu: stack.gpu_code_is_known().then(|| stack.requires.gpu.clone()),
        ptx: stack.requires.ptx.clone(),
    });
    report.base = Some(BaseReport { provider: provider.to_owned(), name: stack.base.clone(), digest: None });
}

/// Returns the warning about a stack whose GPU code was not read: it was named, and may not run.
pub fn unknown_code(stack: &Stack) -> Option<String> {
    let gpus: Vec<_> = stack.target.capabilities().iter().map(ToString::to_string).collect();
    let gpus = if gpus.is_empty() { "a GPU".to_owned() } else { gpus.join(", ") };
    let text = || {
        format!(
            "the GPU code of {} {}+{} was not read: whether it runs on {gpus} is not known",
            stack.package, stack.version, stack.cuda
        )
    };
    (!stack.gpu_code_is_known()).then(text)
}

fn refuse(report: &mut PlanReport, refusal: &Unsatisfiable) {
    report.refusals.clone_from(&refusal.refusals);
    report.driver_advice = refusal.driver.as_deref().cloned();
    report.alternatives = refusal.alternatives.iter().map(offer).collect();
}

fn offer(alternative: &Alternative) -> AlternativeReport {
    AlternativeReport { spec: alternative.spec.to_string(), command: alternative.command.clone() }
}
