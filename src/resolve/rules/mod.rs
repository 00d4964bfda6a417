//! The rules, one function each, in families. Each looks at one complete choice and says no or nothing.

mod binary;
mod driver;
mod naming;
mod python;
mod system;
pub(crate) mod toolkit;

use super::candidate::Candidate;
use super::refusal::Refused;

pub(crate) use naming::{
    all_versions, is_misspelt, known_product, known_versions, nearest_products, nothing_to_choose,
    unpublished, version_near,
};

type RuleFunction = fn(&Candidate<'_>) -> Option<Refused>;

/// Rules about the machine that will run it.
const MACHINE: [RuleFunction; 5] = [
    driver::driver_too_old,
    driver::driver_drops_gpu,
    binary::gpu_not_in_binary,
    toolkit::toolkit_drops_gpu,
    binary::cudnn_drops_gpu,
];

/// Rules about Python and its base, which do not look at the CUDA of the binary.
const PYTHON: [RuleFunction; 2] = [python::python_unsupported, python::no_base_for_python];

/// Rules about what the image is made of.
const IMAGE: [RuleFunction; 4] =
    [system::glibc_too_old, system::host_compiler_too_new, toolkit::toolkit_unavailable, python::numpy_abi];

fn apply(rules: &[RuleFunction], candidate: &Candidate<'_>) -> Vec<Refused> {
    rules.iter().filter_map(|rule| rule(candidate)).collect()
}

/// Every rule that says no to this choice.
pub(crate) fn judge(candidate: &Candidate<'_>) -> Vec<Refused> {
    [apply(&PYTHON, candidate), apply(&MACHINE, candidate), apply(&IMAGE, candidate)].concat()
}

/// Every rule about the machine alone that says no, for listings.
pub(crate) fn judge_machine(candidate: &Candidate<'_>) -> Vec<Refused> {
    apply(&MACHINE, candidate)
}

/// Every rule about Python alone that says no, where there is no binary to judge.
pub(crate) fn judge_python(candidate: &Candidate<'_>) -> Vec<Refused> {
    apply(&PYTHON, candidate)
}
