//! `stop` and `logs`: containers by the names that `ps` shows.

use camino::Utf8PathBuf;
use futures_util::StreamExt as _;
use serde::Serialize;

use crate::engine::{Containers as _, Output};
use crate::failure::Exit;
use crate::model::request::{self, ProjectOptions};
use crate::report::Printer;
use crate::settings::Settings;
use crate::shell::{ShellError, caller_ids};
use crate::workflow::error::CommandError;
use crate::workflow::project::{folder_of, found};
use crate::workflow::session::connect;
use crate::workflow::shell::{Shell, forget_client, shells};

#[derive(Serialize)]
struct Stopped<'a> {
    schema: u32,
    stopped: Vec<&'a str>,
}

pub(super) async fn stop(args: &request::Stop, settings: &Settings) -> Result<Exit, CommandError> {
    let docker = connect(settings).await?;
    let shells = shells(&docker).await?;
    let mine = format!("{}:", caller_ids().0);
    let chosen: Vec<&Shell> = if args.all {
        shells.iter().filter(|shell| shell.user.starts_with(&mine)).collect()
    } else if args.names.is_empty() {
        let folder = project_folder(settings)?;
        let here = |shell: &&Shell| shell.folder == folder && shell.user.starts_with(&mine) && shell.runs();
        let here: Vec<_> = shells.iter().filter(here).collect();
        if here.is_empty() {
            let known = shells.iter().map(|shell| shell.name.clone()).collect();
            return Err(
                ShellError::NotFound { what: "is running for this directory".to_owned(), known }.into()
            );
        }
        here
    } else {
        args.names.iter().map(|name| named(&shells, name)).collect::<Result<_, _>>()?
    };
    let stops = chosen.iter().map(|shell| docker.stop(&shell.container.id, args.time.into()));
    futures_util::future::try_join_all(stops).await?;
    for shell in &chosen {
        forget_client(&settings.paths.state, &shell.name)?;
    }
    let stopped: Vec<_> = chosen.iter().map(|shell| shell.name.as_str()).collect();
    if settings.output.json {
        Printer.json(&Stopped { schema: 1, stopped });
    } else {
        for name in stopped {
            Printer.text(name);
        }
    }
    Ok(Exit::Done)
}

/// The folder whose containers `shell` joins here: the project's, else the working directory.
fn project_folder(settings: &Settings) -> Result<Utf8PathBuf, CommandError> {
    let here = &settings.paths.current_dir;
    match found(&ProjectOptions::default(), settings) {
        Ok(file) => folder_of(&file, file.as_str()),
        Err(_) => Ok(here.canonicalize_utf8().unwrap_or_else(|_| here.clone())),
    }
}

pub(super) async fn logs(args: &request::Logs, settings: &Settings) -> Result<Exit, CommandError> {
    let docker = connect(settings).await?;
    let shells = shells(&docker).await?;
    let shell = named(&shells, &args.name)?;
    let mut lines = docker.logs(&shell.container.id, args.follow, args.tail);
    while let Some(part) = lines.next().await {
        let written = match part? {
            Output::Out(bytes) => Printer.pass_out(&bytes),
            Output::Err(bytes) => Printer.pass_err(&bytes),
        };
        // A closed pipe is the reader's choice.
        if written.is_err() {
            break;
        }
    }
    Ok(Exit::Done)
}

fn named<'a>(shells: &'a [Shell], name: &str) -> Result<&'a Shell, ShellError> {
    shells.iter().find(|shell| shell.name == name).ok_or_else(|| ShellError::NotFound {
        what: format!("is named `{name}`"),
        known: shells.iter().map(|shell| shell.name.clone()).collect(),
    })
}
