//! `envforge init`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge init                             use the latest PyTorch for this machine
  envforge init pytorch-cuda:2.8-cu128
  envforge init && envforge build";

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// Spec of the project [default: the framework in its requirements, else pytorch-cuda, for this machine].
    pub spec: Option<String>,
    /// Overwrite an existing envforge.toml.
    #[arg(long)]
    pub force: bool,
    /// The target machine.
    #[command(flatten)]
    pub target: super::TargetArgs,
}

into_request!(InitArgs => Init { spec, force, target });
