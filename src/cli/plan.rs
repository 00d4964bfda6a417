//! `envforge plan`.

use clap::Args;

use super::{ProjectArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge plan pytorch-cuda:2.8-cu128
  envforge plan -e train                          of envforge.toml here
  envforge plan pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\" --driver 580.95.05
  envforge plan pytorch-cuda:2.8 --gpu sm_90 --gpu sm_80 --json";

/// Arguments of `plan`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// What to plan: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: the project here].
    pub spec: Option<String>,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
    /// The base image instead of the chosen one, such as debian:13.
    #[arg(long, value_name = "IMAGE")]
    pub base: Option<String>,
}

into_request!(PlanArgs => Plan { spec, project, target, base });
