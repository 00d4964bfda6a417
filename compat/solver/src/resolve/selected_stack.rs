//! The stack of the selected candidate.

use std::collections::BTreeMap;

use super::candidate::{Candidate, package};
use super::reasons::reasons;
use super::rejected::RejectedCandidates;
use super::rules::other_ptxas;
use super::rules::toolkit::{NvccChoice, nvcc};
use crate::matrix::tables::{Base, Channel, ComponentWheel, Status};
use crate::spec::Flavour;
use crate::stack::{ForwardCompatChoice, Requires, SourceChoice, Stack};
use crate::versions::DriverVersion;

/// Builds the stack of a choice that violates no rule.
pub(super) fn build_stack(candidate: &Candidate<'_>, base: &Base, trail: &RejectedCandidates) -> Stack {
    let Candidate { question, product, variant, python, .. } = *candidate;
    let missing = question.matrix.missing_companions(variant, python);
    let mut companions = variant.companions.clone();
    companions.retain(|package, _| !missing.iter().any(|(name, _)| name == package));
    let flavour = question.spec.flavour;
    let suffix = if flavour == Flavour::Devel { "-devel" } else { "" };
    let numpy = question.matrix.numpy_limit_of(variant);
    let choice = candidate.needs_nvcc().then(|| nvcc(candidate)).flatten();
    let devel = choice.as_ref().filter(|_| flavour == Flavour::Devel);
    // The version of the toolkit alone is its CUDA.
    let cuda = product.package.as_ref().map_or_else(String::new, |_| format!("-{}", variant.cuda));
    Stack {
        name: format!("{}:{}{cuda}-py{python}{suffix}", product.name, variant.version),
        product: product.name.clone(),
        framework: variant.framework.clone(),
        package: variant.package.clone().unwrap_or_else(|| package(product).to_owned()),
        version: variant.version.clone(),
        cuda: variant.cuda,
        toolkit: variant.toolkit.clone(),
        cudnn: variant.cudnn.clone(),
        nccl: variant.nccl.clone(),
        triton: variant.triton_for(python).cloned(),
        companions,
        python,
        // A binary compiled on the base requires the base's glibc.
        glibc: if variant.channel == Channel::Source {
            base.glibc.clone()
        } else {
            variant.min_glibc.clone()
        },
        flavour,
        machine: variant.machine,
        channel: variant.channel,
        status: variant.status,
        experimental: variant.status == Status::Experimental,
        local: question.matrix.is_local(variant),
        licence: product.licence.clone(),
        base: base.name.clone(),
        suite: base.suite.clone(),
        requires: requires(candidate),
        forward_compat: candidate
            .forward_compat_in_use()
            .map(|row| ForwardCompatChoice { package: row.package.clone(), source: row.source.clone() }),
        install: variant.install.clone(),
        shared: variant.shared.clone(),
        parts: parts(candidate, devel.map_or(&[], |choice| choice.parts)),
        ptxas: other_ptxas(candidate).map(|found| Box::new(found.choice)),
        nvcc: devel.map(|choice| choice.nvcc.clone()),
        source_build: choice.and_then(|choice| source_build(candidate, choice)),
        numpy: numpy.and_then(|limit| limit.numpy.clone()),
        target: question.target.clone(),
        matrix: question.matrix.edition.clone(),
        reasons: reasons(candidate, base, trail),
    }
}

/// Returns the source build of an unpublished stack.
fn source_build(candidate: &Candidate<'_>, choice: NvccChoice<'_>) -> Option<Box<SourceChoice>> {
    let row = candidate.source_build()?;
    Some(Box::new(SourceChoice {
        archive: row.archive.clone(),
        sha256: row.sha256.clone(),
        patches: row.patches.clone(),
        arch: candidate.compiled_for(),
        nvcc: choice.nvcc,
        parts: candidate
            .question
            .matrix
            .wheels_of(&row.toolkit, |wheel| choice.parts.contains(&wheel.part))
            .unwrap_or_default(),
        job_memory_gb: row.job_memory_gb,
        time: row.time.clone(),
        experimental: row.experimental.clone(),
    }))
}

/// Returns the pinned toolkit wheels: the row's parts, those nvcc requires, and for the toolkit alone every library.
fn parts(candidate: &Candidate<'_>, nvcc: &[String]) -> BTreeMap<String, String> {
    let alone = candidate.product.package.is_none();
    let wanted = |wheel: &ComponentWheel| {
        let named = candidate.variant.parts.contains(&wheel.part);
        named || if wheel.library { alone } else { nvcc.contains(&wheel.part) }
    };
    candidate.question.matrix.wheels_of(&candidate.variant.toolkit, wanted).unwrap_or_default()
}

fn requires(candidate: &Candidate<'_>) -> Requires {
    let toolkit = candidate.question.matrix.toolkit(&candidate.variant.toolkit);
    let native = toolkit.and_then(|row| row.native_driver.clone());
    let floor = candidate.driver_floor().map(|(floor, _)| floor.clone());
    let lowest = match candidate.forward_compat_in_use() {
        Some(row) => {
            let branch = row.base_branches.iter().min();
            branch.and_then(|branch| branch.to_string().parse::<DriverVersion>().ok()).or(floor)
        }
        None if candidate.needs_ptx() => candidate.compiling_driver().or(floor),
        None => floor,
    };
    Requires {
        driver: lowest,
        driver_native: native,
        gpu: match candidate.variant.channel {
            Channel::Source => candidate.compiled_for(),
            Channel::Default | Channel::Framework => candidate.variant.arch.clone().unwrap_or_default(),
        },
        ptx: candidate.variant.ptx.clone(),
    }
}
