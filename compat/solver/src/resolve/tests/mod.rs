//! Tests of the whole of `resolve` against the repository's matrix.

mod cases;
mod classes;
mod differential;
mod listing;
mod naive;
mod properties;
mod reports;
mod rules;
mod table;

use crate::matrix::Matrix;
use crate::spec::Spec;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::{ComputeCapability, Machine};

/// A spec from its text.
fn spec(text: &str) -> Spec {
    text.parse().expect(text)
}

/// A named target: GPUs by product name or capability, and a driver.
fn target(gpus: &[&str], driver: Option<&str>, machine: Machine) -> Target {
    if gpus.is_empty() && driver.is_none() {
        return Target::any(machine);
    }
    let gpu = |text: &&str| {
        if let Ok(compute_capability) = text.parse::<ComputeCapability>() {
            return TargetGpu { name: None, compute_capability };
        }
        let named = Matrix::embedded().gpu_named(text).expect(text);
        TargetGpu { name: Some(named.name.clone()), compute_capability: named.compute_capability }
    };
    Target {
        source: TargetSource::Named,
        driver: driver.map(|text| text.parse().expect(text)),
        gpus: gpus.iter().map(gpu).collect(),
        machine,
    }
}

fn x86(gpus: &[&str], driver: Option<&str>) -> Target {
    target(gpus, driver, Machine::X86_64)
}
