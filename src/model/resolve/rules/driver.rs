//! Rules between the driver, the CUDA of the binary and the GPU.

use std::fmt::Write as _;

use crate::model::compat::tables::{Capability, DriverBranch};
use crate::model::resolve::candidate::{Candidate, gpu_label};
use crate::model::resolve::refusal::RuleViolation;
use crate::model::resolve::rule::Rule;
use crate::model::versions::ComputeCapability;

/// Rejects a driver older than the variant's CUDA requires, unless an allowed forward-compatibility package helps.
pub(super) fn driver_too_old(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let driver = candidate.question.target.driver.as_ref()?;
    let (floor, source) = candidate.driver_floor()?;
    if driver >= floor || candidate.forward_compat_in_use().is_some() {
        return None;
    }
    let cuda = candidate.variant.cuda;
    let mut text = format!(
        "{} requires driver >= {floor} (CUDA {}.x); the target has {driver}",
        candidate.label(),
        cuda.major
    );
    if let Some(row) = candidate.forward_compat() {
        write!(
            text,
            "; `--forward-compat` would add package {}, supported on this GPU and branch R{}",
            row.package,
            candidate.question.branch().map_or(driver.major(), |branch| branch.branch)
        )
        .expect("a String takes all");
    } else if candidate.question.options.forward_compat {
        text.push_str("; no forward-compatibility package is supported on this driver branch and GPU");
    }
    Some(RuleViolation::new(Rule::DriverTooOld, text, source))
}

/// Rejects a driver whose branch no longer supports the GPU, or does not support it yet.
pub(super) fn driver_drops_gpu(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let question = &candidate.question;
    let driver = question.target.driver.as_ref()?;
    let branch = question.branch()?;
    let mut texts = Vec::new();
    let mut source = None;
    for gpu in question.target.capabilities() {
        let Some(row) = question.matrix.capability(gpu) else { continue };
        let name = gpu_label(question.target, gpu);
        if let Some(last) = row.last_driver_branch.filter(|last| driver.major() > *last) {
            texts.push(format!(
                "driver {driver} no longer supports {name}: the last branch for {} is R{last}; use a driver of R{last} \
                 or older",
                row.arch
            ));
            source.get_or_insert(&row.source);
        } else if !branch_knows(branch, row, &question.matrix.capabilities) {
            texts.push(format!(
                "driver {driver} does not support {name}: branch R{} supports {}",
                branch.branch, branch.architectures
            ));
            source.get_or_insert(&branch.source);
        } else if gpu < branch.oldest_gpu {
            texts.push(format!(
                "driver {driver} no longer supports {name}: branch R{} starts at {}",
                branch.branch, branch.oldest_gpu
            ));
            source.get_or_insert(&branch.source);
        }
    }
    Some(RuleViolation::new(Rule::DriverDropsGpu, texts.join("; "), source?))
}

/// Whether the branch's newest architecture is at least as new as the GPU's.
///
/// The table lists a branch's architectures by name (`Maxwell-Hopper`), ordered by the oldest capability of each. An
/// unknown name is ignored.
fn branch_knows(branch: &DriverBranch, gpu: &Capability, capabilities: &[Capability]) -> bool {
    let rank = |arch: &str| -> Option<ComputeCapability> {
        capabilities.iter().filter(|row| row.arch == arch).map(|row| row.cc).min()
    };
    let named = branch.architectures.split('(').next().unwrap_or_default();
    let newest = named.rsplit(['-', '–']).next().unwrap_or_default().trim();
    // `Blackwell Ultra` is part of Blackwell in the table.
    if gpu.arch.starts_with(newest) {
        return true;
    }
    match (rank(newest), rank(&gpu.arch)) {
        (Some(newest), Some(own)) => own <= newest,
        _ => true,
    }
}
