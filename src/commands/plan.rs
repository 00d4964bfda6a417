//! `plan`: spec and target to a stack or a refusal. Touches neither network nor engine.

use super::target::target;
use super::{CommandError, Exit};
use crate::cli::PlanArgs;
use crate::compat::Matrix;
use crate::report::{Printer, reporter};
use crate::resolve::{ResolveOptions, plan_report, plan_text, refusal_text, resolve};
use crate::settings::Settings;
use crate::spec::Spec;

pub(super) fn plan(args: &PlanArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let matrix = Matrix::embedded();
    let spec: Spec = args.spec.parse()?;
    let target = target(&args.target, &settings.target, matrix, &*reporter(settings.output))?;
    let options = ResolveOptions {
        forward_compat: args.target.forward_compat,
        base: args.base.clone(),
        ..ResolveOptions::default()
    };
    let answer = resolve(&spec, &target, matrix, &options);
    if settings.output.json {
        Printer.json(&plan_report(&args.spec, &spec, &target, "auto", &answer));
    } else {
        match &answer {
            Ok(stack) => Printer.text(&plan_text(stack)),
            Err(refusal) => Printer.say(&refusal_text(refusal, &target)),
        }
    }
    Ok(if answer.is_ok() { Exit::Done } else { Exit::No })
}
