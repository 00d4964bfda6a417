//! One file per verb: each reads top to bottom like the diagram in `lib.rs` and joins core, edges and reporter.

mod error;
mod generate;
mod list;
mod plan;
mod target;

pub use error::{CommandError, Exit};

use std::process::ExitCode;

use crate::cli::{Cli, Command, GenerateCommand};
use crate::report::Printer;
use crate::settings::Settings;

/// Runs what was typed and gives the exit code. Errors are printed here, once.
pub fn run(cli: Cli, stderr_is_terminal: bool) -> ExitCode {
    let settings = match Settings::load(&cli.global, stderr_is_terminal) {
        Ok(settings) => settings,
        Err(error) => return fail(&CommandError::from(error), false),
    };
    let output = settings.output;
    match dispatch(cli.command, &settings) {
        Ok(exit) => exit.into(),
        Err(error) => fail(&error, output.color),
    }
}

fn dispatch(command: Command, settings: &Settings) -> Result<Exit, CommandError> {
    match command {
        Command::Plan(args) => plan::plan(&args, settings),
        Command::List(args) => list::list(&args, settings),
        Command::Generate(GenerateCommand::Completions(args)) => Ok(generate::completions(&args)),
        Command::Generate(GenerateCommand::Man(args)) => generate::man(&args),
    }
}

fn fail(error: &CommandError, color: bool) -> ExitCode {
    if !matches!(error, CommandError::Interrupted) {
        Printer.say(&error.report(color));
    }
    error.exit().into()
}
