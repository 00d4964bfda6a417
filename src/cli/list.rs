//! `envforge list`.

use clap::Args;

use crate::model::request::SpecArgument;

use super::TargetArgs;

const EXAMPLES: &str = "\
Examples:
  envforge list                                  list the products with their newest versions
  envforge list pytorch-cuda --all               list all published variants
  envforge list --for-this-machine               list variants for this machine
  envforge list pytorch-cuda --gpu sm_61 --json";

/// Arguments of `list`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Product whose versions are listed, such as pytorch-cuda [default: one line for each product].
    pub name: Option<SpecArgument>,
    /// Framework, such as jax.
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    pub framework: Option<String>,
    /// Only variants for this machine, or for --gpu and --driver.
    #[arg(long)]
    pub for_this_machine: bool,
    /// CUDA variant, such as cu128.
    #[arg(long, value_name = "CUDA")]
    pub cuda: Option<String>,
    /// Python version, such as 3.11.
    #[arg(long, value_name = "VERSION")]
    pub python: Option<String>,
    /// Include all patch releases and unlisted variants, of every product if none is named.
    #[arg(long)]
    pub all: bool,
    /// The target machine.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(ListArgs => List { name, framework, for_this_machine, cuda, python, all, target });
