//! `envforge export`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

use crate::model::request::{self, ExportFormat};

use super::{LockSource, ProjectArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge export dockerfile pytorch-cuda:2.8-cu128 ./image
  envforge export dockerfile ./image                   the project here
  envforge export compose ./compose && docker compose -f ./compose/compose.yaml up --build
  envforge export devcontainer pytorch-cuda:2.8-cu128 .devcontainer
  envforge export apptainer ./sif && cd sif && apptainer build image.sif image.def
  envforge export slurm ./job && sbatch --gpus=1 ./job/job.sbatch python train.py
  DOCKER_BUILDKIT=1 docker build -t torch ./image      on an engine that never saw envforge";

/// The forms an image can be exported in.
#[derive(Debug, Clone, Subcommand)]
pub enum ExportCommand {
    /// A Dockerfile with its whole context: `docker build DIR` gives the same content.
    Dockerfile(DockerfileArgs),
    /// A Compose project: the Dockerfile with its context, and a compose.yaml that builds and opens it.
    Compose(DockerfileArgs),
    /// A folder `.devcontainer` that VS Code builds and opens: devcontainer.json with that Dockerfile beside it.
    Devcontainer(DockerfileArgs),
    /// A folder that Apptainer builds without Docker: image.def with everything it names.
    Apptainer(DockerfileArgs),
    /// A folder with a batch script for Slurm that runs a command in the image, with apptainer, docker or podman.
    Slurm(DockerfileArgs),
}

/// Arguments of every `export`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, allow_missing_positional = true)]
pub struct DockerfileArgs {
    /// What to export: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: the project here].
    pub spec: Option<String>,
    /// The folder to write; must be empty or absent, unless --force.
    pub dir: Utf8PathBuf,
    /// Overwrite what an earlier export left in DIR.
    #[arg(long)]
    pub force: bool,
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

into_request!(DockerfileArgs => Export { spec, dir, force, project, source, target });

impl From<ExportCommand> for request::Command {
    fn from(command: ExportCommand) -> Self {
        let (format, args) = match command {
            ExportCommand::Dockerfile(args) => (ExportFormat::Dockerfile, args),
            ExportCommand::Compose(args) => (ExportFormat::Compose, args),
            ExportCommand::Devcontainer(args) => (ExportFormat::Devcontainer, args),
            ExportCommand::Apptainer(args) => (ExportFormat::Apptainer, args),
            ExportCommand::Slurm(args) => (ExportFormat::Slurm, args),
        };
        Self::Export(format, args.into())
    }
}
