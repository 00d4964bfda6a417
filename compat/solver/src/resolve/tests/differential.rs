//! The naive checker against `resolve` over the full product of published variants, 40 drivers and all GPUs.

use std::collections::BTreeMap;

use super::naive;
use crate::matrix::Matrix;
use crate::matrix::tables::Variant;
use crate::resolve::candidate::{ResolveRequest, cuda_of};
use crate::resolve::choose::solve;
use crate::resolve::{ResolveOptions, resolve};
use crate::spec::Spec;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::DriverVersion;

const DRIVERS: [&str; 40] = [
    "418.39",
    "440.33.01",
    "450.51.06",
    "450.80.02",
    "450.248.02",
    "455.45.01",
    "460.32.03",
    "465.19.01",
    "470.57.02",
    "470.256.02",
    "495.29.05",
    "510.47.03",
    "510.108.03",
    "515.43.04",
    "515.65.01",
    "520.61.05",
    "525.60.11",
    "525.60.13",
    "525.147.05",
    "530.30.02",
    "535.54.03",
    "535.104.05",
    "535.288.01",
    "545.23.08",
    "550.54.14",
    "550.144.03",
    "555.42.06",
    "560.28.03",
    "560.35.03",
    "565.57.01",
    "570.86.15",
    "570.124.06",
    "570.211.01",
    "575.57.08",
    "580.65.05",
    "580.65.06",
    "580.105.08",
    "590.44.01",
    "595.45.04",
    "615.31",
];

/// Returns one variant for each shape that a machine's rules can distinguish.
fn shapes() -> Vec<&'static Variant> {
    let mut shapes: BTreeMap<String, &Variant> = BTreeMap::new();
    let matrix = Matrix::embedded();
    for row in matrix.variants.iter().chain(&matrix.source_variants) {
        let key = format!(
            "{} {} {:?} {:?} {:?} {:?} {} {:?} {:?} {:?}",
            row.framework,
            row.toolkit,
            row.arch,
            row.ptx,
            row.ptx_cuda,
            row.cudnn,
            row.machine,
            row.cuda,
            row.companions.get("torch"),
            matrix.jit.iter().position(|jit| jit.is_of(row, row.triton.as_ref()))
        );
        shapes.entry(key).or_insert(row);
    }
    shapes.into_values().collect()
}

/// Compares every `step`-th shape from `first` on; returns the number of requests.
fn compare(first: usize, step: usize) -> usize {
    let matrix = Matrix::embedded();
    let options = ResolveOptions::default();
    let drivers: Vec<DriverVersion> = DRIVERS.iter().map(|text| text.parse().expect("a driver")).collect();
    let mut gpus: Vec<_> = matrix.gpus.iter().map(|gpu| gpu.compute_capability).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let mut asked = 0;
    for row in shapes().into_iter().skip(first).step_by(step) {
        let product =
            matrix.products.iter().find(|product| product.framework == row.framework).expect("a product");
        let spec = Spec {
            version: Some(row.version.clone()),
            cuda: cuda_of(product, row),
            ..Spec::of(&product.name)
        };
        let built = naive::has_base(row, matrix);
        for driver in &drivers {
            for gpu in gpus.iter().copied() {
                let target = Target {
                    source: TargetSource::Named,
                    driver: Some(driver.clone()),
                    gpus: vec![TargetGpu { name: None, compute_capability: gpu }],
                    machine: row.machine,
                };
                let answer =
                    solve(&ResolveRequest { spec: &spec, target: &target, matrix, options: &options });
                let naive = built && naive::runs(row, &target, matrix).is_empty();
                assert_eq!(
                    answer.is_ok(),
                    naive,
                    "{spec} for {} with {driver} on {}: {:?}, {:?}",
                    row.machine,
                    gpu,
                    answer.err(),
                    naive::runs(row, &target, matrix)
                );
                // Looking for alternatives takes a hundred times as long: every 499th refusal.
                if !naive && asked % 499 == 0 {
                    let refusal = resolve(&spec, &target, matrix, &options).expect_err("refused");
                    for alternative in refusal.alternatives {
                        let stack = resolve(&alternative.spec, &target, matrix, &options).expect("offered");
                        assert_eq!(
                            naive::objections(&alternative.spec, &stack, matrix),
                            Vec::<String>::new()
                        );
                    }
                }
                asked += 1;
            }
        }
    }
    asked
}

#[test]
fn resolve_and_the_naive_checker_agree_on_every_tenth_shape() {
    assert!(compare(5, 10) > 4_000);
}

#[test]
#[ignore = "nightly: minutes of the processor"]
fn resolve_and_the_naive_checker_agree_on_every_even_shape() {
    assert!(compare(0, 2) > 20_000);
}

#[test]
#[ignore = "nightly: minutes of the processor"]
fn resolve_and_the_naive_checker_agree_on_every_odd_shape() {
    assert!(compare(1, 2) > 20_000);
}
