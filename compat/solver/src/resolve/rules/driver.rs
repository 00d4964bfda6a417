//! Rules between the driver, the CUDA of the binary and the GPU.

use crate::matrix::Matrix;
use crate::matrix::tables::{Capability, DriverBranch};
use crate::resolve::candidate::{Candidate, gpu_label};
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;
use crate::versions::{ComputeCapability, DriverVersion};

/// Rejects a driver older than the variant's CUDA requires, unless an allowed forward-compatibility package helps.
pub(super) fn driver_too_old(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let driver = candidate.question.target.driver.as_ref()?;
    let (floor, source) = candidate.driver_floor()?;
    if driver >= floor || candidate.forward_compat_in_use().is_some() {
        return ptx_too_new(candidate, driver);
    }
    let cuda = candidate.variant.cuda;
    let mut text = format!(
        "{} requires driver >= {floor} (CUDA {}.x); the target has {driver}",
        candidate.label(),
        cuda.major
    );
    text.push_str(&forward_compat_text(candidate));
    Some(RuleViolation::new(Rule::DriverTooOld, text, source))
}

/// Rejects a driver that cannot compile the PTX of a binary without machine code. The rule about the binary's code says so for each GPU,
/// where GPUs are named.
fn ptx_too_new(candidate: &Candidate<'_>, driver: &DriverVersion) -> Option<RuleViolation> {
    let has_gpus = !candidate.question.target.gpus.is_empty();
    if has_gpus || !candidate.has_only_ptx() || candidate.driver_knows_ptx() {
        return None;
    }
    let branch = candidate.question.branch();
    let own = branch.map_or_else(String::new, |branch| format!(", whose newest CUDA is {}", branch.max_cuda));
    let cuda = candidate.ptx_cuda()?;
    let text = format!(
        "{} has no machine code, and the driver compiles its PTX of CUDA {cuda}; the target has {driver}{own}",
        candidate.label()
    );
    Some(candidate.refuse(Rule::DriverTooOld, text))
}

/// Returns whether a forward-compatibility package would help, and if not, why.
fn forward_compat_text(candidate: &Candidate<'_>) -> String {
    let question = &candidate.question;
    let driver = question.target.driver.as_ref();
    let branch = question.branch().map(|branch| branch.branch).or(driver.map(DriverVersion::major));
    let branch = branch.map_or_else(String::new, |branch| format!(" R{branch}"));
    let minor = candidate.toolkit_minor();
    if let Some(row) = candidate.forward_compat() {
        return format!(
            "; `--forward-compat` would add package {}, supported on this GPU and branch{branch}",
            row.package
        );
    }
    let Some(row) = candidate.forward_compat_package() else {
        return format!("; CUDA {minor} has no forward-compatibility package");
    };
    let on_branch = question.branch().is_some_and(|branch| row.base_branches.contains(&branch.branch));
    if !on_branch {
        let list: Vec<_> = row.base_branches.iter().map(|branch| format!("R{branch}")).collect();
        let list = if list.is_empty() { "no branch".to_owned() } else { list.join(", ") };
        return format!("; package {} is not supported on branch{branch}, only on {list}", row.package);
    }
    if question.target.gpus.is_empty() {
        return format!("; on data-centre GPUs `--forward-compat` would add package {}", row.package);
    }
    let gpus: Vec<_> = question
        .unlike_data_centre()
        .into_iter()
        .map(|gpu| gpu.name.clone().unwrap_or_else(|| gpu.compute_capability.to_string()))
        .collect();
    format!(
        "; package {} does not help on {}: forward compatibility is limited to data-centre GPUs and NGC-ready RTX cards \
         (CUDA error 804 elsewhere), so update the driver",
        row.package,
        gpus.join(", ")
    )
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

/// Returns the first and the last driver branch for a GPU; the last is `None` where drivers still support it.
pub(crate) fn branches_of(matrix: &Matrix, gpu: ComputeCapability) -> Option<(u32, Option<u32>)> {
    let row = matrix.capability(gpu)?;
    let knows =
        |branch: &&DriverBranch| gpu >= branch.oldest_gpu && branch_knows(branch, row, &matrix.capabilities);
    let first = matrix.branches.iter().filter(knows).map(|branch| branch.branch).min()?;
    Some((first, row.last_driver_branch))
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
