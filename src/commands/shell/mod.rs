//! `shell`: an image opened as a terminal or for one command. Reads top to bottom: image, container, program, end.

mod join;
mod labels;
mod launch;
mod of_project;
mod open;
mod serve;

use std::process::ExitCode;

use super::session::Session;
use super::{CommandError, fail, interruptible, to_the_end};
use crate::cli::ShellArgs;
use crate::engine::{Attached, Program};
use crate::report::Event;
use crate::settings::Settings;
use crate::shell::{Driven, ShellError, Tunnels, drive};

pub(super) use labels::Shell;
pub(super) use launch::ETC_LABEL;
pub(super) use open::shells;
pub(super) use serve::forget_client;

/// What `docker run` exits with when itself fails.
const OWN_FAILURE: u8 = 125;

/// Runs the command; its exit code is the program's.
pub(super) fn run(args: &ShellArgs, settings: &Settings) -> ExitCode {
    match to_the_end(shell(args, settings), settings.output) {
        Ok(code) => code.into(),
        Err(error @ CommandError::Interrupted) => error.exit().into(),
        Err(error) => {
            fail(&error, settings.output.color);
            OWN_FAILURE.into()
        }
    }
}

/// A program that was started.
struct Started {
    /// Its container.
    container: String,
    program: Program,
    attached: Attached,
    terminal: bool,
    /// Where it wrote its process id, if it runs beside the container's own command.
    pid_file: Option<String>,
    /// What becomes of the container when the program has ended.
    then: Then,
    /// Ports of this machine that lead into it meanwhile.
    tunnels: Tunnels,
}

/// What becomes of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It goes.
    Remove,
    /// It goes with its last terminal.
    RemoveIfLast,
    /// It stays.
    Keep,
}

async fn shell(args: &ShellArgs, settings: &Settings) -> Result<u8, CommandError> {
    let session = interruptible(Session::open(settings, None)).await?;
    // From here on signals are the program's.
    match interruptible(Box::pin(open::open(&session, args))).await? {
        open::Opened::Served { told, container, tunnels: _tunnels } => {
            told.print(settings);
            let Some(container) = container else { return Ok(0) };
            let text = "Ctrl-C ends it; --detach leaves it running".to_owned();
            session.reporter.report(Event::Note { text });
            serve::until_ended(&session, &told.name, &container).await
        }
        open::Opened::Program(started) => {
            let code = drive_it(&session, *started).await?;
            Ok(code)
        }
    }
}

async fn drive_it(session: &Session<'_>, started: Started) -> Result<u8, CommandError> {
    let Started { container, program, attached, terminal, pid_file, then, tunnels: _tunnels } = started;
    let containers = &*session.containers;
    let driven = Driven { containers, container: &container, program, terminal, pid_file };
    let code = drive(&driven, attached).await;
    let goes = match then {
        Then::Remove => code.is_ok(),
        // Nobody is there to ask.
        Then::RemoveIfLast if matches!(code, Err(ShellError::EngineGone { .. })) => false,
        Then::RemoveIfLast => !containers.others_run(&container, &driven.program).await?,
        Then::Keep => false,
    };
    if goes {
        containers.stop(&container, 2).await?;
    } else if then == Then::RemoveIfLast && code.is_ok() {
        let text = "other terminals are open in this container: it stays until the last one closes";
        session.reporter.report(Event::Note { text: text.to_owned() });
    }
    Ok(code?)
}
