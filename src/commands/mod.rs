//! One file per verb: each reads top to bottom like the diagram in `lib.rs` and joins core, edges and reporter.

mod build;
mod check;
mod error;
mod export;
mod generate;
mod list;
mod lock;
mod plan;
mod session;
mod space;
mod target;

pub use error::{CommandError, Exit};

use std::process::ExitCode;

use crate::cli::{Cli, Command, ExportCommand, GenerateCommand};
use crate::report::Printer;
use crate::settings::{Output, Settings};

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
        Command::Lock(args) => until_interrupted(lock::lock(&args, settings), settings.output),
        Command::Build(args) => until_interrupted(build::build(&args, settings), settings.output),
        Command::Export(ExportCommand::Dockerfile(args)) => {
            until_interrupted(export::dockerfile(&args, settings), settings.output)
        }
    }
}

/// Drives work until it ends or Ctrl-C (or SIGTERM) comes. Dropping the work cancels it and runs the
/// guards: they return when container, tag and build are gone.
fn until_interrupted<F>(work: F, output: Output) -> Result<Exit, CommandError>
where
    F: Future<Output = Result<Exit, CommandError>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|cause| CommandError::Runtime { cause })?;
    let result = runtime.block_on(async {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .map_err(|cause| CommandError::Runtime { cause })?;
        tokio::select! {
            result = work => result,
            _ = tokio::signal::ctrl_c() => Err(CommandError::Interrupted),
            _ = terminate.recv() => Err(CommandError::Interrupted),
        }
    });
    if matches!(result, Err(CommandError::Interrupted)) && !output.quiet {
        Printer.say("interrupted: cancelling and cleaning up");
    }
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    result
}

fn fail(error: &CommandError, color: bool) -> ExitCode {
    if !matches!(error, CommandError::Interrupted) {
        Printer.say(&error.report(color));
    }
    error.exit().into()
}
