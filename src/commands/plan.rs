//! `plan`: spec and target to a stack or a refusal. Touches neither network nor engine.

use crate::failure::Exit;
use crate::model::request::{self, LockOptions};
use crate::model::resolve::{
    companions_text, device_code_share, device_code_text, nearest_published, not_checked, not_checked_text,
    plan_report, plan_text, refusal_text, resolve, source_report, source_text, unknown_code,
};
use crate::model::wrap::wrapped;
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::workflow::build_machine::this_machine;
use crate::workflow::build_request::wanted;
use crate::workflow::companions::chosen_companions;
use crate::workflow::custom_base::BaseAtHand;
use crate::workflow::error::CommandError;
use crate::workflow::target::{options, target};

pub(super) fn plan(args: &request::Plan, settings: &Settings) -> Result<Exit, CommandError> {
    let source = LockOptions {
        base: args.base.clone(),
        with: args.with.clone(),
        as_of: args.as_of.clone(),
        allow_source: args.allow_source.clone(),
        ..LockOptions::default()
    };
    let wanted = wanted(args.spec.as_ref(), &args.project, &source, &args.target, settings)?
        .with_parts(&args.parts)?;
    let spec = wanted.spec.parsed();
    let base = BaseAtHand::read(&wanted, settings)?;
    let matrix = base.possible();
    let target = target(&wanted.target, &settings.target, matrix, &*reporter(settings.output))?;
    let options = options(&wanted.target, &wanted.source, settings);
    let mut chosen = Vec::new();
    let answer = resolve(spec, &target, matrix, &options).and_then(|stack| {
        chosen =
            chosen_companions(&wanted, spec, &stack, &options, &base.matrix).map_err(|refusal| *refusal)?;
        Ok(base.assumed(stack))
    });
    let unread = answer.as_ref().ok().and_then(|stack| base.warning(stack));
    for text in unread.clone().into_iter().chain(answer.as_ref().ok().and_then(unknown_code)) {
        reporter(settings.output).report(Event::Warning { text });
    }
    let unchecked = answer
        .as_ref()
        .map_or_else(|_| Vec::new(), |stack| not_checked(&wanted.added.python, &chosen, stack));
    let share = answer.as_ref().ok().and_then(|stack| device_code_share(stack, matrix));
    if settings.output.json {
        let report = plan_report(wanted.spec.written(), spec, &target, "auto", &answer)
            .with_companions(chosen)
            .with_not_checked(unchecked)
            .with_device_code(share)
            .with_unread_base(unread);
        let built = answer.as_ref().ok().and_then(|stack| source_report(stack, this_machine()));
        Printer.json(&match built {
            Some(source) => report.with_source(source, &nearest_published(spec, &target, matrix, &options)),
            None => report,
        });
    } else {
        let last = device_code_text(share.as_ref())
            + &companions_text(&chosen)
            + &not_checked_text(&unchecked, matrix);
        match &answer {
            Ok(stack) if stack.source_build.is_some() => {
                let nearest = nearest_published(spec, &target, matrix, &options);
                let first = source_text(stack, &nearest, this_machine());
                Printer.text(&wrapped(&(first + &plan_text(stack, matrix) + &last), settings.output.width));
            }
            Ok(stack) => Printer.text(&wrapped(&(plan_text(stack, matrix) + &last), settings.output.width)),
            Err(refusal) => {
                Printer.say(&wrapped(&refusal_text(refusal, &target), settings.output.talk_width));
            }
        }
    }
    Ok(if answer.is_ok() { Exit::Done } else { Exit::No })
}
