//! `envforge export`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

use super::{LockSource, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge export dockerfile pytorch-cuda:2.8-cu128 ./image
  DOCKER_BUILDKIT=1 docker build -t torch ./image      on an engine that never saw envforge";

/// The forms an image can be exported in.
#[derive(Debug, Clone, Subcommand)]
pub enum ExportCommand {
    /// A Dockerfile with its whole context: `docker build DIR` gives the same content.
    Dockerfile(DockerfileArgs),
}

/// Arguments of `export dockerfile`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DockerfileArgs {
    /// What to export: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: String,
    /// The folder to write; must be empty or absent, unless --force.
    pub dir: Utf8PathBuf,
    /// Overwrite what an earlier export left in DIR.
    #[arg(long)]
    pub force: bool,
    /// Which lock is used and how.
    #[command(flatten)]
    pub source: LockSource,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
}
