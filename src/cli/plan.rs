//! `envforge plan`.

use clap::Args;

use crate::model::request::SpecArgument;

use super::{ProjectArgs, SpecPartArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge plan pytorch-cuda:2.8-cu128
  envforge plan pytorch-cuda:2.8 --with flash-attn  show which release of flash-attn fits
  envforge plan -E train                          plan an environment of the project
  envforge plan pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\" --driver 580.95.05
  envforge plan pytorch-cuda:2.8 --gpu sm_90 --gpu sm_80 --json";

/// Arguments of `plan`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// Spec to plan: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    pub spec: Option<SpecArgument>,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// The target machine.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Base image, such as debian:13 [default: resolved].
    #[arg(long, value_name = "IMAGE")]
    pub base: Option<String>,
    /// Python requirement to check against the stack, such as `flash-attn` (repeatable, offline).
    #[arg(long, value_name = "REQUIREMENT")]
    pub with: Vec<String>,
    /// Plan with the releases published by this date (UTC).
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<String>,
    /// Accept this package as a build from source (repeatable).
    #[arg(long, value_name = "PACKAGE", requires = "with")]
    pub allow_source: Vec<String>,
}

into_request!(PlanArgs => Plan { spec, parts, project, target, base, with, as_of, allow_source });
