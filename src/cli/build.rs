//! `envforge build`.

use clap::Args;

use super::{LockSource, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge build pytorch-cuda:2.8-cu128
  envforge build pytorch-cuda:2.8-cu128 -t registry.example.com/team/torch:2.8
  envforge build pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\"
  envforge build pytorch-cuda:2.8-cu128 --locked        exactly what the lock says, or exit 1
  envforge build pytorch-cuda:2.8-cu128 --dry-run       list layers and context, build nothing

Every tag, yours too, ends in -unverified until checks have run on a GPU.";

/// Arguments of `build`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct BuildArgs {
    /// What to build: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: String,
    /// Another tag for the image (repeatable).
    #[arg(short, long = "tag", value_name = "REF")]
    pub tags: Vec<String>,
    /// Lock and print the layers and context, but build nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not use cached layers.
    #[arg(long)]
    pub no_cache: bool,
    /// Which lock is used and how.
    #[command(flatten)]
    pub source: LockSource,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
}
