//! Requested packages against the stack, by the matrix alone: before an engine or an index is asked.

use crate::model::compat::Matrix;
use crate::model::project::requirement_name;
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

/// Returns the release of each requested package that fits the stack, or every known mismatch. The matrix has the row of the base,
/// if that is known.
pub(crate) fn chosen_companions(
    wanted: &BuildRequest,
    spec: &Spec,
    stack: &Stack,
    options: &ResolveOptions,
    matrix: &Matrix,
) -> Result<Vec<CompanionChoice>, Box<Unsatisfiable>> {
    let allow_source: Vec<_> = wanted.added.allow_source.iter().map(|source| source.name.clone()).collect();
    let of_matrix = |text: &&String| !is_of_its_own_index(text, wanted, matrix);
    let requirements: Vec<_> = wanted.added.python.iter().filter(of_matrix).cloned().collect();
    let request =
        CompanionRequest { spec, matrix, options, requirements: &requirements, allow_source: &allow_source };
    companions(request, stack)
}

/// Whether a package comes from an index of its own, whose builds the matrix does not know: onnxruntime-gpu 1.18 for CUDA 12. Pages of
/// packages that are built for one torch are in the matrix.
fn is_of_its_own_index(requirement: &str, wanted: &BuildRequest, matrix: &Matrix) -> bool {
    let Ok(name) = requirement_name(requirement) else { return false };
    let is_coupled = matrix.coupled_packages.iter().any(|row| row.package == name);
    !is_coupled && wanted.added.python_index.iter().any(|pin| pin.name == name)
}

/// Rejects requested packages that are known not to fit the stack; warns about misleading names.
pub(crate) fn check_companions(
    settings: &Settings,
    wanted: &BuildRequest,
    stack: &Stack,
    matrix: &Matrix,
) -> Result<(), CommandError> {
    let spec = wanted.spec.parsed();
    let options = options(&wanted.target, &wanted.source, settings);
    match chosen_companions(wanted, spec, stack, &options, matrix) {
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
            let provider = wanted.source.provider().as_str();
            let plan = plan_report(wanted.spec.written(), spec, &stack.target, provider, &Err(refusal));
            Err(ImpossibleStack { text, plan: Box::new(plan) }.into())
        }
    }
}
