//! `envforge why`.

use clap::Args;

use super::{ProjectArgs, SpecPartArgs};

const EXAMPLES: &str = "\
Examples:
  envforge why numpy                         show what requires it in the current project, and what chose its version
  envforge why torch pytorch-cuda:2.8-cu128
  envforge why einops --json

The lock lists what was requested, and the wheels in the cache list what they require; nothing is downloaded. Exit code 1: the
package is not in the lock.";

/// Arguments of `why`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhyArgs {
    /// Python package, or package of the distribution.
    pub package: String,
    /// Spec, lock file or project directory [default: current project].
    #[arg(value_name = "SPEC|LOCK")]
    pub name: Option<String>,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

into_request!(WhyArgs => Why { package, name, parts, project });
