//! The result of a resolution: a stack, or every violated rule with alternatives.

use super::alternatives::nearest;
use super::as_of::matrix_as_of;
use super::candidate::ResolveRequest;
use super::choose::solve;
use super::driver_advice::driver_advice;
use super::options::ResolveOptions;
use super::refusal::{Alternative, Unsatisfiable};
use crate::model::compat::Matrix;
use crate::model::spec::Spec;
use crate::model::stack::Stack;
use crate::model::target::Target;

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

/// Returns whether there is a stack, without the reasons and alternatives of [`resolve`], which take most of its time.
pub fn resolves(spec: &Spec, target: &Target, matrix: &Matrix, options: &ResolveOptions) -> bool {
    let past = options.as_of.as_ref().map(|moment| matrix_as_of(matrix, moment));
    solve(&ResolveRequest { spec, target, matrix: past.as_ref().unwrap_or(matrix), options }).is_ok()
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
