//! The stack of a request: spec, target and matrix resolved.

use crate::model::request::{LockOptions, TargetOptions};
use crate::model::resolve::{plan_report, refusal_text, resolve, unknown_code};
use crate::model::spec::Spec;
use crate::model::stack::Stack;
use crate::model::wrap::wrapped;
use crate::report::{Event, reporter};
use crate::settings::Settings;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::custom_base::{BaseAtHand, NamedBase};
use crate::workflow::error::CommandError;
use crate::workflow::local_wheels::validate;
use crate::workflow::lock_error::ImpossibleStack;
use crate::workflow::target::{options, target};

/// The stack for what was typed, or every reason why there is none. Asks neither engine nor network: a base that had to be
/// looked into is given.
pub(crate) fn stack(
    settings: &Settings,
    typed: &str,
    source: &LockOptions,
    machine: &TargetOptions,
    named: Option<&NamedBase>,
) -> Result<Stack, CommandError> {
    stack_on(settings, typed, source, machine, &BaseAtHand::of(named))
}

/// The stack of a request on the base that is known without an engine.
pub(crate) fn stack_at_hand(
    settings: &Settings,
    wanted: &BuildRequest,
    base: &BaseAtHand,
) -> Result<Stack, CommandError> {
    stack_on(settings, &wanted.spec, &wanted.source, &wanted.target, base)
}

fn stack_on(
    settings: &Settings,
    typed: &str,
    source: &LockOptions,
    machine: &TargetOptions,
    base: &BaseAtHand,
) -> Result<Stack, CommandError> {
    let matrix = &*base.matrix;
    let spec: Spec = typed.parse()?;
    let target = target(machine, &settings.target, matrix, &*reporter(settings.output))?;
    let options = options(machine, source, settings);
    let answer = resolve(&spec, &target, matrix, &options);
    let stack = answer.map_err(|refusal| ImpossibleStack {
        text: wrapped(&refusal_text(&refusal, &target), settings.output.talk_width),
        plan: Box::new(plan_report(typed, &spec, &target, source.provider(), &Err(refusal))),
    })?;
    if let Some(text) = unknown_code(&stack) {
        reporter(settings.output).report(Event::Warning { text });
    }
    validate(settings, &stack, source, base.facts())?;
    Ok(stack)
}
