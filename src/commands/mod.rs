//! One file per verb: each reads top to bottom like the diagram in `lib.rs` and joins core, edges and reporter.

mod abi;
mod build;
pub(crate) mod compat;
mod containers;
mod doctor;
mod edit_packages;
mod evidence;
mod explain;
mod export;
mod export_file;
mod export_oci;
mod export_policy;
mod export_pylock;
mod fail;
mod generate;
mod images;
mod import;
mod init;
mod inspect;
mod list;
mod lock;
mod outdated;
mod plan;
mod ps;
mod push;
mod shell;
mod size;
mod status;
mod this_machine;
mod vendor;
mod verify;
mod why;

use std::process::ExitCode;

use crate::commands::fail::fail;
use crate::failure::{Exit, Failure};
use crate::model::request::{Command, ExportFormat, GlobalOptions};
use crate::report::{Event, Printer, reporter, start_log, terminals};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::interrupt::until_interrupted;
use crate::workflow::lock_error::ImpossibleStack;
use crate::workflow::matrix_override;

/// Runs a verb and returns the exit code. Errors are printed here, once.
pub fn run(options: &GlobalOptions, command: Command) -> ExitCode {
    let reads_matrix = !matches!(command, Command::CompatUse(_));
    with_settings(options, reads_matrix, |settings| dispatch(command, settings))
}

/// Calls a function with the settings of these options, prints its error, and returns the exit code. `reads_matrix`: it may use the
/// matrix that replaces the built-in one.
pub(crate) fn with_settings(
    options: &GlobalOptions,
    reads_matrix: bool,
    verb: impl FnOnce(&Settings) -> Result<ExitCode, CommandError>,
) -> ExitCode {
    let mut settings = match Settings::load(options, terminals()) {
        Ok(settings) => settings,
        Err(error) => return fail(&CommandError::from(error), false),
    };
    start_log(settings.output);
    for text in &settings.warnings {
        reporter(settings.output).report(Event::Warning { text: text.clone() });
    }
    if reads_matrix {
        settings.matrix = match matrix_override::read_matrix(&settings) {
            Ok(matrix) => matrix,
            Err(error) => return fail(&error, settings.output.color),
        };
    }
    let exit = match verb(&settings) {
        Ok(exit) => exit,
        Err(error) => {
            if settings.output.json
                && let Some(ImpossibleStack { plan, .. }) = error.downcast_ref()
            {
                Printer.json(plan);
            }
            fail(&error, settings.output.color)
        }
    };
    match Printer.take_write_error() {
        Some(error) => fail(&CommandError::from(WriteError(error)), settings.output.color),
        None => exit,
    }
}

fn dispatch(command: Command, settings: &Settings) -> Result<ExitCode, CommandError> {
    let output = settings.output;
    let exit = match command {
        // The one verb whose exit code is the program's.
        Command::Shell(request) => return Ok(shell::run(&request, settings)),
        Command::Status => until_interrupted(status::status(settings), output)?,
        Command::Plan(request) => plan::plan(&request, settings)?,
        Command::List(request) => list::list(&request, settings)?,
        Command::Generate(request) => until_interrupted(generate::generate(&request, settings), output)?,
        Command::Init(request) => until_interrupted(init::init(&request, settings), output)?,
        Command::CompatLint(request) => compat::lint(&request, settings)?,
        Command::CompatUse(request) => compat::use_archive(&request, settings)?,
        Command::CompatShow(request) => compat::show(&request, settings),
        Command::CompatAbi(request) => until_interrupted(abi::abi(&request, settings), output)?,
        Command::Doctor(request) => until_interrupted(doctor::doctor(&request, settings), output)?,
        Command::EditPackages(request) => {
            until_interrupted(edit_packages::edit_packages(&request, settings), output)?
        }
        Command::Lock(request) => until_interrupted(lock::lock(&request, settings), output)?,
        Command::Outdated(request) => until_interrupted(outdated::outdated(&request, settings), output)?,
        Command::Why(request) => why::why(&request, settings)?,
        Command::Ps(request) => until_interrupted(ps::ps(&request, settings), output)?,
        Command::Stop(request) => until_interrupted(containers::stop(&request, settings), output)?,
        Command::Logs(request) => until_interrupted(containers::logs(&request, settings), output)?,
        Command::Vendor(request) => until_interrupted(vendor::vendor(&request, settings), output)?,
        Command::Images => until_interrupted(images::images(settings), output)?,
        Command::Prune(request) => until_interrupted(images::prune(&request, settings), output)?,
        Command::Inspect(request) => until_interrupted(inspect::inspect(&request, settings), output)?,
        Command::Diff(request) => until_interrupted(inspect::diff(&request, settings), output)?,
        Command::Size(request) => until_interrupted(size::size(&request, settings), output)?,
        Command::Build(request) => until_interrupted(build::build(&request, settings), output)?,
        Command::Push(request) => until_interrupted(push::push_image(&request, settings), output)?,
        Command::Import(request) => until_interrupted(import::import(&request, settings), output)?,
        Command::Evidence(request) => until_interrupted(evidence::evidence(&request, settings), output)?,
        Command::EvidenceAdmit(request) => until_interrupted(evidence::admit(&request, settings), output)?,
        Command::EvidenceWithdraw(request) => {
            until_interrupted(evidence::withdraw(&request, settings), output)?
        }
        Command::Verify(request) => until_interrupted(verify::verify(&request, settings), output)?,
        Command::ExportOci(request) => until_interrupted(export_oci::export_oci(&request, settings), output)?,
        Command::ExportFile(kind, request) => {
            until_interrupted(export_file::export_file(kind, &request, settings), output)?
        }
        Command::ExportPolicy(request) => export_policy::export_policy(&request, settings)?,
        Command::Export(format, request) => match format {
            ExportFormat::Dockerfile => until_interrupted(export::dockerfile(&request, settings), output)?,
            ExportFormat::Compose => until_interrupted(export::compose(&request, settings), output)?,
            ExportFormat::Devcontainer => {
                until_interrupted(export::devcontainer(&request, settings), output)?
            }
            ExportFormat::Apptainer => until_interrupted(export::apptainer(&request, settings), output)?,
            ExportFormat::Slurm => until_interrupted(export::slurm(&request, settings), output)?,
            ExportFormat::Kubernetes => until_interrupted(export::kubernetes(&request, settings), output)?,
            ExportFormat::Nfd => export::nfd(&request, settings)?,
            ExportFormat::Pylock => {
                until_interrupted(export_pylock::export_pylock(&request, settings), output)?
            }
        },
    };
    Ok(exit.into())
}

/// Standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
struct WriteError(std::io::Error);

impl Failure for WriteError {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        self.0.hints()
    }
}
