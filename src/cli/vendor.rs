//! `envforge vendor`.

use camino::Utf8PathBuf;
use clap::Args;

use crate::model::request::SpecArgument;

use super::{LockSource, ProjectArgs, SpecPartArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge vendor ./vendor                            download the locked files of the project
  envforge vendor pytorch-cuda:2.8-cu128 ./vendor
  envforge vendor pytorch-cuda:2.8-cu128 ./vendor --layers
  envforge build --offline ./vendor                   build from them, offline
  envforge vendor ./vendor --check                    verify every file; exit 1 if one is damaged
  envforge vendor ./vendor --check --upstream         also report files the indexes deleted or changed";

/// Arguments of `vendor`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, allow_missing_positional = true)]
pub struct VendorArgs {
    /// Spec to vendor: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    pub spec: Option<SpecArgument>,
    /// Vendor directory; several lock files can share it.
    pub dir: Utf8PathBuf,
    /// Verify the directory against its lock files.
    #[arg(long, conflicts_with = "spec")]
    pub check: bool,
    /// Also add the finished layers, so that an offline build makes none in a container.
    #[arg(long, conflicts_with = "check")]
    pub layers: bool,
    /// Also add the evidence of the image that was built here from the lock.
    #[arg(long, conflicts_with = "check")]
    pub evidence: bool,
    /// With --check: also look up each wheel on its index.
    #[arg(long, requires = "check")]
    pub upstream: bool,
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

into_request!(VendorArgs => Vendor { spec, parts, dir, check, layers, evidence, upstream, project, source, target });
