//! The rules, one function each, in families. Each checks one complete choice and returns a violation or nothing.

mod binary;
mod driver;
mod jit;
mod naming;
mod ptxas;
mod python;
mod system;
pub(crate) mod toolkit;

use super::candidate::Candidate;
use super::refusal::RuleViolation;

pub(crate) use driver::branches_of;
pub(crate) use jit::other_ptxas;
pub(crate) use naming::{
    all_versions, is_misspelt, known_product, known_versions, nearest_products, nothing_to_choose,
    unpublished, unread_code, version_near,
};

type RuleFunction = fn(&Candidate<'_>) -> Option<RuleViolation>;

/// Rules about the machine that will run it.
const MACHINE: [RuleFunction; 6] = [
    driver::driver_too_old,
    driver::driver_drops_gpu,
    binary::gpu_not_in_binary,
    toolkit::toolkit_drops_gpu,
    binary::cudnn_drops_gpu,
    jit::jit_lacks_gpu,
];

/// Rules about Python and its base, independent of the CUDA of the binary.
const PYTHON: [RuleFunction; 2] = [python::python_unsupported, python::no_base_for_python];

/// Rules about the contents of the image.
const IMAGE: [RuleFunction; 4] =
    [system::glibc_too_old, system::host_compiler_too_new, toolkit::toolkit_unavailable, python::numpy_abi];

fn apply(rules: &[RuleFunction], candidate: &Candidate<'_>) -> Vec<RuleViolation> {
    rules.iter().filter_map(|rule| rule(candidate)).collect()
}

/// Returns every rule that this choice violates.
pub(crate) fn judge(candidate: &Candidate<'_>) -> Vec<RuleViolation> {
    [apply(&PYTHON, candidate), apply(&MACHINE, candidate), apply(&IMAGE, candidate)].concat()
}

/// Returns every violated rule about the machine alone, for listings.
pub(crate) fn judge_machine(candidate: &Candidate<'_>) -> Vec<RuleViolation> {
    apply(&MACHINE, candidate)
}

/// Returns every violated rule about Python alone, for requests without a binary.
pub(crate) fn judge_python(candidate: &Candidate<'_>) -> Vec<RuleViolation> {
    apply(&PYTHON, candidate)
}
