//! What can be typed. Holds and validates arguments; no defaults that need the machine, no work.

mod build;
mod export;
mod generate;
mod list;
mod lock;
mod plan;
mod target;

use camino::Utf8PathBuf;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub use build::BuildArgs;
pub use export::{DockerfileArgs, ExportCommand};
pub use generate::{CompletionsArgs, GenerateCommand, ManArgs};
pub use list::ListArgs;
pub use lock::{LockArgs, LockSource};
pub use plan::PlanArgs;
pub use target::TargetArgs;

const AFTER_HELP: &str = "\
Examples:
  envforge plan pytorch-cuda:2.8-cu128        what would be built, and why
  envforge build pytorch-cuda:2.8-cu128       build it, check it, tag it
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

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a spec, check it, tag it.
    Build(BuildArgs),
    /// Show what would be built, and why; touches neither network nor engine.
    Plan(PlanArgs),
    /// List what can be built.
    List(ListArgs),
    /// Pin every byte of a spec in a lock, without building it.
    Lock(LockArgs),
    /// Write a spec's image in another tool's form.
    #[command(subcommand)]
    Export(ExportCommand),
    /// Write shell completions or manual pages.
    #[command(subcommand)]
    Generate(GenerateCommand),
}
