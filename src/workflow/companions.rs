//! Requested packages against the stack, by the matrix alone: before an engine or an index is asked.

use crate::model::compat::Matrix;
use crate::model::resolve::{
    CompanionChoice, CompanionRequest, ResolveOptions, Unsatisfiable, companions, plan_report, refusal_text,
};
use crate::model::spec::Spec;
use crate::model::stack::Stack;
use crate::model::wrap::wrapped;
use crate::report::{Event, reporter};
use crate::settings::Settings;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::ImpossibleStack;
use crate::workflow::target::options;

/// Returns the release of each requested package that fits the stack, or every known mismatch.
pub(crate) fn chosen_companions(
    wanted: &BuildRequest,
    spec: &Spec,
    stack: &Stack,
    options: &ResolveOptions,
) -> Result<Vec<CompanionChoice>, Box<Unsatisfiable>> {
    let allow_source: Vec<_> = wanted.added.allow_source.iter().map(|source| source.name.clone()).collect();
    let request = CompanionRequest {
        spec,
        matrix: Matrix::current(),
        options,
        requirements: &wanted.added.python,
        allow_source: &allow_source,
    };
    companions(request, stack)
}

/// Rejects requested packages that are known not to fit the stack; warns about misleading names.
pub(crate) fn check_companions(
    settings: &Settings,
    wanted: &BuildRequest,
    stack: &Stack,
) -> Result<(), CommandError> {
    let spec: Spec = wanted.spec.parse()?;
    let options = options(&wanted.target, &wanted.source, settings);
    match chosen_companions(wanted, &spec, stack, &options) {
        Ok(choices) => {
            let reporter = reporter(settings.output);
            for text in choices.into_iter().filter_map(|choice| choice.warning) {
                reporter.report(Event::Warning { text });
            }
            Ok(())
        }
        Err(refusal) => {
            let refusal = *refusal;
            let text = wrapped(&refusal_text(&refusal, &stack.target), settings.output.talk_width);
            let provider = wanted.source.provider();
            let plan = plan_report(&wanted.spec, &spec, &stack.target, provider, &Err(refusal));
            Err(ImpossibleStack { text, plan: Box::new(plan) }.into())
        }
    }
}
