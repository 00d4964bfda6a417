//! `shell`: an image opened as a terminal or for one command. Reads top to bottom: image, container, program, end.

mod container_spec;
mod explained;
mod image;
mod join;
mod launch;
mod limits;
mod mount_check;
mod open;
mod opened;
mod outcome;
mod project;
mod rows;
mod serve;
mod service_urls;
mod settled_mounts;
mod ssh_client;
mod volumes;

use crate::report::Event;
use crate::shell::{AttachTarget, ProgramEnd, ShellError, attach_terminal};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

pub(crate) use crate::shell::PassedSignals;
pub(crate) use crate::shell::labels::Shell;
pub(crate) use image::build_first;
pub(crate) use open::{open, shells};
pub(crate) use opened::{has_own_image, opened_images};
pub(crate) use outcome::{OpenOutcome, Started, Then};
pub(crate) use project::project_of;
#[cfg(test)]
pub(crate) use rows::{GpuRow, PortRow};
pub(crate) use rows::{ShellRow, shell_rows};
pub(crate) use serve::until_ended;
pub(crate) use ssh_client::forget_client;
pub(crate) use volumes::ETC_LABEL;

use explained::explained;

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Joins the program with this terminal until it ends, and ends its container as was agreed.
pub(crate) async fn drive_it(
    session: &Session<'_>,
    started: Started,
    signals: PassedSignals,
) -> Result<u8, CommandError> {
    let Started { container, program, attached, terminal, pid_file, then, opens_again: _, tunnels: _tunnels } =
        started;
    let containers = &*session.containers;
    let driven = AttachTarget { containers, container: &container, program, terminal, pid_file };
    let ended = attach_terminal(&driven, attached, signals).await;
    let goes = match then {
        Then::Remove => ended.is_ok(),
        // Nobody is there to ask.
        Then::RemoveIfLast if matches!(ended, Err(ShellError::EngineGone { .. })) => false,
        Then::RemoveIfLast => !containers.has_other_execs(&container, &driven.program).await?,
        Then::Keep => false,
    };
    if goes {
        containers.stop(&container, 2).await?;
    } else if then == Then::RemoveIfLast && ended.is_ok() {
        let text = "keeping the container until its other terminals are closed";
        session.reporter.report(Event::Note { text: text.to_owned() });
    }
    let ProgramEnd { code, errors } = ended?;
    if ![0, INTERRUPTED].contains(&code)
        && let Some(text) = explained(&String::from_utf8_lossy(&errors))
    {
        session.reporter.report(Event::Note { text });
    }
    Ok(code)
}
