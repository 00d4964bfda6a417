//! `envforge init`.

use clap::Args;

use crate::model::request::SpecArgument;

const EXAMPLES: &str = "\
Examples:
  envforge init                             use the files here, else the latest PyTorch
  envforge init pytorch-cuda:2.8-cu128
  envforge init --from requirements.txt     use this file alone
  envforge init --from trainer:latest       use the packages of an image, read from its files
  envforge init && envforge build";

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    /// Spec of the project [default: what its files ask for, else pytorch-cuda, for this machine].
    pub spec: Option<SpecArgument>,
    /// File or directory to read instead of this directory: requirements, pyproject.toml, a lock of uv, Poetry, PDM, pixi or conda-lock,
    /// environment.yml, a Dockerfile, a script or notebook that installs packages; or an image: NAME:TAG of the engine, or a file of
    /// `docker save`. Nothing of it is run.
    #[arg(long, value_name = "PATH|IMAGE")]
    pub from: Option<camino::Utf8PathBuf>,
    /// Overwrite an existing envforge.toml.
    #[arg(long)]
    pub force: bool,
    /// The target machine.
    #[command(flatten)]
    pub target: super::TargetArgs,
}

into_request!(InitArgs => Init { spec, from, force, target });
