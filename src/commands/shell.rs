//! `shell`: an image opened as a terminal, for one command, or behind a service.

use std::process::ExitCode;

use crate::commands::fail::fail;
use crate::model::request;
use crate::report::Event;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::interrupt::{interruptible, to_the_end};
use crate::workflow::project_trust::{Use, require_trust};
use crate::workflow::session::Session;
use crate::workflow::shell::{OpenOutcome, drive_it, open, project_of, until_ended};

/// What `docker run` exits with when itself fails.
const OWN_FAILURE: u8 = 125;

/// Runs the command; its exit code is the program's.
pub(crate) fn run(args: &request::Shell, settings: &Settings) -> ExitCode {
    match to_the_end(shell(args, settings), settings.output) {
        Ok(code) => code.into(),
        Err(error) if error.is_interrupted() => error.exit().into(),
        Err(error) => {
            fail(&error, settings.output.color);
            OWN_FAILURE.into()
        }
    }
}

async fn shell(args: &request::Shell, settings: &Settings) -> Result<u8, CommandError> {
    let project = match &args.image {
        None if !args.start.attach => Some(project_of(args, settings)?),
        _ => None,
    };
    if let Some(wanted) = &project {
        interruptible(require_trust(wanted, Use::Shell, args.trust, settings)).await?;
    }
    let session = interruptible(Session::open(settings, None)).await?;
    // From here on signals are the program's.
    match interruptible(Box::pin(open(&session, args, project.as_ref()))).await? {
        OpenOutcome::Served { told, container, tunnels: _tunnels } => {
            told.print(settings);
            let Some(container) = container else { return Ok(0) };
            let text = "press Ctrl-C to stop (use --detach to keep it running)".to_owned();
            session.reporter.report(Event::Note { text });
            until_ended(&session, &told.name, &container).await
        }
        OpenOutcome::Program(started) => {
            let code = drive_it(&session, *started).await?;
            Ok(code)
        }
    }
}
