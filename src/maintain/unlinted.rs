//! `plan DIR SPEC`: the plan of a matrix that is being edited, whatever the lint says of it.

use super::cli::PlanArgs;
use crate::commands::compat::files;
use crate::failure::Exit;
use crate::model::compat::{faults, read_unlinted};
use crate::model::resolve::{ResolveOptions, plan_text, refusal_text, resolve};
use crate::model::wrap::wrapped;
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::target::target;

pub(super) fn plan(args: PlanArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let files = files(&settings.paths.current_dir.join(&args.dir))?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let matrix = read_unlinted(&files)?;
    let reporter = reporter(settings.output);
    for fault in faults(&matrix) {
        reporter.report(Event::Warning { text: fault.to_string() });
    }
    let spec = args.spec.checked()?.parsed();
    let target = target(&args.target.into(), &settings.target, &matrix, &*reporter)?;
    match resolve(spec, &target, &matrix, &ResolveOptions::default()) {
        Ok(stack) => {
            Printer.text(&wrapped(&plan_text(&stack, &matrix), settings.output.width));
            Ok(Exit::Done)
        }
        Err(refusal) => {
            Printer.say(&wrapped(&refusal_text(&refusal, &target), settings.output.talk_width));
            Ok(Exit::No)
        }
    }
}
