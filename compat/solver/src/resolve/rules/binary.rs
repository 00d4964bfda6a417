//! Rules about the GPU code inside the binaries: the framework's and cuDNN's.

use std::fmt::Write as _;

use crate::matrix::tables::Channel;
use crate::resolve::candidate::{Candidate, gpu_label, package};
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;
use crate::versions::{ComputeCapability, FrameworkVersion};

/// Rejects a binary without machine code or usable PTX for a GPU of the target, and one that calls such a PyTorch.
///
/// Unread GPU code is bounded by what its compiler has targets for; the choice itself avoids such rows.
pub(super) fn gpu_not_in_binary(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    code_lacks_gpu(candidate).or_else(|| {
        let below = torch_below(candidate)?;
        let mut refused = code_lacks_gpu(&below)?;
        refused.text = format!("{} calls {}: {}", candidate.label(), below.label(), refused.text);
        Some(refused)
    })
}

/// Returns the build of PyTorch that the choice is built on: of its own CUDA, else of its CUDA's major if there is one only.
fn torch_below<'a>(candidate: &Candidate<'a>) -> Option<Candidate<'a>> {
    let variant = candidate.variant;
    let version = variant.companions.get("torch")?;
    let matrix = candidate.question.matrix;
    let product = matrix.products.iter().find(|product| product.package.as_deref() == Some("torch"))?;
    let version: FrameworkVersion = version.parse().ok()?;
    let mut rows = matrix.variants.iter().filter(|row| {
        let same = row.version == version && row.machine == variant.machine;
        same && row.cuda.major == variant.cuda.major && row.framework == product.framework
    });
    let first = rows.next()?;
    let mut others = rows.peekable();
    let alone = others.peek().is_none();
    let own = std::iter::once(first).chain(others).find(|row| row.cuda == variant.cuda);
    let variant = own.or_else(|| alone.then_some(first))?;
    Some(Candidate { product, variant, ..*candidate })
}

/// Rejects code that was not read if its compiler has no target whose machine code a GPU of the target runs.
fn compiler_lacks_gpu(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let compiler = candidate.question.matrix.compiler(&candidate.variant.toolkit)?;
    let target = candidate.question.target;
    let runs = |gpu: ComputeCapability| compiler.targets.iter().any(|code| code.cubin_runs_on(gpu));
    let without: Vec<_> = target.capabilities().into_iter().filter(|gpu| !runs(*gpu)).collect();
    if without.is_empty() {
        return None;
    }
    let names: Vec<_> = without.iter().map(|gpu| gpu_label(target, *gpu)).collect();
    let mut text = format!(
        "the GPU code of {} was not read, and the compiler of its CUDA {} has no target for {}: it has {}",
        candidate.label(),
        candidate.toolkit_minor(),
        names.join(", "),
        listed(&compiler.targets)
    );
    if let Some(span) = builds_with_code(candidate, &without) {
        write!(text, "; {} builds with code for this GPU: {span}", package(candidate.product))
            .expect("a String takes all");
    }
    Some(RuleViolation::new(Rule::GpuNotInBinary, text, &compiler.source))
}

fn code_lacks_gpu(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let variant = candidate.variant;
    let Some(arch) = &variant.arch else { return compiler_lacks_gpu(candidate) };
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
            (true, _) => " and PTX that is not known to run, which counts for no GPU".to_owned(),
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
    let build = candidate.question.matrix.cudnn_build(version, major, candidate.variant.machine)?;
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
