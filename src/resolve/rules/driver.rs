//! Rules between the driver, the CUDA of the binary and the GPU.

use std::fmt::Write as _;

use crate::compat::tables::{Capability, DriverBranch};
use crate::resolve::candidate::{Candidate, gpu_label};
use crate::resolve::refusal::Refused;
use crate::resolve::rule::Rule;
use crate::versions::ComputeCapability;

/// The driver is below the floor of the variant's CUDA, and no admitted forward-compatibility package lifts it.
pub(super) fn driver_too_old(candidate: &Candidate<'_>) -> Option<Refused> {
    let driver = candidate.question.target.driver.as_ref()?;
    let (floor, source) = candidate.driver_floor()?;
    if driver >= floor || candidate.forward_compat_in_use().is_some() {
        return None;
    }
    let cuda = candidate.variant.cuda;
    let mut text = format!(
        "{} needs a driver >= {floor} (CUDA {}.x); the target's is {driver}",
        candidate.label(),
        cuda.major
    );
    if let Some(row) = candidate.forward_compat() {
        write!(
            text,
            "; `--forward-compat` would admit the package {}, legal on this GPU and branch R{}",
            row.package,
            candidate.question.branch().map_or(driver.major(), |branch| branch.branch)
        )
        .expect("a String takes all");
    } else if candidate.question.options.forward_compat {
        text.push_str("; no forward-compatibility package is legal on this driver branch and GPU");
    }
    Some(Refused::new(Rule::DriverTooOld, text, source))
}

/// The driver's branch no longer drives the GPU, or is older than the GPU.
pub(super) fn driver_drops_gpu(candidate: &Candidate<'_>) -> Option<Refused> {
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
                "driver {driver} no longer drives {name}: the last branch for {} is R{last}; a driver of R{last} \
                 or older is needed",
                row.arch
            ));
            source.get_or_insert(&row.source);
        } else if !branch_knows(branch, row, &question.matrix.capabilities) {
            texts.push(format!(
                "driver {driver} does not know {name}: branch R{} drives {}",
                branch.branch, branch.architectures
            ));
            source.get_or_insert(&branch.source);
        } else if gpu < branch.oldest_gpu {
            texts.push(format!(
                "driver {driver} no longer drives {name}: branch R{} begins with {}",
                branch.branch, branch.oldest_gpu
            ));
            source.get_or_insert(&branch.source);
        }
    }
    Some(Refused::new(Rule::DriverDropsGpu, texts.join("; "), source?))
}

/// True unless the branch's newest architecture is an older one than the GPU's.
///
/// The table names a branch's architectures by words (`Maxwell-Hopper`); the order of the words is that of the
/// oldest capability of each. A word that no capability bears decides nothing.
fn branch_knows(branch: &DriverBranch, gpu: &Capability, capabilities: &[Capability]) -> bool {
    let rank = |arch: &str| -> Option<ComputeCapability> {
        capabilities.iter().filter(|row| row.arch == arch).map(|row| row.cc).min()
    };
    let named = branch.architectures.split('(').next().unwrap_or_default();
    let newest = named.rsplit(['-', '–']).next().unwrap_or_default().trim();
    // `Blackwell Ultra` is a member of what the table calls Blackwell.
    if gpu.arch.starts_with(newest) {
        return true;
    }
    match (rank(newest), rank(&gpu.arch)) {
        (Some(newest), Some(own)) => own <= newest,
        _ => true,
    }
}
