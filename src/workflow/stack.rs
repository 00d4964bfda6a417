//! The stack of a request: spec, target and matrix resolved.

use crate::model::compat::Matrix;
use crate::model::request::{LockOptions, RequestedSpec, TargetOptions};
use crate::model::resolve::{plan_report, refusal_text, resolve, unknown_code};
use crate::model::stack::Stack;
use crate::model::wrap::wrapped;
use crate::report::{Event, reporter};
use crate::settings::Settings;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::custom_base::{BaseAtHand, NamedBase, matrix_on};
use crate::workflow::error::CommandError;
use crate::workflow::local_wheels::validate;
use crate::workflow::lock_error::ImpossibleStack;
use crate::workflow::target::{options, target};

/// The stack for what was requested, or every reason why there is none. Asks neither engine nor network: a base that had to be
/// looked into is given.
pub(crate) fn stack(
    settings: &Settings,
    spec: &RequestedSpec,
    source: &LockOptions,
    machine: &TargetOptions,
    named: Option<&NamedBase>,
) -> Result<Stack, CommandError> {
    let matrix = matrix_on(named, settings);
    let stack = resolved(settings, spec, source, machine, matrix)?;
    validate(settings, &stack, source, matrix)?;
    Ok(stack)
}

/// The stack of a request on the base that is known without an engine.
pub(crate) fn stack_at_hand(
    settings: &Settings,
    wanted: &BuildRequest,
    base: &BaseAtHand,
) -> Result<Stack, CommandError> {
    let BuildRequest { spec, source, target, .. } = wanted;
    let stack = resolved(settings, spec, source, target, base.possible())?;
    validate(settings, &stack, source, &base.matrix)?;
    Ok(stack)
}

fn resolved(
    settings: &Settings,
    spec: &RequestedSpec,
    source: &LockOptions,
    machine: &TargetOptions,
    matrix: &Matrix,
) -> Result<Stack, CommandError> {
    let target = target(machine, &settings.target, matrix, &*reporter(settings.output))?;
    let options = options(machine, source, settings);
    let answer = resolve(spec.parsed(), &target, matrix, &options);
    let stack = answer.map_err(|refusal| ImpossibleStack {
        text: wrapped(&refusal_text(&refusal, &target), settings.output.talk_width),
        plan: Box::new(plan_report(
            spec.written(),
            spec.parsed(),
            &target,
            source.provider().as_str(),
            &Err(refusal),
        )),
    })?;
    if let Some(text) = unknown_code(&stack) {
        reporter(settings.output).report(Event::Warning { text });
    }
    Ok(stack)
}
