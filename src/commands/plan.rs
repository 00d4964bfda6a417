//! `plan`: spec and target to a stack or a refusal. Touches neither network nor engine.

use super::target::target;
use super::wanted::wanted;
use super::{CommandError, Exit};
use crate::cli::{LockSource, PlanArgs};
use crate::compat::Matrix;
use crate::report::{Printer, reporter};
use crate::resolve::{ResolveOptions, plan_report, plan_text, refusal_text, resolve};
use crate::settings::Settings;
use crate::spec::Spec;

pub(super) fn plan(args: &PlanArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let matrix = Matrix::embedded();
    let source = LockSource { base: args.base.clone(), ..LockSource::default() };
    let wanted = wanted(args.spec.as_deref(), &args.project, &source, &args.target, settings)?;
    let spec: Spec = wanted.spec.parse()?;
    let target = target(&wanted.target, &settings.target, matrix, &*reporter(settings.output))?;
    let options = ResolveOptions {
        forward_compat: wanted.target.forward_compat,
        base: wanted.source.base.clone(),
        toolkit: settings.toolkit,
    };
    let answer = resolve(&spec, &target, matrix, &options);
    if settings.output.json {
        Printer.json(&plan_report(&wanted.spec, &spec, &target, "auto", &answer));
    } else {
        match &answer {
            Ok(stack) => Printer.text(&plan_text(stack)),
            Err(refusal) => Printer.say(&refusal_text(refusal, &target)),
        }
    }
    Ok(if answer.is_ok() { Exit::Done } else { Exit::No })
}
