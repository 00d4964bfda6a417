//! `envforge outdated`.

use clap::Args;

use crate::model::request::SpecArgument;

use super::{LockSource, ProjectArgs, SpecPartArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge outdated                          list updates for the current project
  envforge outdated -E train --json
  envforge outdated pytorch-cuda:2.8-cu128
  envforge lock --upgrade                    upgrade all packages
  envforge lock -P transformers              upgrade one package";

/// Arguments of `outdated`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct OutdatedArgs {
    /// Spec to check: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    pub spec: Option<SpecArgument>,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// The lock file.
    #[command(flatten)]
    pub source: LockSource,
    /// The target machine.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(OutdatedArgs => Outdated { spec, parts, project, source, target });
