//! `shell`: an image opened as a terminal, for one command, or behind a service.

use std::process::ExitCode;

use crate::commands::fail::fail;
use crate::failure::{Exit, Failure, SHELL_FAILURE};
use crate::model::request;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::shell::ShellError;
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::confirm::{can_ask, choose};
use crate::workflow::error::CommandError;
use crate::workflow::interrupt::{Signals, to_the_end};
use crate::workflow::own_images::{is_outside_project, nothing_built};
use crate::workflow::project_trust::{Judged, Use, require_trust};
use crate::workflow::request_error::RequestError;
use crate::workflow::session::{LazySession, Session};
use crate::workflow::shell::{
    OpenOutcome, PassedSignals, Then, drive_it, has_own_image, open, opened_images, project_of, until_ended,
};
use crate::workflow::spec_parts::restricted;
use crate::workflow::verify_target::spec_of;

/// Runs the command; its exit code is the program's.
pub(crate) fn run(args: &request::Shell, settings: &Settings) -> ExitCode {
    match to_the_end(shell(args, settings), settings.output) {
        Ok(code) => code.into(),
        Err(error) if error.is_interrupted() => error.exit().into(),
        Err(error) => {
            fail(&error, settings.output.color);
            SHELL_FAILURE.into()
        }
    }
}

async fn shell(args: &request::Shell, settings: &Settings) -> Result<u8, CommandError> {
    // Docker's `run -v /data:/data IMAGE CMD`.
    let first = args.image.as_ref().or(args.command.first());
    if let Some(text) = first
        && let Some(mount) = request::mount_hint(text)
    {
        let verbose = settings.output.verbose > 0;
        return Err(ShellError::MountAsImage { text: text.clone(), mount, verbose }.into());
    }
    let is_unnamed = args.image.is_none() && !args.start.attach;
    let typed = args.command.split(|word| word == "--").collect::<Vec<_>>();
    let words = typed.concat();
    if let [image, command @ ..] = words.as_slice()
        && is_unnamed
        && spec_of(image, &settings.matrix).is_some()
    {
        let (image, command) = (image.clone(), command.join(" "));
        return Err(ShellError::ImageAsCommand { image, command }.into());
    }
    let is_project = args.environment.is_some() || args.project.is_some() || !is_outside_project(settings);
    let project = if is_unnamed && is_project {
        Some(BuildRequest { trust: args.trust, ..project_of(args, settings)?.with_parts(&args.parts)? })
    } else {
        None
    };
    let mut signals = Signals::listen()?;
    let judged = match &project {
        Some(wanted) => {
            signals.interruptible(require_trust(wanted, Use::Shell, args.trust, settings)).await?
        }
        None => Judged::default(),
    };
    let mut args = args.clone();
    if let Some(option) = args.parts.option().filter(|_| project.is_none()) {
        let image = args.image.as_deref().filter(|_| !args.start.attach);
        let spec = image.and_then(|image| spec_of(image, &settings.matrix));
        let spec = spec.ok_or(RequestError::PartWithoutSpec { option })?;
        args.image = Some(restricted(&spec, &args.parts)?.written().to_owned());
    }
    let is_last = is_unnamed && !is_project && args.image.is_none();
    // What no engine can have is said without one.
    if is_last && !has_own_image(&Store::open(&settings.paths.cache, &settings.paths.state)?)? {
        return Err(nothing_built(settings));
    }
    let lazy = LazySession::of(settings);
    let session = signals.interruptible(Box::pin(lazy.session())).await?;
    if is_last {
        args.image = Some(signals.interruptible(last_image(session)).await?);
    }
    let opened = open(session, &args, project.as_ref().map(|wanted| (wanted, &judged)));
    // Once the program has started signals are its own, also those that come before it is attached.
    let passed = PassedSignals::listen()?;
    match signals.interruptible(Box::pin(opened)).await? {
        OpenOutcome::Served { told, container, tunnels: _tunnels } => {
            told.print(settings);
            let Some(container) = container else {
                say(settings, &format!("next: envforge logs {0}, envforge stop {0}", told.name));
                return Ok(0);
            };
            let text = "press Ctrl-C to stop (use --detach to keep it running)".to_owned();
            session.reporter.report(Event::Note { text });
            until_ended(session, &told.name, &container, &mut signals).await
        }
        OpenOutcome::Program(started) => {
            // After a command its output and exit code are all that the caller wants.
            let is_opened = started.terminal && args.command.is_empty();
            let image = args.image.as_deref().filter(|_| !args.start.attach);
            let is_known = started.opens_again || started.then == Then::Keep;
            let next = (is_opened && is_known).then(|| next_step(image, started.then));
            let code = drive_it(session, *started, passed).await?;
            if let Some(next) = next {
                say(settings, &next);
            }
            Ok(code)
        }
    }
}

/// Returns the line that names the next command after a terminal.
fn next_step(image: Option<&str>, then: Then) -> String {
    let image = image.map_or_else(String::new, |image| format!(" {image}"));
    match then {
        Then::Keep => "next: envforge ps lists the container, which goes on until `envforge stop`".to_owned(),
        Then::Remove | Then::RemoveIfLast => {
            format!("next: envforge shell{image} opens it again; your home directory is kept")
        }
    }
}

/// Prints a line on standard error, except with `--quiet` and `--json`.
fn say(settings: &Settings, text: &str) {
    if !settings.output.quiet && !settings.output.json {
        Printer.say(text);
    }
}

/// The image last opened or built here; on a terminal the user chooses among several.
async fn last_image(session: &Session<'_>) -> Result<String, CommandError> {
    let mut names = opened_images(session).await?;
    if names.is_empty() {
        return Err(nothing_built(session.settings));
    }
    let at = match names.len() {
        1 => 0,
        _ if can_ask() => choose("open which image? (last used first)", &names).await.ok_or(NoChoice)?,
        _ => 0,
    };
    let name = names.swap_remove(at);
    session.reporter.report(Event::Note { text: format!("no project here: opening {name}") });
    Ok(name)
}

/// The answer to the question for an image is none of them.
#[derive(Debug, thiserror::Error)]
#[error("no image chosen")]
struct NoChoice;

impl Failure for NoChoice {
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_step_after_a_terminal_depends_on_its_container() {
        let again = next_step(Some("pytorch-cuda:2.8"), Then::RemoveIfLast);
        assert!(again.starts_with("next: envforge shell pytorch-cuda:2.8 opens it again"), "{again}");
        assert!(next_step(None, Then::Remove).starts_with("next: envforge shell opens it again"));
        assert!(next_step(None, Then::Keep).starts_with("next: envforge ps lists the container"));
    }
}
