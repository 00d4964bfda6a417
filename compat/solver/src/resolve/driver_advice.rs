//! Which driver to install where the target's is why a request is refused: the least branch that opens it.

use super::branch_advice::{BranchAdvice, DriverAdvice, EndOfLife};
use super::candidate::ResolveRequest;
use super::choose::solve;
use super::refusal::RuleViolation;
use super::rule::Rule;
use crate::matrix::Matrix;
use crate::matrix::tables::DriverBranch;
use crate::target::Target;
use crate::versions::DriverVersion;

/// Returns the driver to install, if another driver opens a request that was refused.
pub(super) fn driver_advice(
    question: &ResolveRequest<'_>,
    refusals: &[RuleViolation],
) -> Option<DriverAdvice> {
    let current = question.target.driver.as_ref()?;
    let of_driver = |rule: Rule| {
        matches!(rule, Rule::DriverTooOld | Rule::DriverDropsGpu | Rule::GpuNotInBinary | Rule::CudnnDropsGpu)
    };
    if !refusals.iter().any(|refused| of_driver(refused.rule)) {
        return None;
    }
    let without = Target { driver: None, ..question.target.clone() };
    if solve(&ResolveRequest { target: &without, ..*question }).is_err() {
        return None;
    }
    let drivers = known_drivers(question.matrix);
    let opens = |driver: &DriverVersion| {
        let target = Target { driver: Some(driver.clone()), ..question.target.clone() };
        solve(&ResolveRequest { target: &target, ..*question }).is_ok()
    };
    let newer = drivers.iter().filter(|driver| *driver > current);
    let older = drivers.iter().rev().filter(|driver| *driver < current);
    let mut found = newer.chain(older).filter(|driver| opens(driver));
    let branch = found.next()?.major();
    let lowest = drivers.iter().find(|driver| driver.major() == branch && opens(driver))?;
    let least = advice(question.matrix, lowest)?;
    let supported = least
        .past_end
        .then(|| found.filter_map(|driver| advice(question.matrix, driver)).find(|one| !one.past_end))
        .flatten();
    Some(DriverAdvice { least, supported, last_branch: last_branch(question) })
}

/// Returns the drivers at which an answer can change, oldest first: those of toolkits, each floor, and the start of branches
/// of which no driver is known.
fn known_drivers(matrix: &Matrix) -> Vec<DriverVersion> {
    let native = matrix.toolkits.iter().filter_map(|row| row.native_driver.clone());
    let floors = matrix.toolkits.iter().map(|row| row.min_driver.clone());
    let minor = matrix.minor_floors.iter().map(|row| row.linux.clone());
    let mut all: Vec<DriverVersion> = native.chain(floors).chain(minor).collect();
    for row in &matrix.branches {
        if all.iter().all(|driver| driver.major() != row.branch) {
            all.extend(start_of(row.branch));
        }
    }
    all.sort();
    all.dedup();
    all
}

/// Returns the newest driver of a branch at which an answer changes: what a branch alone means, whose drivers are those of today.
pub fn newest_of_branch(matrix: &Matrix, branch: u32) -> Option<DriverVersion> {
    known_drivers(matrix).into_iter().rfind(|driver| driver.major() == branch)
}

fn start_of(branch: u32) -> Option<DriverVersion> {
    format!("{branch}.0").parse().ok()
}

fn advice(matrix: &Matrix, driver: &DriverVersion) -> Option<BranchAdvice> {
    let row = matrix.branches.iter().find(|row| row.branch == driver.major())?;
    let end_of_life = end_of(row);
    let today = matrix.edition.split('.').next().unwrap_or_default();
    let past = |end: &EndOfLife| end.date.as_str() < today.get(..end.date.len()).unwrap_or(today);
    Some(BranchAdvice {
        branch: row.branch,
        lowest: (start_of(row.branch).as_ref() != Some(driver)).then(|| driver.clone()),
        kind: row.kind.clone(),
        past_end: end_of_life.as_ref().is_some_and(past),
        end_of_life,
        max_cuda: row.max_cuda.clone(),
        source: row.source.clone(),
    })
}

fn end_of(row: &DriverBranch) -> Option<EndOfLife> {
    let (date, by) = row.end_of_life.as_ref().zip(row.end_of_life_by.as_ref())?;
    Some(EndOfLife { date: date.clone(), by: by.clone() })
}

/// Returns the last branch for an architecture of the target that drivers have dropped.
fn last_branch(question: &ResolveRequest<'_>) -> Option<String> {
    let rows = question.target.capabilities().into_iter().filter_map(|gpu| question.matrix.capability(gpu));
    let ended = rows.filter_map(|row| Some((row.last_driver_branch?, &row.arch)));
    let (last, arch) = ended.min()?;
    Some(format!("R{last} is the last branch for {arch}"))
}

#[cfg(test)]
mod tests {
    use crate::matrix::Matrix;
    use crate::resolve::{ResolveOptions, Unsatisfiable, refusal_text, resolve};
    use crate::target::{Target, TargetGpu, TargetSource};
    use crate::versions::Machine;

    fn refused(spec: &str, gpu: &str, driver: &str) -> (Unsatisfiable, Target) {
        let target = Target {
            source: TargetSource::Named,
            driver: Some(driver.parse().expect("a driver")),
            gpus: vec![TargetGpu { name: None, compute_capability: gpu.parse().expect("a capability") }],
            machine: Machine::X86_64,
        };
        let spec = spec.parse().expect("a spec");
        (
            resolve(&spec, &target, Matrix::embedded(), &ResolveOptions::default()).expect_err("refused"),
            target,
        )
    }

    #[test]
    fn old_driver_gets_the_least_branch_and_one_that_is_supported() {
        let (refusal, target) = refused("pytorch-cuda:2.8-cu128", "8.0", "470.82.01");
        let advice = refusal.driver.as_ref().expect("advice");
        assert_eq!((advice.least.branch, advice.least.past_end), (525, true));
        assert_eq!(advice.least.lowest.as_ref().expect("known").to_string(), "525.60.13");
        let supported = advice.supported.as_ref().expect("one of today");
        assert_eq!((supported.branch, supported.kind.as_deref()), (580, Some("LTSB")));
        assert_eq!(supported.end_of_life.as_ref().expect("known").date, "2028-08");
        let text = refusal_text(&refusal, &target);
        assert!(text.contains("525.60.13 or newer") && text.contains("R580 (long-term support"), "{text}");
    }

    #[test]
    fn cuda_13_gets_r580() {
        let (refusal, _) = refused("pytorch-cuda:2.13-cu130", "8.0", "570.124.06");
        let advice = refusal.driver.expect("advice");
        assert_eq!((advice.least.branch, advice.least.past_end), (580, false));
        assert_eq!((advice.supported, advice.last_branch), (None, None));
    }

    #[test]
    fn driver_that_dropped_the_gpu_gets_the_last_branch_for_it() {
        let (refusal, _) = refused("pytorch-cuda:2.8-cu126", "6.1", "590.48.01");
        let advice = refusal.driver.expect("advice");
        assert_eq!(advice.least.branch, 580);
        assert_eq!(advice.least.lowest.expect("known").to_string(), "580.65.06");
        assert_eq!(advice.last_branch.as_deref(), Some("R580 is the last branch for Pascal"));
    }

    #[test]
    fn refusal_that_no_driver_mends_gets_none() {
        let (refusal, _) = refused("pytorch-cuda:2.6-cu124", "12.0", "580.65.06");
        assert_eq!(refusal.driver, None);
    }
}
