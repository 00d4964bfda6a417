//! Rules about the base system: its C library and its compilers.

use crate::resolve::candidate::Candidate;
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;

/// Rejects a base whose C library is older than the binary requires.
pub(super) fn glibc_too_old(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let base = candidate.base?;
    let needed = &candidate.variant.min_glibc;
    if base.glibc >= *needed {
        return None;
    }
    let text = format!("{} requires glibc >= {needed}; {} has {}", candidate.label(), base.name, base.glibc);
    Some(candidate.refuse(Rule::GlibcTooOld, text))
}

/// Rejects a base without a host compiler that nvcc of the variant's CUDA supports.
pub(super) fn host_compiler_too_new(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    if !candidate.needs_nvcc() {
        return None;
    }
    let base = candidate.base?;
    let compiler = candidate.question.matrix.compiler(&candidate.variant.toolkit)?;
    let gcc = base.gcc.iter().any(|major| *major <= compiler.gcc_max);
    if gcc {
        return None;
    }
    let majors = |list: &[u32]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let text = format!(
        "nvcc {} supports gcc up to {}; {} has gcc {}",
        candidate.toolkit_minor(),
        compiler.gcc_max,
        base.name,
        majors(&base.gcc)
    );
    Some(RuleViolation::new(Rule::HostCompilerTooNew, text, &compiler.source))
}
