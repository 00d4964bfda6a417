//! One file per verb: each reads top to bottom like the diagram in `lib.rs` and joins core, edges and reporter.

mod base;
mod build;
mod check;
mod compat;
mod containers;
mod content;
mod described;
mod doctor;
mod edition;
mod error;
mod export;
mod figures;
mod from_source;
mod generate;
mod gpus;
mod images;
mod init;
mod inspect;
mod known_locks;
mod list;
mod local_wheels;
mod lock;
mod named_base;
mod outdated;
mod plan;
mod ps;
mod push;
mod question;
mod refresh;
mod reports;
mod session;
mod shell;
mod source_packages;
mod space;
mod supported;
mod target;
mod vendor;
mod vendor_base;
mod verify;
mod wanted;

pub use error::{CommandError, Exit};

use std::process::ExitCode;

use crate::cli::{Cli, Command, CompatCommand, ExportCommand, GenerateCommand};
use crate::report::Printer;
use crate::settings::{Output, Settings};

/// Runs what was typed and gives the exit code. Errors are printed here, once.
pub fn run(cli: Cli, stderr_is_terminal: bool) -> ExitCode {
    let settings = match Settings::load(&cli.global, stderr_is_terminal) {
        Ok(settings) => settings,
        Err(error) => return fail(&CommandError::from(error), false),
    };
    let output = settings.output;
    if !matches!(cli.command, Command::Compat(CompatCommand::Use(_))) {
        edition::in_force(&settings);
    }
    // The one command whose exit code is not ours.
    if let Command::Shell(args) = &cli.command {
        return shell::run(args, &settings);
    }
    match dispatch(cli.command, &settings) {
        Ok(exit) => exit.into(),
        Err(error) => {
            if let CommandError::Impossible { plan, .. } = &error
                && output.json
            {
                Printer.json(plan);
            }
            fail(&error, output.color)
        }
    }
}

fn dispatch(command: Command, settings: &Settings) -> Result<Exit, CommandError> {
    match command {
        Command::Plan(args) => plan::plan(&args, settings),
        Command::List(args) => list::list(&args, settings),
        Command::Generate(GenerateCommand::Completions(args)) => Ok(generate::completions(&args)),
        Command::Generate(GenerateCommand::Man(args)) => generate::man(&args),
        Command::Generate(GenerateCommand::Schema(_)) => Ok(generate::schema()),
        Command::Init(args) => init::init(&args, settings),
        Command::Generate(GenerateCommand::Rules) => Ok(generate::rules()),
        Command::Generate(GenerateCommand::Support) => Ok(generate::support()),
        Command::Compat(CompatCommand::Lint(args)) => compat::lint(&args, settings),
        Command::Compat(CompatCommand::Use(args)) => edition::use_edition(&args, settings),
        Command::Compat(CompatCommand::Refresh(args)) => {
            until_interrupted(refresh::refresh(&args, settings), settings.output)
        }
        Command::Compat(CompatCommand::Show(args)) => Ok(compat::show(&args, settings)),
        Command::Doctor(args) => until_interrupted(doctor::doctor(&args, settings), settings.output),
        Command::Lock(args) => until_interrupted(lock::lock(&args, settings), settings.output),
        Command::Outdated(args) => until_interrupted(outdated::outdated(&args, settings), settings.output),
        Command::Shell(_) => unreachable!("it has an exit code of its own"),
        Command::Ps(args) => until_interrupted(ps::ps(&args, settings), settings.output),
        Command::Stop(args) => until_interrupted(containers::stop(&args, settings), settings.output),
        Command::Logs(args) => until_interrupted(containers::logs(&args, settings), settings.output),
        Command::Vendor(args) => until_interrupted(vendor::vendor(&args, settings), settings.output),
        Command::Images(_) => until_interrupted(images::images(settings), settings.output),
        Command::Prune(args) => until_interrupted(images::prune(&args, settings), settings.output),
        Command::Inspect(args) => until_interrupted(inspect::inspect(&args, settings), settings.output),
        Command::Diff(args) => until_interrupted(inspect::diff(&args, settings), settings.output),
        Command::Size(args) => until_interrupted(inspect::size(&args, settings), settings.output),
        Command::Build(args) => until_interrupted(build::build(&args, settings), settings.output),
        Command::Verify(args) => until_interrupted(verify::verify(&args, settings), settings.output),
        Command::Export(ExportCommand::Devcontainer(args)) => {
            until_interrupted(export::devcontainer(&args, settings), settings.output)
        }
        Command::Export(ExportCommand::Dockerfile(args)) => {
            until_interrupted(export::dockerfile(&args, settings), settings.output)
        }
        Command::Export(ExportCommand::Compose(args)) => {
            until_interrupted(export::compose(&args, settings), settings.output)
        }
        Command::Export(ExportCommand::Apptainer(args)) => {
            until_interrupted(export::apptainer(&args, settings), settings.output)
        }
        Command::Export(ExportCommand::Slurm(args)) => {
            until_interrupted(export::slurm(&args, settings), settings.output)
        }
    }
}

/// Drives work until it ends or Ctrl-C (or SIGTERM) comes. Dropping the work cancels it and runs the
/// guards: they return when container, tag and build are gone.
fn until_interrupted<T>(
    work: impl Future<Output = Result<T, CommandError>>,
    output: Output,
) -> Result<T, CommandError> {
    to_the_end(interruptible(work), output)
}

/// The work, or the error that it was interrupted.
async fn interruptible<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|cause| CommandError::Runtime { cause })?;
    tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => Err(CommandError::Interrupted),
        _ = terminate.recv() => Err(CommandError::Interrupted),
    }
}

/// Drives work on a runtime of its own until it ends.
fn to_the_end<T>(
    work: impl Future<Output = Result<T, CommandError>>,
    output: Output,
) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|cause| CommandError::Runtime { cause })?;
    let result = runtime.block_on(work);
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
