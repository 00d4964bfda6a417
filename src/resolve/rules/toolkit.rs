//! Rules about the CUDA toolkit: the GPUs it knows, and where its compiler can be had.

use crate::resolve::candidate::{Candidate, gpu_label};
use crate::resolve::refusal::Refused;
use crate::resolve::rule::Rule;
use crate::stack::Flavour;
use crate::versions::ToolkitVersion;

/// The first CUDA whose nvcc wheel is complete enough to compile with.
const FIRST_NVCC_WHEEL_MAJOR: u32 = 13;
/// Distributions the vendor keeps apt repositories for.
const VENDOR_DISTRIBUTIONS: [&str; 2] = ["debian", "ubuntu"];

/// The variant's toolkit is newer than the last one that knows a GPU of the target.
pub(super) fn toolkit_drops_gpu(candidate: &Candidate<'_>) -> Option<Refused> {
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
            "CUDA {} dropped {} ({}): the last CUDA for it is {last}",
            candidate.variant.cuda.dotted(),
            gpu_label(question.target, gpu),
            row.arch
        ));
        source.get_or_insert(&row.source);
    }
    Some(Refused::new(Rule::ToolkitDropsGpu, texts.join("; "), source?))
}

fn minor_of(toolkit: &ToolkitVersion) -> (u32, u32) {
    (toolkit.major(), toolkit.minor())
}

/// No configured source holds the nvcc of the variant's CUDA for this base.
pub(super) fn toolkit_unavailable(candidate: &Candidate<'_>) -> Option<Refused> {
    if candidate.question.spec.flavour != Flavour::Devel || nvcc_source(candidate).is_some() {
        return None;
    }
    let base = candidate.base?;
    let sources = candidate.question.options.toolkit;
    let state = |on: bool| if on { "" } else { " (switched off)" };
    let own = base.nvcc.as_ref().map_or_else(
        || format!("{} has no nvcc package", base.name),
        |nvcc| format!("{} packages nvcc {nvcc}", base.name),
    );
    let text = format!(
        "no configured source has nvcc {}: {own}{}; wheels hold nvcc from CUDA {FIRST_NVCC_WHEEL_MAJOR} on{}; \
         the vendor's apt repository{}",
        candidate.variant.cuda.dotted(),
        state(sources.distribution),
        state(sources.wheels),
        if sources.vendor { " serves other distributions" } else { " is switched off" }
    );
    Some(Refused::new(Rule::ToolkitUnavailable, text, &base.source))
}

/// Where nvcc would come from, in words: the distribution, wheels or the vendor's repository.
pub(crate) fn nvcc_source(candidate: &Candidate<'_>) -> Option<&'static str> {
    let base = candidate.base?;
    let toolkit = &candidate.variant.toolkit;
    let sources = candidate.question.options.toolkit;
    let packaged = base.nvcc.as_ref().is_some_and(|nvcc| minor_of(nvcc) == minor_of(toolkit));
    if sources.distribution && packaged {
        return Some("the base distribution's package");
    }
    if sources.wheels && toolkit.major() >= FIRST_NVCC_WHEEL_MAJOR {
        return Some("CUDA wheels of the package index");
    }
    let served = VENDOR_DISTRIBUTIONS.contains(&base.distribution.as_str());
    (sources.vendor && served).then_some("the vendor's apt repository")
}
