//! The maintainers' program: it reviews the matrix against the package index and writes the generated pages of the book. Compiled
//! with the feature `maintain` alone; no other file uses it.

mod cli;
mod comparison;
mod reference;
mod refresh;
mod refresh_matrix;
mod row_drafts;
mod rule_guide;
mod site;
mod support;
mod unlinted;

use std::ffi::OsString;
use std::process::ExitCode;

use camino::Utf8Path;
use clap::{CommandFactory as _, Parser as _};

use self::cli::{Cli, Command};
use self::rule_guide::rules_text;
use crate::commands::with_settings;
use crate::failure::Exit;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::interrupt::until_interrupted;

/// Runs a command of the maintainers' program and returns the exit code, which means what it means of `envforge`.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Cli { global, command } = Cli::parse_from(arguments);
    with_settings(&global.into(), true, |settings| Ok(dispatch(command, settings)?.into()))
}

fn dispatch(command: Command, settings: &Settings) -> Result<Exit, CommandError> {
    match command {
        Command::Refresh(args) => {
            return until_interrupted(refresh_matrix::refresh(&args, settings), settings.output);
        }
        Command::Plan(args) => return unlinted::plan(args, settings),
        Command::Site { dir } => {
            let folder = settings.paths.current_dir.join(dir);
            let pages = site::site(&settings.matrix);
            write_files(&folder, pages.into_iter().map(|page| (page.name, page.text)))?;
        }
        Command::Docs { dir } => {
            let mut program = crate::cli::Cli::command();
            program.build();
            let pages =
                reference::commands::pages(&program).into_iter().chain(reference::pages(&settings.matrix));
            write_files(&settings.paths.current_dir.join(dir), pages)?;
        }
        Command::Rules => Printer.text(&rules_text(&settings.matrix)),
        Command::Support => Printer.text(&reference::matrix_page(&settings.matrix)),
    }
    Ok(Exit::Done)
}

/// Writes files below a folder and prints the path of each.
fn write_files(
    folder: &Utf8Path,
    files: impl IntoIterator<Item = (String, String)>,
) -> Result<(), CommandError> {
    for (name, text) in files {
        let path = folder.join(name);
        write_atomically(&path, text.as_bytes())?;
        Printer.text(path.as_str());
    }
    Ok(())
}
