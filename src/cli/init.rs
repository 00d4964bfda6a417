//! `envforge init`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge init                             the newest PyTorch that runs on this machine
  envforge init pytorch-cuda:2.8-cu128
  envforge init && envforge build";

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// What to build [default: what the requirements here name, else pytorch-cuda, as it runs on this machine].
    pub spec: Option<String>,
    /// Overwrite an envforge.toml that is there.
    #[arg(long)]
    pub force: bool,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: super::TargetArgs,
}

into_request!(InitArgs => Init { spec, force, target });
