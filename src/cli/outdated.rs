//! `envforge outdated`.

use clap::Args;

use super::{LockSource, ProjectArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge outdated                          of the project here
  envforge outdated -e train --json
  envforge outdated pytorch-cuda:2.8-cu128
  envforge lock --upgrade                    takes all of it
  envforge lock -P transformers              takes one package";

/// Arguments of `outdated`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct OutdatedArgs {
    /// Whose lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: the project here].
    pub spec: Option<String>,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// Where the lock lies.
    #[command(flatten)]
    pub source: LockSource,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(OutdatedArgs => Outdated { spec, project, source, target });
