//! `list`: what is published, and whether it runs on the target.

use crate::failure::Exit;
use crate::model::compat::tables::Product;
use crate::model::compat::{Matrix, TOOLKIT};
use crate::model::request;
use crate::model::resolve::{
    ListReport, ResolveOptions, entries, list_text, nothing_text, products_text, refusal_text, resolve,
};
use crate::model::spec::{CudaRequest, Spec, cuda_part, python_part};
use crate::model::target::Target;
use crate::model::wrap::wrapped;
use crate::report::{Printer, reporter};
use crate::settings::{Settings, UnknownStacks};
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;
use crate::workflow::supported::newest_patches;
use crate::workflow::target::{machine, target};

pub(super) fn list(args: &request::List, settings: &Settings) -> Result<Exit, CommandError> {
    let matrix = &settings.matrix;
    let filter = filter(args, matrix)?;
    let named = args.for_this_machine || !args.target.gpu.is_empty() || args.target.driver.is_some();
    let target = if named {
        target(&args.target, &settings.target, matrix, &*reporter(settings.output))?
    } else {
        Target::any(machine(&args.target, matrix))
    };
    let options = ResolveOptions {
        forward_compat: args.target.forward_compat,
        toolkit: settings.source.toolkit,
        no_source: args.target.no_source,
        refuse_unknown: settings.policy.unknown == Some(UnknownStacks::Refuse),
        ..ResolveOptions::default()
    };
    if let Some(spec) = filter.as_ref().filter(|spec| matrix.product(&spec.name).is_none())
        && let Err(mut refusal) = resolve(spec, &target, matrix, &options)
    {
        for alternative in &mut refusal.alternatives {
            alternative.command = format!("envforge list {}", alternative.spec);
        }
        Printer.say(&wrapped(&refusal_text(&refusal, &target), settings.output.talk_width));
        return Ok(Exit::No);
    }
    let mut found = entries(matrix, filter.as_ref(), &target, &options);
    if let Some(python) = &args.python {
        let bad = || RequestError::BadPart { option: "--python", value: python.clone() };
        let python = python_part(python).ok_or_else(bad)?;
        found.retain(|entry| entry.python.contains(&python));
    }
    if let Some(cuda) = &args.cuda {
        let bad = || RequestError::BadPart { option: "--cuda", value: cuda.clone() };
        let wanted = cuda_part(cuda).ok_or_else(bad)?;
        found.retain(|entry| has_cuda(entry.spec.clone(), wanted));
    }
    if !args.all {
        found = newest_patches(found);
    }
    if args.for_this_machine {
        found.retain(|entry| entry.runs_here != Some(false));
    }
    let report = ListReport::new(found);
    let is_empty = report.entries.is_empty();
    if settings.output.json {
        Printer.json(&report);
    } else if is_empty {
        let product = filter.as_ref().map(|spec| Spec::of(&spec.name));
        let text = nothing_text(&entries(matrix, product.as_ref(), &target, &options));
        Printer.say(&wrapped(&text, settings.output.talk_width));
    } else if filter.is_none() && !args.all {
        Printer.text(&products_text(&report.entries, matrix));
    } else {
        Printer.text(&list_text(&report.entries));
    }
    Ok(if is_empty { Exit::No } else { Exit::Done })
}

/// Whether a spec has this CUDA. The version of the product `cuda` is its CUDA.
fn has_cuda(mut spec: Spec, wanted: CudaRequest) -> bool {
    if spec.name == TOOLKIT
        && let Some(own) = spec.version.as_ref().and_then(|version| cuda_part(&version.to_string()))
    {
        spec.cuda = Some(own);
    }
    spec.restrict_cuda(wanted)
}

fn filter(args: &request::List, matrix: &Matrix) -> Result<Option<Spec>, CommandError> {
    if let Some(name) = &args.name {
        return Ok(Some(name.checked()?.parsed().clone()));
    }
    let framework = args.framework.as_deref().map(|framework| product(matrix, framework));
    Ok(framework.map(str::parse).transpose()?)
}

/// The product of a framework, by any word people use for it; a word that is none stays, for the refusal to name.
fn product<'a>(matrix: &'a Matrix, framework: &'a str) -> &'a str {
    let named = |product: &&Product| {
        product.framework == framework || product.aliases.iter().any(|alias| alias == framework)
    };
    matrix.products.iter().find(named).map_or(framework, |product| &product.name)
}
