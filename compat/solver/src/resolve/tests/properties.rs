//! What holds for every spec, target and order of rows.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::select;

use super::naive;
use crate::matrix::Matrix;
use crate::matrix::tables::Variant;
use crate::resolve::candidate::ResolveRequest;
use crate::resolve::choose::solve;
use crate::resolve::{ResolveOptions, RuleViolation, resolve};
use crate::spec::{Flavour, Spec};
use crate::stack::Stack;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::{ComputeCapability, CudaVariant, DriverVersion, Machine};

/// The embedded matrix with every table in another order.
static TURNED: LazyLock<Matrix> = LazyLock::new(|| {
    let mut turned = Matrix::embedded().clone();
    turned.variants.reverse();
    turned.branches.reverse();
    turned.forward_compat.reverse();
    turned.toolkits.reverse();
    turned.compilers.reverse();
    turned.capabilities.reverse();
    turned.gpus.reverse();
    turned.cudnn.reverse();
    turned.companions.reverse();
    turned.bases.reverse();
    turned.stacks.reverse();
    turned.products.reverse();
    turned.known_versions.reverse();
    turned.numpy_limits.reverse();
    turned.jit.reverse();
    let third = turned.variants.len() / 3;
    turned.variants.rotate_left(third);
    turned.bases.rotate_left(2);
    turned
});

/// Whether the version of a spec is one of a row, and not the beginning of one.
fn names_a_release(spec: &Spec, matrix: &Matrix) -> bool {
    let product = matrix.product(&spec.name);
    let mut rows = matrix
        .variants
        .iter()
        .filter(|row| product.is_some_and(|product| product.framework == row.framework));
    rows.any(|row| spec.version.as_ref().is_some_and(|asked| asked.parts() == row.version.parts()))
}

/// A product with rows, and a version of it, a beginning of one, or one that does not exist.
fn any_product() -> impl Strategy<Value = (String, Option<String>)> {
    let matrix = Matrix::embedded();
    let products: Vec<_> =
        matrix.products.iter().map(|product| (&product.name, &product.framework)).collect();
    select(products).prop_flat_map(|(name, framework)| {
        let rows = Matrix::embedded().variants.iter().filter(|row| row.framework == *framework);
        let versions = rows.flat_map(|row| {
            [row.version.to_string(), format!("{}.{}", row.version.major(), row.version.minor())]
        });
        let all: Vec<String> = versions.chain(["1", "2", "2.88", "1.9"].map(str::to_owned)).collect();
        (Just(name.clone()), proptest::option::of(select(all)))
    })
}

fn any_cuda() -> impl Strategy<Value = Option<CudaVariant>> {
    let mut all: Vec<_> = Matrix::embedded().variants.iter().map(|row| row.cuda).collect();
    all.sort_unstable();
    all.dedup();
    all.extend([CudaVariant { major: 12, minor: None }, CudaVariant { major: 12, minor: Some(7) }]);
    proptest::option::of(select(all))
}

prop_compose! {
    fn any_spec()(
        (name, version) in any_product(),
        cuda in any_cuda(),
        python in proptest::option::weighted(0.3, select(vec!["3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.15"])),
        devel in proptest::bool::weighted(0.2),
    ) -> Spec {
        Spec {
            version: version.map(|text| text.parse().expect("a version")),
            cuda: cuda.map(Into::into),
            python: python.map(|text| text.parse().expect("a Python")),
            flavour: if devel { Flavour::Devel } else { Flavour::Runtime },
            ..Spec::of(&name)
        }
    }
}

const DRIVERS: [&str; 14] = [
    "418.39",
    "450.80.02",
    "470.256.02",
    "515.65.01",
    "525.60.13",
    "535.104.05",
    "550.54.14",
    "560.35.03",
    "570.124.06",
    "575.57.08",
    "580.65.06",
    "590.48.01",
    "595.45.04",
    "615.31",
];

prop_compose! {
    fn any_target()(
        driver in proptest::option::of(select(DRIVERS.to_vec())),
        gpus in proptest::collection::vec(
            select(Matrix::embedded().capabilities.iter().map(|row| row.cc).collect::<Vec<_>>()), 0..3),
        arm in proptest::bool::weighted(0.2),
    ) -> Target {
        let gpu = |compute_capability: ComputeCapability| TargetGpu { name: None, compute_capability };
        let driver = driver.map(|text| text.parse().expect("a driver"));
        let source = if driver.is_none() && gpus.is_empty() { TargetSource::Any } else { TargetSource::Named };
        let machine = if arm { Machine::Aarch64 } else { Machine::X86_64 };
        Target { source, driver, gpus: gpus.into_iter().map(gpu).collect(), machine }
    }
}

fn any_options() -> impl Strategy<Value = ResolveOptions> {
    any::<bool>().prop_map(|forward_compat| ResolveOptions { forward_compat, ..ResolveOptions::default() })
}

/// Resolves without looking for alternatives.
fn answer_of(
    spec: &Spec,
    target: &Target,
    matrix: &Matrix,
    options: &ResolveOptions,
) -> Result<Stack, Vec<RuleViolation>> {
    solve(&ResolveRequest { spec, target, matrix, options })
}

/// Any base of the matrix, or none.
fn any_base() -> impl Strategy<Value = ResolveOptions> {
    let names: Vec<_> = Matrix::embedded().bases.iter().map(|base| base.name.clone()).collect();
    proptest::option::of(select(names)).prop_map(|base| ResolveOptions { base, ..ResolveOptions::default() })
}

/// Whether this driver's branch supports every GPU of the target.
fn still_driven(target: &Target, driver: &DriverVersion) -> bool {
    let matrix = Matrix::embedded();
    target.gpus.iter().all(|gpu| {
        let row = matrix.capabilities.iter().find(|row| row.cc == gpu.compute_capability);
        row.and_then(|row| row.last_driver_branch).is_none_or(|last| driver.major() <= last)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answer_is_deterministic_and_independent_of_row_order(
        spec in any_spec(), target in any_target(), options in any_options(),
    ) {
        let first = resolve(&spec, &target, Matrix::embedded(), &options);
        prop_assert_eq!(&first, &resolve(&spec, &target, Matrix::embedded(), &options));
        prop_assert_eq!(&first, &resolve(&spec, &target, &TURNED, &options));
    }

    #[test]
    fn every_accepted_stack_passes_the_naive_checker(
        spec in any_spec(), target in any_target(), options in any_options(),
    ) {
        if let Ok(stack) = resolve(&spec, &target, Matrix::embedded(), &options) {
            prop_assert_eq!(naive::objections(&spec, &stack, Matrix::embedded()), Vec::<String>::new());
            let again = stack.name.parse::<Spec>().expect("canonical names are specs");
            let same = resolve(&again, &target, Matrix::embedded(), &options).expect("the pinned name resolves too");
            prop_assert_eq!(same.name, stack.name);
        }
    }

    #[test]
    fn added_variants_keep_the_solution(
        spec in any_spec(), target in any_target(), options in any_base(), kept in any::<u64>(),
    ) {
        let full = Matrix::embedded();
        let mut small = full.clone();
        let mut at = 0;
        small.variants.retain(|_| { at += 1; kept >> (at % 61) & 1 == 1 });
        // Without the release that is named, its number is the beginning of others.
        if names_a_release(&spec, &small) == names_a_release(&spec, full)
            && let Ok(stack) = answer_of(&spec, &target, &small, &options)
        {
            // A source build is for an unpublished variant only.
            let answer = answer_of(&spec, &target, full, &options);
            prop_assert!(answer.is_ok() || stack.source_build.is_some(), "lost {}: {:?}", stack.name, answer.err());
        }
    }

    /// One variant alone against all variants of its release: the case that random matrices seldom meet.
    #[test]
    fn further_variants_of_a_release_keep_the_solution(
        at in 0..Matrix::embedded().variants.len(), target in any_target(), options in any_base(),
    ) {
        let full = Matrix::embedded();
        let only = &full.variants[at];
        let product = full.products.iter().find(|product| product.framework == only.framework);
        let spec = Spec {
            version: Some(only.version.clone()), ..Spec::of(&product.expect("a product of the row").name)
        };
        let target = Target { machine: only.machine, ..target };
        let mut small = full.clone();
        let other = |row: &Variant| row.framework == only.framework && row.version == only.version && row != only;
        small.variants.retain(|row| !other(row));
        if let Ok(stack) = answer_of(&spec, &target, &small, &options) {
            let answer = answer_of(&spec, &target, full, &options);
            prop_assert!(answer.is_ok() || stack.source_build.is_some(), "lost {}: {:?}", stack.name, answer.err());
        }
    }

    #[test]
    fn spec_without_cuda_resolves_if_and_only_if_a_named_variant_does(
        spec in any_spec(), target in any_target(), options in any_base(),
    ) {
        let matrix = Matrix::embedded();
        let framework = matrix.product(&spec.name).map(|product| product.framework.clone());
        let toolkit = matrix.product(&spec.name).is_some_and(|product| product.package.is_none());
        let open = Spec { cuda: None, ..spec };
        let is_release = names_a_release(&open, matrix);
        let named = matrix.variants.iter().filter(|row| {
            Some(&row.framework) == framework.as_ref()
                && row.machine == target.machine
                && open.version.as_ref().is_none_or(|asked| {
                    if is_release { row.version.parts() == asked.parts() } else { row.version.starts_with(asked) || row.version == *asked }
                })
                && naive::may_be_chosen(row)
        });
        let some = named.map(|row| Spec {
            version: Some(row.version.clone()), cuda: (!toolkit).then(|| row.cuda.into()), ..open.clone()
        }).find(|named| answer_of(named, &target, matrix, &options).is_ok());
        let answer = answer_of(&open, &target, matrix, &options);
        prop_assert_eq!(answer.is_ok(), some.is_some(), "{} against {:?}", open, some.map(|spec| spec.to_string()));
    }

    #[test]
    fn newer_driver_that_supports_the_gpu_keeps_the_solution(
        spec in any_spec(), target in any_target(), older in 0..DRIVERS.len(), newer in 0..DRIVERS.len(),
    ) {
        let (older, newer) = (older.min(newer), older.max(newer));
        let with = |at: usize| Target { driver: Some(DRIVERS[at].parse().expect("a driver")), ..target.clone() };
        let options = ResolveOptions::default();
        let (old, new) = (with(older), with(newer));
        if resolve(&spec, &old, Matrix::embedded(), &options).is_ok()
            && still_driven(&new, new.driver.as_ref().expect("just set"))
        {
            let answer = resolve(&spec, &new, Matrix::embedded(), &options);
            prop_assert!(answer.is_ok(), "{} lost: {:?}", DRIVERS[newer], answer.err());
        }
    }

    #[test]
    fn violations_have_sources_and_alternatives_resolve(
        spec in any_spec(), target in any_target(), options in any_options(),
    ) {
        if let Err(refusal) = resolve(&spec, &target, Matrix::embedded(), &options) {
            prop_assert!(!refusal.refusals.is_empty());
            for refused in &refusal.refusals {
                prop_assert!(!refused.text.is_empty() && !refused.source.is_empty(), "{:?}", refused);
            }
            prop_assert!(refusal.alternatives.len() <= 3);
            prop_assert!(refusal.alternatives.is_sorted_by_key(|alternative| alternative.distance));
            for alternative in &refusal.alternatives {
                let parsed: Spec = alternative.spec.to_string().parse().expect("alternatives are specs");
                prop_assert!(resolve(&parsed, &target, Matrix::embedded(), &options).is_ok(), "{}", parsed);
                prop_assert_eq!(&alternative.command, &format!("envforge build {parsed}"));
            }
        }
    }
}
