//! The command line. Holds and validates arguments; no defaults that need the machine, no work.

#[macro_use]
mod into_request;

mod build;
mod candidates;
mod choices;
mod compat;
mod completion;
mod containers;
mod doctor;
mod edit_packages;
mod evidence;
mod export;
mod fleet;
mod generate;
mod groups;
mod habits;
mod images;
mod import;
mod init;
mod list;
mod lock;
mod outdated;
mod plan;
mod project;
mod push;
mod shell;
mod spec_parts;
mod target;
mod tips;
mod vendor;
mod verify;
mod why;

use camino::Utf8PathBuf;
use choices::one_of;
use clap::builder::TypedValueParser;
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand};

pub use build::BuildArgs;
pub use compat::{CompatAbiArgs, CompatCommand, CompatLintArgs, CompatShowArgs, CompatUseArgs};
pub use containers::{LogsArgs, PsArgs, StopArgs};
pub use doctor::DoctorArgs;
pub use edit_packages::{AddArgs, EditArgs, RemoveArgs};
pub use evidence::{AdmitArgs, EvidenceArgs, EvidenceCommand, WithdrawArgs};
pub use export::{DockerfileArgs, ExportCommand, OciArgs, PolicyArgs};
pub use fleet::FleetArgs;
pub use generate::{CandidatesArgs, CompletionsArgs, GenerateCommand, ManArgs};
pub use images::{DiffArgs, ImagesArgs, InspectArgs, PruneArgs, SizeArgs};
pub use import::ImportArgs;
pub use init::InitArgs;
pub use list::ListArgs;
pub use lock::{LockArgs, LockSource};
pub use outdated::OutdatedArgs;
pub use plan::PlanArgs;
pub use project::ProjectArgs;
pub use push::PushArgs;
pub use shell::{InsideArgs, LimitArgs, RunArgs, ServiceArgs, ShellArgs, StartArgs};
pub use spec_parts::SpecPartArgs;
pub use target::TargetArgs;
pub use vendor::VendorArgs;
pub use verify::VerifyArgs;
pub use why::WhyArgs;

use crate::model::request::{self, ProgressMode};

const SHORT_AFTER_HELP: &str =
    "Examples, exit codes: `envforge --help`. A command: `envforge COMMAND --help`.";

const AFTER_HELP: &str = "\
Examples:
  envforge                                      show project, image and next step
  envforge plan pytorch-cuda:2.8-cu128          show the resolved versions and the reasons
  envforge build pytorch-cuda:2.8-cu128         build, verify and tag an image
  envforge init && envforge build               the same for a project with an envforge.toml
  envforge verify pytorch-cuda:2.8-cu128        check an image
  envforge shell pytorch-cuda:2.8-cu128         open a shell in the current directory
  envforge list --gpu \"NVIDIA A100-SXM4-80GB\"  list images that run on this GPU
  envforge export dockerfile pytorch-cuda:2.8 ./image

A spec is NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]; omitted parts are resolved; `plan` explains the choice.
Exit codes: 0 success, 1 check failed or no solution, 2 usage error, 3 external failure, 130 interrupted.";

/// Reproducible, verified GPU development images.
#[derive(Debug, Parser)]
#[command(name = "envforge", version, about, after_help = SHORT_AFTER_HELP, after_long_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command; without one `envforge` shows project, image and next step.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How `--progress` shows work.
fn progress_modes() -> impl TypedValueParser<Value = ProgressMode> {
    one_of([
        ("auto", ProgressMode::Auto, "Bars on a terminal, plain lines otherwise"),
        ("plain", ProgressMode::Plain, "Plain lines, one per step"),
        ("json", ProgressMode::Json, "One JSON object per event on stderr"),
    ])
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Print one JSON object on stdout instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every step, decision and check (-vv: HTTP traffic too).
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Disable progress bars.
    #[arg(long, global = true, hide_short_help = true)]
    pub no_progress: bool,
    /// Progress output on stderr.
    #[arg(
        long,
        global = true,
        value_parser = progress_modes(),
        default_value = "auto",
        value_name = "MODE",
        hide_short_help = true
    )]
    pub progress: ProgressMode,
    /// Configuration file [default: ~/.config/envforge/config.toml].
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub config: Option<Utf8PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an envforge.toml for the project in the current directory.
    Init(InitArgs),
    /// Add packages to envforge.toml and lock them.
    Add(AddArgs),
    /// Remove packages from envforge.toml and lock again.
    Remove(RemoveArgs),
    /// Build, verify and tag an image.
    Build(BuildArgs),
    /// Show the resolved versions and the reasons, offline.
    Plan(PlanArgs),
    /// List available products and versions.
    List(ListArgs),
    /// Create or update the lock file.
    Lock(LockArgs),
    /// List available package updates.
    Outdated(OutdatedArgs),
    /// Show what requires a locked package and what chose its version.
    Why(WhyArgs),
    /// Verify images, on a GPU if available.
    Verify(VerifyArgs),
    /// Show who proved an image on which GPU and driver, and admit it.
    Evidence(EvidenceArgs),
    /// Push an image to registries, without the engine compressing it.
    Push(PushArgs),
    /// Load an image that `export oci` wrote into the engine.
    Import(ImportArgs),
    /// Start a shell or run a command in an image.
    Shell(ShellArgs),
    /// Run a command in the image of the project, as `shell -- CMD`.
    Run(RunArgs),
    /// List containers started by `shell`.
    Ps(PsArgs),
    /// Stop containers started by `shell`.
    Stop(StopArgs),
    /// Show container output.
    Logs(LogsArgs),
    /// Download all locked files for offline builds.
    Vendor(VendorArgs),
    /// List the images built by envforge, with the size they share.
    Images(ImagesArgs),
    /// Show the contents of an image or lock file, also as an SBOM.
    Inspect(InspectArgs),
    /// Compare two images or lock files.
    Diff(DiffArgs),
    /// Show image size by component and shared layers.
    Size(SizeArgs),
    /// Remove unused images (dry run unless --yes).
    Prune(PruneArgs),
    /// Export for docker, Compose, VS Code, Apptainer, Slurm or Kubernetes.
    #[command(subcommand)]
    Export(ExportCommand),
    /// Diagnose this machine, or explain an error message.
    Doctor(DoctorArgs),
    /// Check, show or replace the compatibility matrix.
    #[command(subcommand)]
    Compat(CompatCommand),
    /// Generate shell completions, manual pages and the JSON schema.
    #[command(subcommand)]
    Generate(GenerateCommand),
}

into_request!(GlobalArgs => GlobalOptions { json, quiet, verbose, no_progress, progress, config });

impl From<Option<Command>> for request::Command {
    fn from(command: Option<Command>) -> Self {
        command.map_or(Self::Status, Self::from)
    }
}

impl From<Command> for request::Command {
    fn from(command: Command) -> Self {
        match command {
            Command::Init(args) => Self::Init(args.into()),
            Command::Add(args) => Self::EditPackages(args.into()),
            Command::Remove(args) => Self::EditPackages(args.into()),
            Command::Build(args) => Self::Build(args.into()),
            Command::Plan(args) => Self::Plan(args.into()),
            Command::List(args) => Self::List(args.into()),
            Command::Lock(args) => Self::Lock(args.into()),
            Command::Outdated(args) => Self::Outdated(args.into()),
            Command::Why(args) => Self::Why(args.into()),
            Command::Verify(args) => Self::Verify(args.into()),
            Command::Evidence(args) => args.into(),
            Command::Push(args) => Self::Push(args.into()),
            Command::Import(args) => Self::Import(args.into()),
            Command::Shell(args) => Self::Shell(args.into()),
            Command::Run(args) => Self::Shell(args.into()),
            Command::Ps(args) => Self::Ps(args.into()),
            Command::Stop(args) => Self::Stop(args.into()),
            Command::Logs(args) => Self::Logs(args.into()),
            Command::Vendor(args) => Self::Vendor(args.into()),
            Command::Images(ImagesArgs {}) => Self::Images,
            Command::Inspect(args) => Self::Inspect(args.into()),
            Command::Diff(args) => Self::Diff(args.into()),
            Command::Size(args) => Self::Size(args.into()),
            Command::Prune(args) => Self::Prune(args.into()),
            Command::Export(command) => command.into(),
            Command::Doctor(args) => Self::Doctor(args.into()),
            Command::Compat(CompatCommand::Lint(args)) => Self::CompatLint(args.into()),
            Command::Compat(CompatCommand::Use(args)) => Self::CompatUse(args.into()),
            Command::Compat(CompatCommand::Show(args)) => Self::CompatShow(args.into()),
            Command::Compat(CompatCommand::Abi(args)) => Self::CompatAbi(args.into()),
            Command::Generate(command) => Self::Generate(generate::request(command, Cli::command())),
        }
    }
}
