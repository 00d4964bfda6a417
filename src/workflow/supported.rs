//! Which published variants a filter covers and the target can run, for `build --all-supported`: hours of compiling are
//! started for what is named alone.

use std::collections::BTreeSet;

use crate::model::compat::tables::Status;
use crate::model::request::{RequestedSpec, TargetOptions};
use crate::model::resolve::{ListEntry, ResolveOptions, entries, plan_report, refusal_text, resolve};
use crate::model::spec::Spec;
use crate::model::wrap::wrapped;
use crate::report::reporter;
use crate::settings::{Settings, UnknownStacks};
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::ImpossibleStack;
use crate::workflow::request_error::RequestError;
use crate::workflow::target::target;

/// The specs of all variants that the filter covers and the target can run, newest patches only.
pub(crate) fn supported(
    filter: &RequestedSpec,
    machine: &TargetOptions,
    settings: &Settings,
) -> Result<Vec<RequestedSpec>, CommandError> {
    let matrix = &settings.matrix;
    let spec = filter.parsed();
    let target = target(machine, &settings.target, matrix, &*reporter(settings.output))?;
    let options = ResolveOptions {
        forward_compat: machine.forward_compat,
        no_source: true,
        refuse_unknown: settings.policy.unknown == Some(UnknownStacks::Refuse),
        ..ResolveOptions::default()
    };
    let mut found = newest_patches(entries(matrix, Some(spec), &target, &options));
    found.retain(|entry| entry.runs_here != Some(false) && entry.gpu.is_some());
    if found.is_empty() {
        // The refusal says why, with what is nearest; without one only unlisted variants are covered.
        let Err(refusal) = resolve(spec, &target, matrix, &options) else {
            return Err(RequestError::NothingListed { filter: filter.written().to_owned() }.into());
        };
        let text = wrapped(&refusal_text(&refusal, &target), settings.output.talk_width);
        let plan = Box::new(plan_report(filter.written(), spec, &target, "auto", &Err(refusal)));
        return Err(ImpossibleStack { text, plan }.into());
    }
    Ok(found.into_iter().map(|entry| named(entry, spec).into()).collect())
}

/// The spec of an entry, with what the filter says of Python and flavour.
fn named(entry: ListEntry, filter: &Spec) -> Spec {
    Spec { python: filter.python, flavour: filter.flavour, ..entry.spec }
}

/// Of each minor release and CUDA the newest patch, without what upstream lists nowhere. Entries come newest first.
pub(crate) fn newest_patches(entries: Vec<ListEntry>) -> Vec<ListEntry> {
    let mut seen = BTreeSet::new();
    let mut newest = |entry: &ListEntry| {
        let spec = &entry.spec;
        let minor = spec.version.as_ref().map(|version| (version.major(), version.minor()));
        seen.insert((spec.name.clone(), minor, spec.cuda))
    };
    entries
        .into_iter()
        .filter(|entry| entry.status != Status::Unlisted)
        .filter(|entry| newest(entry))
        .collect()
}
