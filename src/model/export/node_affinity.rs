//! The nodes of a Kubernetes cluster that an image runs on, as node affinity over the labels of NVIDIA's GPU feature discovery.
//!
//! Pure. The answers are the resolver's: a GPU and a driver that it refuses for the stack are on no node that fits.
//! Labels: <https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md>.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model::compat::Matrix;
use crate::model::resolve::{ResolveOptions, image_runs};
use crate::model::spec::Spec;
use crate::model::stack::Stack;
use crate::model::target::{Target, TargetGpu, TargetSource};
use crate::model::versions::{ComputeCapability, DriverVersion};

const CAPABILITY_MAJOR: &str = "nvidia.com/gpu.compute.major";
const CAPABILITY_MINOR: &str = "nvidia.com/gpu.compute.minor";
const DRIVER_MAJOR: &str = "nvidia.com/cuda.driver-version.major";
const DRIVER_MINOR: &str = "nvidia.com/cuda.driver-version.minor";
const DRIVER_REVISION: &str = "nvidia.com/cuda.driver-version.revision";
const ARCHITECTURE: &str = "kubernetes.io/arch";

/// What a label of a node must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// One of these.
    In(&'static str, Vec<String>),
    /// A number above this.
    Above(&'static str, u32),
    /// A number below this.
    Below(&'static str, u32),
}

/// All of these hold.
pub type Term = Vec<Requirement>;

/// Drivers from one on, up to the branch where the resolver refuses them again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Drivers {
    from: [u32; 3],
    below: Option<u32>,
}

/// The alternatives of which a node has to fulfil one; empty: no GPU that the matrix knows runs the stack.
pub fn node_terms(stack: &Stack, matrix: &Matrix) -> Vec<Term> {
    let Ok(spec) = stack.name.parse() else { return Vec::new() };
    let mut groups: BTreeMap<(u8, Drivers), Vec<ComputeCapability>> = BTreeMap::new();
    for row in &matrix.capabilities {
        for drivers in drivers_of((stack, &spec), row.cc, matrix) {
            groups.entry((row.cc.major, drivers)).or_default().push(row.cc);
        }
    }
    let machine = stack.machine.platform().rsplit('/').next().unwrap_or_default().to_owned();
    let mut terms = Vec::new();
    for ((major, drivers), capabilities) in groups {
        let minors = capabilities.iter().map(|gpu| gpu.minor.to_string()).collect();
        let gpu = vec![
            Requirement::In(ARCHITECTURE, vec![machine.clone()]),
            Requirement::In(CAPABILITY_MAJOR, vec![major.to_string()]),
            Requirement::In(CAPABILITY_MINOR, minors),
        ];
        terms.extend(drivers.terms().into_iter().map(|driver| [gpu.clone(), driver].concat()));
    }
    terms
}

/// The drivers with which the stack runs on a GPU.
fn drivers_of((stack, spec): (&Stack, &Spec), gpu: ComputeCapability, matrix: &Matrix) -> Vec<Drivers> {
    let options =
        ResolveOptions { forward_compat: stack.forward_compat.is_some(), ..ResolveOptions::default() };
    let runs = |driver: &DriverVersion| {
        let target = Target {
            source: TargetSource::Named,
            driver: Some(driver.clone()),
            gpus: vec![TargetGpu { name: None, compute_capability: gpu }],
            machine: stack.machine,
        };
        image_runs(spec, stack, &target, matrix, &options)
    };
    // Between these the answer does not change: a rule names a driver that a CUDA requires, or a branch.
    let mut edges: Vec<DriverVersion> = [&stack.requires.driver, &stack.requires.driver_native]
        .into_iter()
        .flatten()
        .cloned()
        .chain(matrix.branches.iter().filter_map(|row| format!("{}.0", row.branch).parse().ok()))
        .collect();
    edges.sort();
    edges.dedup();
    let mut found: Vec<Drivers> = Vec::new();
    let mut is_open = false;
    for edge in &edges {
        match (runs(edge), is_open) {
            (true, false) => found.push(Drivers { from: numbers(edge), below: None }),
            (false, true) => {
                if let Some(last) = found.last_mut() {
                    last.below = Some(edge.major());
                }
            }
            _ => continue,
        }
        is_open = !is_open;
    }
    found
}

fn numbers(driver: &DriverVersion) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (to, from) in numbers.iter_mut().zip(driver.parts()) {
        *to = *from;
    }
    numbers
}

impl Drivers {
    /// A version is three labels, so that `at least 570.124.06` is three alternatives.
    fn terms(&self) -> Vec<Term> {
        let [major, minor, revision] = self.from;
        let below = self.below.map(|below| Requirement::Below(DRIVER_MAJOR, below));
        let same = |name, number: u32| {
            [Requirement::Above(name, number.saturating_sub(1)), Requirement::Below(name, number + 1)]
        };
        // Zero is above nothing that a label can say.
        let at_least = |name, number: u32| (number > 0).then(|| Requirement::Above(name, number - 1));
        let newer: Vec<Requirement> = match (minor, revision) {
            (0, 0) => at_least(DRIVER_MAJOR, major).into_iter().collect(),
            _ => vec![Requirement::Above(DRIVER_MAJOR, major)],
        };
        let mut terms = vec![newer.into_iter().chain(below).collect::<Term>()];
        if (minor, revision) == (0, 0) {
            return terms;
        }
        let branch = same(DRIVER_MAJOR, major);
        if revision == 0 {
            terms.push(branch.into_iter().chain(at_least(DRIVER_MINOR, minor)).collect());
            return terms;
        }
        terms.push(branch.iter().cloned().chain([Requirement::Above(DRIVER_MINOR, minor)]).collect());
        let exact = branch.into_iter().chain(same(DRIVER_MINOR, minor));
        terms.push(exact.chain(at_least(DRIVER_REVISION, revision)).collect());
        terms
    }
}

/// The terms as the value of `nodeAffinity`.
pub fn node_affinity(terms: &[Term]) -> Value {
    let expression = |requirement: &Requirement| match requirement {
        Requirement::In(key, values) => json!({ "key": key, "operator": "In", "values": values }),
        Requirement::Above(key, number) => {
            json!({ "key": key, "operator": "Gt", "values": [number.to_string()] })
        }
        Requirement::Below(key, number) => {
            json!({ "key": key, "operator": "Lt", "values": [number.to_string()] })
        }
    };
    let terms: Vec<Value> = terms
        .iter()
        .map(|term| json!({ "matchExpressions": term.iter().map(expression).collect::<Vec<_>>() }))
        .collect();
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resolve::resolve;
    use crate::model::versions::Machine;

    /// What a scheduler decides: a label that is missing or no number fits nothing.
    fn fits(terms: &[Term], labels: &BTreeMap<&str, String>) -> bool {
        let number = |key: &str| labels.get(key).and_then(|text| text.parse::<i64>().ok());
        let holds = |requirement: &Requirement| match requirement {
            Requirement::In(key, values) => labels.get(key).is_some_and(|label| values.contains(label)),
            Requirement::Above(key, least) => number(key).is_some_and(|found| found > i64::from(*least)),
            Requirement::Below(key, most) => number(key).is_some_and(|found| found < i64::from(*most)),
        };
        terms.iter().any(|term| term.iter().all(holds))
    }

    fn labels(machine: Machine, gpu: ComputeCapability, driver: &str) -> BTreeMap<&'static str, String> {
        let mut parts = driver.split('.').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        let (major, minor, revision) = (next(), next(), next());
        BTreeMap::from([
            (ARCHITECTURE, machine.platform().trim_start_matches("linux/").to_owned()),
            (CAPABILITY_MAJOR, gpu.major.to_string()),
            (CAPABILITY_MINOR, gpu.minor.to_string()),
            (DRIVER_MAJOR, major),
            (DRIVER_MINOR, minor),
            (DRIVER_REVISION, revision),
        ])
    }

    /// Drivers of many branches, and those right at a floor.
    const DRIVERS: [&str; 14] = [
        "450.80.02",
        "470.256.02",
        "520.61.05",
        "525.60.12",
        "525.60.13",
        "535.183.06",
        "550.54.14",
        "550.54.15",
        "560.35.05",
        "570.124.05",
        "570.124.06",
        "580.65.05",
        "580.95.05",
        "595.10.01",
    ];

    fn stack_of(spec: &str, machine: Machine) -> Option<Stack> {
        let target = Target::any(machine);
        resolve(
            &spec.parse().expect(spec),
            &target,
            crate::model::compat::embedded(),
            &ResolveOptions::default(),
        )
        .ok()
    }

    fn agrees(stack: &Stack) {
        let matrix = crate::model::compat::embedded();
        let terms = node_terms(stack, matrix);
        let spec: Spec = stack.name.parse().expect("its own name");
        for row in &matrix.capabilities {
            for driver in DRIVERS {
                let target = Target {
                    source: TargetSource::Named,
                    driver: driver.parse().ok(),
                    gpus: vec![TargetGpu { name: None, compute_capability: row.cc }],
                    machine: stack.machine,
                };
                let resolved = image_runs(&spec, stack, &target, matrix, &ResolveOptions::default());
                let fitted = fits(&terms, &labels(stack.machine, row.cc, driver));
                assert_eq!(fitted, resolved, "{} on {} with {driver}: {terms:#?}", stack.name, row.cc);
            }
        }
    }

    #[test]
    fn nodes_fit_exactly_where_the_stack_resolves() {
        for (spec, machine) in [
            ("pytorch-cuda:2.8-cu126", Machine::X86_64),
            ("pytorch-cuda:2.8-cu128", Machine::X86_64),
            ("pytorch-cuda:2.9-cu130", Machine::Aarch64),
            ("jax-cuda:0.7", Machine::X86_64),
            ("tensorflow-cuda:2.19", Machine::X86_64),
        ] {
            agrees(&stack_of(spec, machine).unwrap_or_else(|| panic!("{spec} resolves")));
        }
    }

    /// The stack is refused there without the ptxas that an image for a GB10 has.
    #[test]
    fn image_without_the_ptxas_for_a_gpu_fits_no_node_with_it() {
        let gb10 = "12.1".parse().expect("a capability");
        let on_gb10 = |stack: &Stack| {
            let terms = node_terms(stack, crate::model::compat::embedded());
            fits(&terms, &labels(stack.machine, gb10, "580.95.05"))
        };
        let plain = stack_of("pytorch-cuda:2.9.1-cu130", Machine::Aarch64).expect("resolves");
        assert!(!on_gb10(&plain));
        let gpus = vec![TargetGpu { name: None, compute_capability: gb10 }];
        let target = Target { source: TargetSource::Named, gpus, ..Target::any(Machine::Aarch64) };
        let spec = plain.name.parse().expect("its own name");
        let made = resolve(&spec, &target, crate::model::compat::embedded(), &ResolveOptions::default())
            .expect("resolves");
        assert!(on_gb10(&made));
    }

    #[test]
    #[ignore = "nightly: every row of the matrix, minutes"]
    fn nodes_fit_exactly_where_every_row_resolves() {
        for row in &crate::model::compat::embedded().variants {
            let product = crate::model::compat::embedded()
                .products
                .iter()
                .find(|product| product.framework == row.framework);
            let Some(product) = product else { continue };
            let spec = format!("{}:{}-{}", product.name, row.version, row.cuda);
            if let Ok(spec) = spec.parse::<Spec>()
                && let Some(stack) = stack_of(&spec.to_string(), row.machine)
            {
                agrees(&stack);
            }
        }
    }

    #[test]
    fn version_becomes_alternatives_of_its_numbers() {
        let drivers = Drivers { from: [570, 124, 6], below: None };
        let is_at_least = |driver: &str| {
            let gpu = "9.0".parse().expect("one");
            fits(&drivers.terms(), &labels(Machine::X86_64, gpu, driver))
        };
        for (driver, fits) in [
            ("570.124.06", true),
            ("570.124.05", false),
            ("570.125", true),
            ("570.124", false),
            ("570.86.10", false),
            ("571.1.1", true),
            ("580.65.06", true),
            ("565.999.99", false),
            ("", false),
        ] {
            assert_eq!(is_at_least(driver), fits, "{driver}");
        }
        let until = Drivers { from: [470, 0, 0], below: Some(590) };
        let gpu = "6.0".parse().expect("one");
        for (driver, wanted) in
            [("470.256.02", true), ("580.95.05", true), ("590.44.01", false), ("460.1.1", false)]
        {
            assert_eq!(fits(&until.terms(), &labels(Machine::X86_64, gpu, driver)), wanted, "{driver}");
        }
    }
}
