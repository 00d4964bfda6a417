//! `envforge list`.

use clap::Args;

use super::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  envforge list                                  the newest of everything
  envforge list pytorch-cuda --all               every published variant
  envforge list --for-this-machine               only what runs here
  envforge list pytorch-cuda --gpu sm_61 --json";

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Only this product, such as pytorch-cuda.
    pub name: Option<String>,
    /// Only this framework, such as jax.
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    pub framework: Option<String>,
    /// Only what runs on this machine, or on the one named by --gpu and --driver.
    #[arg(long)]
    pub for_this_machine: bool,
    /// Only variants of this CUDA, such as cu128.
    #[arg(long, value_name = "CUDA")]
    pub cuda: Option<String>,
    /// Only variants with a wheel for this Python, such as 3.11.
    #[arg(long, value_name = "VERSION")]
    pub python: Option<String>,
    /// Every patch release, unlisted and unverified variants too.
    #[arg(long)]
    pub all: bool,
    /// The machine it should run on.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(ListArgs => List { name, framework, for_this_machine, cuda, python, all, target });
