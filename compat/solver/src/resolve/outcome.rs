//! The result of a resolution: a stack, or every violated rule with alternatives.

use super::alternatives::nearest;
use super::as_of::matrix_as_of;
use super::candidate::ResolveRequest;
use super::choose::solve;
use super::driver_advice::driver_advice;
use super::options::ResolveOptions;
use super::refusal::{Alternative, Unsatisfiable};
use crate::matrix::Matrix;
use crate::spec::Spec;
use crate::stack::Stack;
use crate::target::Target;
use crate::versions::ComputeCapability;

/// Resolves a spec for a target to a stack, or to every violated rule and the alternatives.
pub fn resolve(
    spec: &Spec,
    target: &Target,
    matrix: &Matrix,
    options: &ResolveOptions,
) -> Result<Stack, Unsatisfiable> {
    let past = options.as_of.as_ref().map(|moment| matrix_as_of(matrix, moment));
    let matrix = past.as_ref().unwrap_or(matrix);
    let question = ResolveRequest { spec, target, matrix, options };
    solve(&question).map_err(|refusals| Unsatisfiable {
        spec: Box::new(spec.clone()),
        driver: driver_advice(&question, &refusals).map(Box::new),
        refusals,
        alternatives: nearest(&question),
    })
}

/// Returns whether an image of that stack runs on a target: its spec resolves there, and to no ptxas that the image lacks.
/// Without the alternatives of [`resolve`], which take most of its time.
pub fn image_runs(
    spec: &Spec,
    image: &Stack,
    target: &Target,
    matrix: &Matrix,
    options: &ResolveOptions,
) -> bool {
    let past = options.as_of.as_ref().map(|moment| matrix_as_of(matrix, moment));
    let question = ResolveRequest { spec, target, matrix: past.as_ref().unwrap_or(matrix), options };
    let has = |gpu: &ComputeCapability| image.ptxas.iter().any(|ptxas| ptxas.gpus.contains(gpu));
    solve(&question).is_ok_and(|found| found.ptxas.is_none_or(|needed| needed.gpus.iter().all(has)))
}

/// Returns the closest published specs for a stack that is built from source.
pub fn nearest_published(
    spec: &Spec,
    target: &Target,
    matrix: &Matrix,
    options: &ResolveOptions,
) -> Vec<Alternative> {
    let past = options.as_of.as_ref().map(|moment| matrix_as_of(matrix, moment));
    nearest(&ResolveRequest { spec, target, matrix: past.as_ref().unwrap_or(matrix), options })
}
