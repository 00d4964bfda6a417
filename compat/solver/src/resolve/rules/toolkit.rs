//! Rules about the CUDA toolkit: its GPUs, and the sources of its compiler.

use crate::matrix::tables::{Base, NvccRepository, Profilers};
use crate::resolve::candidate::{Candidate, gpu_label};
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;
use crate::stack::{Nvcc, NvccSource, VendorRepository};
use crate::versions::ToolkitVersion;

/// Rejects a toolkit newer than the last one that supports a GPU of the target.
pub(super) fn toolkit_drops_gpu(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    let question = &candidate.question;
    let toolkit = &candidate.variant.toolkit;
    let mut texts = Vec::new();
    let mut source = None;
    for gpu in question.target.capabilities() {
        let Some(row) = question.matrix.capability(gpu) else { continue };
        let Some(last) = row.last_cuda.as_ref().filter(|last| minor_of(toolkit) > minor_of(last)) else {
            continue;
        };
        texts.push(format!(
            "CUDA {} does not support {} ({}): the last CUDA for it is {last}",
            candidate.toolkit_minor(),
            gpu_label(question.target, gpu),
            row.arch
        ));
        source.get_or_insert(&row.source);
    }
    Some(RuleViolation::new(Rule::ToolkitDropsGpu, texts.join("; "), source?))
}

fn minor_of(toolkit: &ToolkitVersion) -> (u32, u32) {
    (toolkit.major(), toolkit.minor())
}

/// Rejects a variant whose nvcc is not available from any configured source for this base.
pub(super) fn toolkit_unavailable(candidate: &Candidate<'_>) -> Option<RuleViolation> {
    if !candidate.needs_nvcc() || nvcc(candidate).is_some() {
        return None;
    }
    let base = candidate.base?;
    let matrix = candidate.question.matrix;
    if matrix.compiler(&candidate.variant.toolkit).is_some() && host_gcc(candidate).is_none() {
        return None; // `host-compiler-too-new` reports it.
    }
    let allowed = candidate.question.options.toolkit;
    let state = |on: bool| if on { "" } else { " (disabled)" };
    let own = matrix.nvcc_packages.iter().find(|row| serves(candidate, &row.base));
    let packaged = own.map_or_else(
        || format!("{} has no nvcc package", base.name),
        |row| format!("{} has nvcc {}", base.name, row.cuda),
    );
    let majors: Vec<_> = matrix.nvcc_wheels.iter().map(|row| row.cuda_major.to_string()).collect();
    let served = repository(candidate);
    let vendor = match served {
        None => "does not serve this base".to_owned(),
        Some(row) => {
            let list: Vec<_> = row.cuda.iter().map(ToString::to_string).collect();
            format!("for {} has {}", base.name, list.join(", "))
        }
    };
    let text = format!(
        "no configured source has nvcc {}: {packaged}{}; wheels have nvcc of CUDA {}{}; the vendor's apt repository \
         {vendor}{}",
        candidate.toolkit_minor(),
        state(allowed.distribution),
        majors.join(", "),
        state(allowed.wheels),
        state(allowed.vendor),
    );
    let sources = [own.map(|row| &row.source), served.map(|row| &row.source)];
    let sources: Vec<_> = sources.into_iter().flatten().map(String::as_str).collect();
    let source = if sources.is_empty() { base.source.clone() } else { sources.join("; ") };
    Some(RuleViolation::new(Rule::ToolkitUnavailable, text, &source))
}

/// A source of nvcc for a choice: its packages and the row that proves it.
pub(crate) struct NvccChoice<'a> {
    pub(crate) nvcc: Nvcc,
    /// Toolkit parts that are required as wheels.
    pub(crate) parts: &'a [String],
    pub(crate) source: &'a str,
}

/// Returns the first enabled source that has the nvcc of this CUDA: the distribution, wheels, the vendor.
pub(crate) fn nvcc<'a>(candidate: &Candidate<'a>) -> Option<NvccChoice<'a>> {
    let allowed = candidate.question.options.toolkit;
    let matrix = candidate.question.matrix;
    // Without the versions of its parts no headers can be pinned.
    matrix.components_of(&candidate.variant.toolkit)?;
    let own = || allowed.distribution.then(|| packaged(candidate)).flatten();
    let wheels = || allowed.wheels.then(|| in_wheels(candidate)).flatten();
    let vendor = || allowed.vendor.then(|| at_vendor(candidate)).flatten();
    own().or_else(wheels).or_else(vendor)
}

/// Whether a row for that base also serves this one: the same base, or a requested image of the same suite.
fn serves(candidate: &Candidate<'_>, name: &str) -> bool {
    candidate.base.is_some_and(|base| {
        let suite = |row: &Base| row.distribution == base.distribution && row.suite == base.suite;
        name == base.name || candidate.question.matrix.base(name).is_some_and(suite)
    })
}

/// Returns the newest gcc of the base that this nvcc supports.
fn host_gcc(candidate: &Candidate<'_>) -> Option<u32> {
    let compiler = candidate.question.matrix.compiler(&candidate.variant.toolkit)?;
    candidate.base?.gcc.iter().copied().filter(|major| *major <= compiler.gcc_max).max()
}

fn packaged<'a>(candidate: &Candidate<'a>) -> Option<NvccChoice<'a>> {
    let row = candidate.question.matrix.nvcc_packages.iter().find(|row| {
        serves(candidate, &row.base) && minor_of(&row.cuda) == minor_of(&candidate.variant.toolkit)
    })?;
    let nvcc = Nvcc {
        source: NvccSource::Distribution,
        packages: std::iter::once(&row.package).chain(&row.profilers).cloned().collect(),
        component: Some(row.component.clone()),
        gcc: host_gcc(candidate)?,
        repository: None,
    };
    Some(NvccChoice { nvcc, parts: &row.headers, source: &row.source })
}

fn in_wheels<'a>(candidate: &Candidate<'a>) -> Option<NvccChoice<'a>> {
    let rows = &candidate.question.matrix.nvcc_wheels;
    let row = rows.iter().find(|row| row.cuda_major == candidate.variant.toolkit.major())?;
    let gcc = host_gcc(candidate)?;
    let nvcc =
        Nvcc { source: NvccSource::Wheels, packages: Vec::new(), component: None, gcc, repository: None };
    Some(NvccChoice { nvcc, parts: &row.parts, source: &row.source })
}

fn repository<'a>(candidate: &Candidate<'a>) -> Option<&'a NvccRepository> {
    let machine = candidate.question.target.machine;
    let rows = &candidate.question.matrix.nvcc_repositories;
    rows.iter().find(|row| serves(candidate, &row.base) && row.machines.contains_key(&machine))
}

fn at_vendor<'a>(candidate: &Candidate<'a>) -> Option<NvccChoice<'a>> {
    let matrix = candidate.question.matrix;
    let toolkit = &candidate.variant.toolkit;
    let row = repository(candidate)?;
    row.cuda.iter().find(|cuda| minor_of(cuda) == minor_of(toolkit))?;
    let names = matrix.nvcc_vendor.iter().find(|names| {
        let last = names.last.as_ref().is_none_or(|last| minor_of(toolkit) <= minor_of(last));
        minor_of(&names.first) <= minor_of(toolkit) && last
    })?;
    let versioned = |name: &String| format!("{name}-{}-{}", toolkit.major(), toolkit.minor());
    // A patch release whose profilers were not read has those of its minor: the repository keeps them.
    let of_minor =
        |row: &&Profilers| row.cuda.major() == toolkit.major() && row.cuda.minor() == toolkit.minor();
    let own = matrix.profilers.iter().find(|row| row.cuda == *toolkit);
    let profilers = own.or_else(|| matrix.profilers.iter().filter(of_minor).max_by_key(|row| &row.cuda));
    let profilers = profilers.into_iter().flat_map(|row| std::iter::once(&row.compute).chain(&row.systems));
    let nvcc = Nvcc {
        source: NvccSource::Vendor,
        packages: names.packages.iter().map(versioned).chain(profilers.cloned()).collect(),
        component: None,
        gcc: host_gcc(candidate)?,
        repository: Some(VendorRepository {
            path: format!("{}/{}", row.path, row.machines.get(&candidate.question.target.machine)?),
            key: row.key.clone(),
            fingerprint: row.fingerprint.clone(),
        }),
    };
    Some(NvccChoice { nvcc, parts: &names.headers, source: &row.source })
}
