//! `envforge vendor`.

use camino::Utf8PathBuf;
use clap::Args;

use super::{LockSource, ProjectArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge vendor ./vendor                            of the project here
  envforge vendor pytorch-cuda:2.8-cu128 ./vendor
  envforge build --offline ./vendor                   where there is no network
  envforge vendor ./vendor --check                    read every file; exit 1 if one is damaged
  envforge vendor ./vendor --check --upstream         and say what the indexes have deleted or changed since";

/// Arguments of `vendor`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, allow_missing_positional = true)]
pub struct VendorArgs {
    /// Whose lock: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: the project here].
    pub spec: Option<String>,
    /// The folder; several locks may share it, and each file lies there once.
    pub dir: Utf8PathBuf,
    /// Gather nothing: read what is there and compare it with the folder's locks.
    #[arg(long, conflicts_with = "spec")]
    pub check: bool,
    /// With --check: ask the indexes for each wheel.
    #[arg(long, requires = "check")]
    pub upstream: bool,
    /// Which project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// Which lock is used and how.
    #[command(flatten)]
    pub source: LockSource,
    /// The machine that will run it.
    #[command(flatten)]
    pub target: TargetArgs,
}

into_request!(VendorArgs => Vendor { spec, dir, check, upstream, project, source, target });
