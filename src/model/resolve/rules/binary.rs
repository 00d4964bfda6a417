//! Rules about the GPU code inside the binaries: the framework's and cuDNN's.

use std::fmt::Write as _;

use crate::model::compat::tables::Channel;
use crate::model::resolve::candidate::{Candidate, gpu_label, package};
use crate::model::resolve::refusal::RuleViolation;
use crate::model::resolve::rule::Rule;
use crate::model::versions::ComputeCapability;

/// Rejects a binary without machine code or usable PTX for a GPU of the target.
///
/// A binary whose GPU code is unknown passes; the choice itself avoids such rows.
pub(super) fn gpu_not_in_binary(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let variant = candidate.variant;
    let arch = variant.arch.as_ref()?;
    let target = candidate.question.target;
    let runs = |gpu: ComputeCapability| {
        candidate.has_machine_code_for(gpu) || (candidate.has_ptx_for(gpu) && candidate.driver_knows_ptx())
    };
    let without: Vec<_> = target.capabilities().into_iter().filter(|gpu| !runs(*gpu)).collect();
    if without.is_empty() {
        return None;
    }
    let names: Vec<_> = without.iter().map(|gpu| gpu_label(target, *gpu)).collect();
    let (what, has) = match variant.channel {
        Channel::Source => (", built from source, cannot have code for", "it can be compiled for"),
        Channel::Default | Channel::Framework => (" has no code for", "it contains"),
    };
    let mut text = format!(
        "{}{what} {}: {has} {}{}",
        candidate.label(),
        names.join(", "),
        listed(arch),
        match (variant.unknown_ptx, variant.ptx.is_empty()) {
            (true, _) => " and PTX of an unknown CUDA, which counts for no GPU".to_owned(),
            (false, true) => " and no PTX".to_owned(),
            (false, false) => format!(" and PTX for {}", listed(&variant.ptx)),
        }
    );
    let cuda = candidate.ptx_cuda().filter(|_| without.iter().any(|gpu| candidate.has_ptx_for(*gpu)));
    if let Some(cuda) = cuda {
        write!(text, "; its PTX is of CUDA {cuda}, which is newer than this driver supports")
            .expect("a String takes all");
    }
    if let Some(span) = builds_with_code(candidate, &without) {
        write!(text, "; {} builds with code for this GPU: {span}", package(candidate.product))
            .expect("a String takes all");
    }
    Some(candidate.refuse(Rule::GpuNotInBinary, text))
}

/// Returns the first and last release with machine code for these GPUs.
fn builds_with_code(candidate: &Candidate<'_>, gpus: &[ComputeCapability]) -> Option<String> {
    let serves = |gpu: &ComputeCapability, arch: &[ComputeCapability]| {
        arch.iter().any(|code| code.cubin_runs_on(*gpu))
    };
    let rows = candidate.question.matrix.variants.iter().filter(|row| {
        row.framework == candidate.variant.framework
            && row.machine == candidate.variant.machine
            && row.verified
            && row.arch.as_ref().is_some_and(|arch| gpus.iter().all(|gpu| serves(gpu, arch)))
    });
    let mut versions: Vec<_> = rows.map(|row| (&row.version, row.cuda)).collect();
    versions.sort_unstable();
    let (first, last) = (versions.first()?, versions.last()?);
    if first == last {
        return Some(format!("{}+{} only", first.0, first.1));
    }
    Some(format!("{}+{} to {}+{}", first.0, first.1, last.0, last.1))
}

/// Rejects a cuDNN without code for a GPU of the target.
pub(super) fn cudnn_drops_gpu(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let target = candidate.question.target;
    let version = candidate.variant.cudnn.as_ref()?;
    let major = candidate.variant.cuda.major;
    let build = candidate.question.matrix.cudnn_build(version, major)?;
    let ptx = |gpu: ComputeCapability| {
        build.code.ptx.iter().any(|ptx| *ptx <= gpu) && candidate.driver_knows_toolkit()
    };
    let runs =
        |gpu: ComputeCapability| build.code.sass.iter().any(|code| code.cubin_runs_on(gpu)) || ptx(gpu);
    let without: Vec<_> = target.capabilities().into_iter().filter(|gpu| !runs(*gpu)).collect();
    if without.is_empty() {
        return None;
    }
    let names: Vec<_> = without.iter().map(|gpu| gpu_label(target, *gpu)).collect();
    let text = format!(
        "cuDNN {version} for CUDA {major} (used by {}) has no code for {}: it contains {}",
        candidate.label(),
        names.join(", "),
        listed(&build.code.sass)
    );
    Some(RuleViolation::new(Rule::CudnnDropsGpu, text, &build.source))
}

/// `sm_70, sm_75`.
fn listed(capabilities: &[ComputeCapability]) -> String {
    if capabilities.is_empty() {
        return "no machine code".to_owned();
    }
    capabilities.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
