//! On which GPUs, and with which drivers, each published variant runs: the matrix as a table for people.

use std::collections::BTreeMap;

use super::candidate::ResolveRequest;
use super::listing::{ListEntry, published};
use super::options::ResolveOptions;
use super::rules;
use crate::matrix::Matrix;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::{ComputeCapability, DriverVersion, Machine};

/// The drivers with which a variant runs on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverRange {
    /// The oldest.
    pub oldest: DriverVersion,
    /// The last branch; `None`: the newest of the matrix, and no end is known.
    pub last_branch: Option<u32>,
}

/// A published variant with the GPUs it runs on.
#[derive(Debug, Clone, PartialEq)]
pub struct SupportEntry {
    /// The variant.
    pub entry: ListEntry,
    /// The processor.
    pub machine: Machine,
    /// The drivers for each compute capability it runs on.
    pub runs_on: BTreeMap<ComputeCapability, DriverRange>,
}

/// Returns every variant of a processor, newest first, with the GPUs and drivers it runs with, by the rules of `resolve`.
pub fn support_entries(matrix: &Matrix, machine: Machine, options: &ResolveOptions) -> Vec<SupportEntry> {
    let drivers = steps(matrix);
    let any = Target::any(machine);
    let mut known = BTreeMap::new();
    let mut all = Vec::new();
    for found in published(matrix, None, &any, options) {
        let variant = found.variant;
        // What the rules about the machine read of a variant.
        let code = (&variant.arch, &variant.ptx, &variant.ptx_cuda);
        let torch = variant.companions.get("torch");
        let alike = (code, &variant.toolkit, variant.cuda, &variant.cudnn, variant.channel, torch);
        let question = ResolveRequest { spec: &found.spec, target: &any, matrix, options };
        let jit = matrix.jit_of(variant, found.candidate(question).python);
        let key = format!("{alike:?} {jit:?}");
        let runs_on = known.entry(key).or_insert_with(|| {
            let capabilities = matrix.capabilities.iter().map(|row| row.cc);
            capabilities
                .filter_map(|capability| {
                    let runs = |driver: Option<&DriverVersion>| {
                        let target = Target {
                            source: TargetSource::Named,
                            driver: driver.cloned(),
                            gpus: vec![TargetGpu { name: None, compute_capability: capability }],
                            machine,
                        };
                        let question = ResolveRequest { spec: &found.spec, target: &target, matrix, options };
                        rules::judge_machine(&found.candidate(question)).is_empty()
                    };
                    // A binary without code for the GPU runs with no driver.
                    if !runs(None) {
                        return None;
                    }
                    Some((capability, range(&drivers, |driver| runs(Some(driver)))?))
                })
                .collect::<BTreeMap<_, _>>()
        });
        all.push(SupportEntry {
            entry: found.entry(matrix, &any, options),
            machine,
            runs_on: runs_on.clone(),
        });
    }
    all
}

/// Returns the drivers at which an answer can change, oldest first: the start of each branch, and each floor.
fn steps(matrix: &Matrix) -> Vec<DriverVersion> {
    let starts = matrix.branches.iter().filter_map(|row| format!("{}.0", row.branch).parse().ok());
    let floors = matrix.toolkits.iter().map(|row| row.min_driver.clone());
    let minor = matrix.minor_floors.iter().map(|row| row.linux.clone());
    let mut all: Vec<DriverVersion> = starts.chain(floors).chain(minor).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns the first drivers in a row that run; `None`: none does.
fn range(drivers: &[DriverVersion], runs: impl Fn(&DriverVersion) -> bool) -> Option<DriverRange> {
    let first = drivers.iter().position(&runs)?;
    let after = drivers[first..].iter().position(|driver| !runs(driver));
    let last_branch = after.map(|count| drivers[first + count - 1].major());
    Some(DriverRange { oldest: drivers[first].clone(), last_branch })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::entries;

    /// The twin of the shortcut: the whole resolution, asked at drivers between the steps too.
    #[test]
    fn ranges_agree_with_the_listing() {
        let (matrix, options) = (Matrix::embedded(), ResolveOptions::default());
        let all = support_entries(matrix, Machine::X86_64, &options);
        assert!(all.len() > 300, "{}", all.len());
        let mut agreed = [0, 0];
        for (gpu, driver) in [
            ("7.0", "535.104.05"),
            ("7.0", "580.65.06"),
            ("7.0", "595.45.04"),
            ("6.1", "450.80.02"),
            ("3.7", "470.82.01"),
            ("9.0", "525.60.13"),
            ("9.0", "570.124.06"),
            ("12.0", "570.26"),
            ("12.0", "560.35.03"),
            ("10.3", "580.65.06"),
            ("8.9", "545.23.08"),
        ] {
            let (gpu, driver): (ComputeCapability, DriverVersion) =
                (gpu.parse().expect("a capability"), driver.parse().expect("a driver"));
            let target = Target {
                source: TargetSource::Named,
                driver: Some(driver.clone()),
                gpus: vec![TargetGpu { name: None, compute_capability: gpu }],
                machine: Machine::X86_64,
            };
            let listed = entries(matrix, None, &target, &options);
            assert_eq!(listed.len(), all.len());
            for (one, other) in listed.iter().zip(&all) {
                assert_eq!(one.spec, other.entry.spec);
                let fits = other.runs_on.get(&gpu).is_some_and(|range| {
                    driver >= range.oldest && range.last_branch.is_none_or(|last| driver.major() <= last)
                });
                assert_eq!(
                    one.why_not.is_empty(),
                    fits,
                    "{} on {gpu} with {driver}: {:?}",
                    one.spec,
                    other.runs_on.get(&gpu)
                );
                agreed[usize::from(fits)] += 1;
            }
        }
        assert!(agreed.iter().all(|count| *count > 500), "both answers occur: {agreed:?}");
    }

    #[test]
    fn range_ends_before_the_first_driver_that_does_not_run() {
        let drivers: Vec<DriverVersion> = ["450.0", "470.0", "470.82", "525.0"]
            .iter()
            .map(|text| text.parse().expect("a driver"))
            .collect();
        let of =
            |oldest: u32, newest: u32| range(&drivers, |driver| (oldest..=newest).contains(&driver.major()));
        let found = of(470, 480).expect("some run");
        assert_eq!((found.oldest.to_string().as_str(), found.last_branch), ("470.0", Some(470)));
        assert_eq!(of(470, 999).expect("some run").last_branch, None);
        assert_eq!(of(999, 999), None);
    }
}
