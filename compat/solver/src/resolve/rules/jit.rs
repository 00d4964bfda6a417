//! The rule about compilers that a framework calls at run time.

use std::fmt::Write as _;

use super::ptxas::{NoPtxas, PtxasFound, ptxas_for};
use crate::matrix::tables::{JitCompiler, ToolkitBound};
use crate::resolve::candidate::{Candidate, gpu_label, package};
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;
use crate::versions::ComputeCapability;

/// Rejects a framework whose run-time compiler has no target for a GPU, whatever code its files contain; but not a Triton to which
/// the image can give a newer ptxas.
pub(super) fn jit_lacks_gpu(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let target = candidate.question.target;
    let (row, without, no_ptxas) = lacking(candidate)?;
    let names: Vec<_> = without.iter().map(|gpu| gpu_label(target, *gpu)).collect();
    let mut text = format!(
        "{} compiles kernels at run time with {}, which has no target for {}",
        candidate.label(),
        component(candidate, row),
        names.join(", ")
    );
    if row.triton.is_some() {
        text.push_str(&why_no_ptxas(candidate, row, no_ptxas));
    }
    match releases_that_compile(candidate) {
        Some(span) => write!(text, "; {} releases that compile for it: {span}", package(candidate.product)),
        None => write!(text, "; no {} release in the matrix compiles for it", package(candidate.product)),
    }
    .expect("a String takes all");
    Some(RuleViolation::new(Rule::JitLacksGpu, text, &row.source))
}

/// Returns why no other ptxas helps this Triton, if that is known.
fn why_no_ptxas(candidate: &Candidate<'_>, row: &JitCompiler, why: NoPtxas) -> String {
    let major = candidate.variant.toolkit.major();
    match (why, &row.note) {
        (NoPtxas::NotTaken, None) => String::new(),
        (NoPtxas::NotTaken, Some(note)) => format!("; another ptxas does not help: {note}"),
        (NoPtxas::NoRelease, _) => format!("; no ptxas of CUDA {major} that it takes has one"),
        (NoPtxas::OtherRelease(cuda), _) => {
            let own = candidate.toolkit_minor();
            format!("; ptxas of CUDA {cuda} has one, but the image has nvcc of CUDA {own}")
        }
    }
}

/// Returns the ptxas that the image brings for Triton; `None`: Triton's own has every GPU of the target, or no other helps.
pub(crate) fn other_ptxas<'a>(candidate: &Candidate<'a>) -> Option<PtxasFound<'a>> {
    all_lacking(candidate).into_iter().find_map(|(row, without)| ptxas_for(candidate, row, &without).ok())
}

/// Returns the first compiler that lacks a GPU of the target and cannot be replaced, the GPUs it lacks, and why it cannot.
fn lacking<'a>(candidate: &Candidate<'a>) -> Option<(&'a JitCompiler, Vec<ComputeCapability>, NoPtxas)> {
    all_lacking(candidate).into_iter().find_map(|(row, without)| {
        let why = ptxas_for(candidate, row, &without).err()?;
        Some((row, without, why))
    })
}

/// Returns every compiler that lacks a GPU of the target, and the GPUs it lacks.
fn all_lacking<'a>(candidate: &Candidate<'a>) -> Vec<(&'a JitCompiler, Vec<ComputeCapability>)> {
    let gpus = candidate.question.target.capabilities();
    let rows = candidate.question.matrix.jit_of(candidate.variant, candidate.python);
    let of_row = |row: &'a JitCompiler| {
        let without: Vec<_> = gpus.iter().copied().filter(|gpu| lacks(candidate, row, *gpu)).collect();
        (!without.is_empty()).then_some((row, without))
    };
    rows.into_iter().filter_map(of_row).collect()
}

fn lacks(candidate: &Candidate<'_>, row: &JitCompiler, gpu: ComputeCapability) -> bool {
    if row.newest.is_some_and(|newest| gpu > newest) || row.missing.contains(&gpu) {
        return true;
    }
    let compiler = candidate.question.matrix.compiler(&candidate.variant.toolkit);
    match (row.toolkit, compiler) {
        (Some(ToolkitBound::Targets), Some(compiler)) => !compiler.targets.contains(&gpu),
        (Some(ToolkitBound::Oldest), Some(compiler)) => {
            compiler.targets.iter().min().is_some_and(|oldest| gpu < *oldest)
        }
        (None, _) | (_, None) => false,
    }
}

/// Returns the compiler, with the toolkit's release if it is the toolkit's.
fn component(candidate: &Candidate<'_>, row: &JitCompiler) -> String {
    match row.toolkit {
        Some(_) => format!("{} (CUDA {})", row.component, candidate.toolkit_minor()),
        None => row.component.clone(),
    }
}

/// Returns the first and last release whose run-time compilers know every GPU of the target.
fn releases_that_compile(candidate: &Candidate<'_>) -> Option<String> {
    let rows = candidate.question.matrix.variants.iter().filter(|row| {
        row.framework == candidate.variant.framework
            && row.machine == candidate.variant.machine
            && row.verified
            && lacking(&Candidate { variant: row, ..*candidate }).is_none()
            && !candidate.question.matrix.jit_of(row, candidate.python).is_empty()
    });
    let mut versions: Vec<_> = rows.map(|row| &row.version).collect();
    versions.sort_unstable();
    let (first, last) = (versions.first()?, versions.last()?);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}
