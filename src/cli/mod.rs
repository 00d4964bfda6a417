//! What can be typed. Holds and validates arguments; no defaults that need the machine, no work.

#[macro_use]
mod into_request;

mod build;
mod compat;
mod containers;
mod doctor;
mod export;
mod generate;
mod images;
mod init;
mod list;
mod lock;
mod outdated;
mod plan;
mod project;
mod shell;
mod target;
mod vendor;
mod verify;

use camino::Utf8PathBuf;
use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

pub use build::BuildArgs;
pub use compat::{CompatCommand, CompatLintArgs, CompatRefreshArgs, CompatShowArgs, CompatUseArgs};
pub use containers::{LogsArgs, PsArgs, StopArgs};
pub use doctor::DoctorArgs;
pub use export::{DockerfileArgs, ExportCommand};
pub use generate::{CompletionsArgs, GenerateCommand, ManArgs};
pub use images::{DiffArgs, ImagesArgs, InspectArgs, PruneArgs, SizeArgs};
pub use init::InitArgs;
pub use list::ListArgs;
pub use lock::{LockArgs, LockSource};
pub use outdated::OutdatedArgs;
pub use plan::PlanArgs;
pub use project::ProjectArgs;
pub use shell::{InsideArgs, LimitArgs, ServiceArgs, ShellArgs, StartArgs};
pub use target::TargetArgs;
pub use vendor::VendorArgs;
pub use verify::VerifyArgs;

use crate::model::request;

const AFTER_HELP: &str = "\
Examples:
  envforge plan pytorch-cuda:2.8-cu128        what would be built, and why
  envforge build pytorch-cuda:2.8-cu128       build it, check it, tag it
  envforge init && envforge build             the same for a project, written down in envforge.toml
  envforge verify pytorch-cuda:2.8-cu128      check an image, ours or not
  envforge shell pytorch-cuda:2.8-cu128       work in it, in this folder
  envforge list --gpu \"NVIDIA A100-SXM4-80GB\" what runs on that GPU
  envforge export dockerfile pytorch-cuda:2.8 ./image

A spec is NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]; what is left out is chosen, and `plan` says why.
Exit codes: 0 done, 1 the answer is no, 2 the call or a file is wrong, 3 something outside failed, 130 interrupted.";

/// Reproducible, checked GPU development images.
#[derive(Debug, Parser)]
#[command(name = "envforge", version, about, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// Options every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How `--progress` shows work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// Bars on a terminal, plain lines otherwise.
    Auto,
    /// Plain lines, one per step.
    Plain,
    /// One JSON object per event on stderr.
    Json,
}

/// Options every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Print one JSON object on stdout instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// Say only what went wrong.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show the output of every step, and decisions with their reasons (twice: traffic too).
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// No moving bars; plain lines.
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// How progress is shown on stderr.
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "MODE")]
    pub progress: ProgressMode,
    /// The configuration file [default: ~/.config/envforge/config.toml].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<Utf8PathBuf>,
}

impl From<ProgressMode> for request::ProgressMode {
    fn from(mode: ProgressMode) -> Self {
        match mode {
            ProgressMode::Auto => Self::Auto,
            ProgressMode::Plain => Self::Plain,
            ProgressMode::Json => Self::Json,
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a first envforge.toml for the project in this folder.
    Init(InitArgs),
    /// Build a spec or the project here, check it, tag it.
    Build(BuildArgs),
    /// Show what would be built, and why; touches neither network nor engine.
    Plan(PlanArgs),
    /// List what can be built.
    List(ListArgs),
    /// Pin every byte of a spec or the project here in a lock, without building it.
    Lock(LockArgs),
    /// Show what choosing every package anew would change.
    Outdated(OutdatedArgs),
    /// Check images, ours and others', on a GPU if there is one.
    Verify(VerifyArgs),
    /// Open an image: a terminal or one command in this folder, closed to everything else.
    Shell(ShellArgs),
    /// List the containers of `shell`.
    Ps(PsArgs),
    /// End containers of `shell`.
    Stop(StopArgs),
    /// Show what the command of a container has written.
    Logs(LogsArgs),
    /// Gather everything a lock names in a folder, for builds without network.
    Vendor(VendorArgs),
    /// List the images envforge built on this engine, and what they share.
    Images(ImagesArgs),
    /// Show what an image or lock holds; its bill of materials with --sbom.
    Inspect(InspectArgs),
    /// Show how two images or locks differ: versions, packages, layers, content.
    Diff(DiffArgs),
    /// Show an image by its components, and what other images share of it.
    Size(SizeArgs),
    /// Remove images that no lock in use names; lists them first.
    Prune(PruneArgs),
    /// Write a spec's image in another tool's form.
    #[command(subcommand)]
    Export(ExportCommand),
    /// Say what this machine is fit for, or what a message means.
    Doctor(DoctorArgs),
    /// Check or show the compatibility matrix, or compare it with the package index.
    #[command(subcommand)]
    Compat(CompatCommand),
    /// Write shell completions, manual pages, or what follows from the matrix.
    #[command(subcommand)]
    Generate(GenerateCommand),
}

into_request!(GlobalArgs => GlobalOptions { json, quiet, verbose, no_progress, progress, config });

impl From<Command> for request::Command {
    fn from(command: Command) -> Self {
        match command {
            Command::Init(args) => Self::Init(args.into()),
            Command::Build(args) => Self::Build(args.into()),
            Command::Plan(args) => Self::Plan(args.into()),
            Command::List(args) => Self::List(args.into()),
            Command::Lock(args) => Self::Lock(args.into()),
            Command::Outdated(args) => Self::Outdated(args.into()),
            Command::Verify(args) => Self::Verify(args.into()),
            Command::Shell(args) => Self::Shell(args.into()),
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
            Command::Compat(CompatCommand::Refresh(args)) => Self::CompatRefresh(args.into()),
            Command::Compat(CompatCommand::Use(args)) => Self::CompatUse(args.into()),
            Command::Compat(CompatCommand::Show(args)) => Self::CompatShow(args.into()),
            Command::Generate(command) => Self::Generate(generate::request(command, Cli::command())),
        }
    }
}
