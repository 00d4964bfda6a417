//! `envforge export`.

use camino::Utf8PathBuf;
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};

use crate::model::file_compression::FileCompression;
use crate::model::request::{
    self, ExportFormat, ExportedImage, FileKind, Level, PolicyController, SpecArgument,
};

use super::choices::one_of;
use super::verify::levels;
use super::{LockSource, ProjectArgs, SpecPartArgs, TargetArgs};

const EXAMPLES: &str = "\
Examples:
  envforge export dockerfile pytorch-cuda:2.8-cu128 ./image
  envforge export compose ./compose                    export the current project";

const DOCKERFILE_EXAMPLES: &str = "\
Examples:
  envforge export dockerfile pytorch-cuda:2.8-cu128 ./image
  envforge export dockerfile ./image                   export the current project
  DOCKER_BUILDKIT=1 docker build -t torch ./image      build it without envforge";

const COMPOSE_EXAMPLES: &str = "\
Examples:
  envforge export compose ./compose
  docker compose -f ./compose/compose.yaml run --rm dev  open a shell
  envforge export compose ./compose --build            with a Dockerfile although the image was pushed
  envforge export compose ./compose --image reg.example.com/vision@sha256:HASH";

const DEVCONTAINER_EXAMPLES: &str = "\
Examples:
  envforge export devcontainer .devcontainer
  envforge export devcontainer pytorch-cuda:2.8-cu128 .devcontainer";

const APPTAINER_EXAMPLES: &str = "\
Examples:
  envforge export apptainer ./sif
  cd sif && apptainer build image.sif image.def        build it without Docker";

const SLURM_EXAMPLES: &str = "\
Examples:
  envforge export slurm ./job                          start the file in `[cluster] folder`, else the image
  sbatch --gpus=1 ./job/job.sbatch python train.py     run a command in the image";

const KUBERNETES_EXAMPLES: &str = "\
Examples:
  envforge export kubernetes ./base --image reg.example.com/vision@sha256:HASH
  kubectl apply -k ./base                              a Job and a JupyterLab, on nodes that run the image
  kubectl create -f ./base/jobset.yaml                 on several nodes (JobSet), with a volume of yours

With `[trust] keys` or `[policy] require-evidence` in the configuration, pods start only with
evidence of one of these keys: an init container runs `envforge evidence admit`.";

const OCI_EXAMPLES: &str = "\
Examples:
  envforge export oci pytorch-cuda:2.8-cu128 ./torch.tar
  envforge export oci ./image                          the current project's image, as a directory
  skopeo copy oci-archive:./torch.tar docker://registry.example.com/team/torch:2.8";

const SQUASHFS_EXAMPLES: &str = "\
Examples:
  envforge export squashfs pytorch-cuda:2.8-cu128 ./torch.sqsh
  envforge export squashfs ./image.sqsh                the current project's image
  envforge export squashfs                             the same to `[cluster] folder`, once for each lock
  srun --container-image=./image.sqsh python train.py  start it with pyxis and enroot";

const SIF_EXAMPLES: &str = "\
Examples:
  envforge export sif pytorch-cuda:2.8-cu128 ./torch.sif
  envforge export sif                                  the current project's, to `[cluster] folder`
  apptainer run --nv ./torch.sif python train.py       start it, without root
  envforge export sif ./old.sif --compression gzip     for a site whose kernel or squashfuse lacks zstd";

const NFD_EXAMPLES: &str = "\
Examples:
  envforge export nfd compatibility.yaml               the current project's lock
  envforge export nfd pytorch-cuda:2.8-cu128 torch.yaml
  nfd compat validate-node --image reg.example.com/torch:2.8

The first lines of the file say how `oras` attaches it to the image in its registry. Nodes need
NVIDIA's GPU feature discovery. The format is experimental (v1alpha1).";

const PYLOCK_EXAMPLES: &str = "\
Examples:
  envforge export pylock pylock.toml                   Python packages of the current project's lock
  envforge export pylock pytorch-cuda:2.8-cu128 pylock.gpu.toml
  pip install -r pylock.toml                           the same files, without an image (pip 26.1 or newer)";

const POLICY_EXAMPLES: &str = "\
Examples:
  envforge export policy kyverno reg.example.com/team/ policy.yaml --key cosign.pub
  envforge export policy sigstore reg.example.com/torch policy.yaml --key cosign.pub --gpu sm_90
  kubectl apply -f policy.yaml                         pods of other images start as before

The controller reads signed summaries in the registry itself. It asks neither for the node's GPU
and driver nor for the age of the checks: `evidence admit --here` in an init container does.";

/// Export formats.
#[derive(Debug, Clone, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum ExportCommand {
    /// Write a Dockerfile and its context; `docker build DIR` reproduces the content.
    #[command(after_help = DOCKERFILE_EXAMPLES)]
    Dockerfile(DockerfileArgs),
    /// Write a built image as an OCI image layout, for skopeo, podman, containerd and apptainer.
    #[command(after_help = OCI_EXAMPLES)]
    Oci(OciArgs),
    /// Write a built image as a SIF file that Apptainer and Singularity start, without them and without root.
    #[command(after_help = SIF_EXAMPLES)]
    Sif(FileArgs),
    /// Write a built image as a squashfs that enroot, pyxis and the kernel mount, without root.
    #[command(after_help = SQUASHFS_EXAMPLES)]
    Squashfs(FileArgs),
    /// Write a Compose project: compose.yaml, and a Dockerfile with its context unless the image was pushed.
    #[command(after_help = COMPOSE_EXAMPLES)]
    Compose(FilesArgs),
    /// Write a `.devcontainer` directory for VS Code, with a Dockerfile and its context unless the image was pushed.
    #[command(after_help = DEVCONTAINER_EXAMPLES)]
    Devcontainer(FilesArgs),
    /// Write image.def and its files for Apptainer, without Docker.
    #[command(after_help = APPTAINER_EXAMPLES)]
    Apptainer(FilesArgs),
    /// Write a kustomize base for Kubernetes: a Job, a JupyterLab, and the checks of a node, on nodes whose GPUs and driver run the image.
    #[command(after_help = KUBERNETES_EXAMPLES)]
    Kubernetes(PushedArgs),
    /// Write the GPUs and drivers that run the image, as an image compatibility artifact of Node Feature Discovery. Asks no engine.
    #[command(after_help = NFD_EXAMPLES)]
    Nfd(LockFileArgs),
    /// Write the Python packages of a lock file as pylock.toml (PEP 751), for pip, uv and scanners. Asks no engine.
    #[command(after_help = PYLOCK_EXAMPLES)]
    Pylock(LockFileArgs),
    /// Write a policy for Kubernetes: pods start only with images that are proven on a GPU by a key.
    #[command(after_help = POLICY_EXAMPLES)]
    Policy(PolicyArgs),
    /// Write a Slurm batch script that runs a command in the image (pyxis, apptainer, docker or podman).
    #[command(after_help = SLURM_EXAMPLES)]
    Slurm(FilesArgs),
}

/// Arguments of every `export`.
#[derive(Debug, Clone, Args)]
#[command(allow_missing_positional = true)]
pub struct DockerfileArgs {
    /// Spec to export: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    pub spec: Option<SpecArgument>,
    /// Output directory; must be empty or absent unless --force.
    pub dir: Utf8PathBuf,
    /// Overwrite an earlier export in DIR.
    #[arg(long)]
    pub force: bool,
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

/// Arguments of the exports that run an image.
#[derive(Debug, Clone, Args)]
pub struct FilesArgs {
    /// What to export.
    #[command(flatten)]
    pub export: DockerfileArgs,
    /// Pushed image that the files name by digest, instead of a Dockerfile [default, and without a value: that of the last push from here].
    #[arg(long, value_name = "NAME@sha256:…", num_args = 0..=1, default_missing_value = "", conflicts_with = "build")]
    pub image: Option<String>,
    /// Write a Dockerfile with its context although the image was pushed.
    #[arg(long)]
    pub build: bool,
}

impl FilesArgs {
    fn into_request(self) -> request::Export {
        let Self { export, image, build } = self;
        export.with_image(match image {
            Some(name) if name.is_empty() => ExportedImage::LastPush,
            Some(name) => ExportedImage::Named(name),
            None if build => ExportedImage::Built,
            None => ExportedImage::PushedOrBuilt,
        })
    }
}

/// Arguments of the exports that only name a pushed image.
#[derive(Debug, Clone, Args)]
pub struct PushedArgs {
    /// What to export.
    #[command(flatten)]
    pub export: DockerfileArgs,
    /// Pushed image that the files name by digest.
    #[arg(long, value_name = "NAME@sha256:…", required = true)]
    pub image: String,
}

/// Arguments of `export pylock` and `export nfd`: a lock becomes one file.
#[derive(Debug, Clone, Args)]
#[command(allow_missing_positional = true)]
pub struct LockFileArgs {
    /// Spec whose lock file is exported: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]` [default: current project].
    pub spec: Option<SpecArgument>,
    /// Output file (a pylock is `pylock.toml` or `pylock.NAME.toml`); must not exist unless --force.
    #[arg(value_name = "FILE")]
    pub file: Utf8PathBuf,
    /// Replace FILE if it exists.
    #[arg(long)]
    pub force: bool,
    /// Lock file [default: next to envforge.toml; for a spec, in the state directory].
    #[arg(long, value_name = "FILE")]
    pub lockfile: Option<Utf8PathBuf>,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// The target machine.
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Arguments of `export oci`.
#[derive(Debug, Clone, Args)]
#[command(allow_missing_positional = true)]
pub struct OciArgs {
    /// Image, spec or lock file to export [default: current project].
    #[arg(value_name = "IMAGE|SPEC")]
    pub image: Option<String>,
    /// Output directory, or a file that ends in `.tar`; must not exist.
    #[arg(value_name = "DIR|FILE.tar")]
    pub target: Utf8PathBuf,
    /// Also write the image's evidence, as referrers in the index, for `import --evidence` and `oras cp -r`.
    #[arg(long)]
    pub evidence: bool,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// Arguments of `export squashfs` and `export sif`.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// Image, spec or lock file to export, followed by FILE, the output file [default: current project].
    #[arg(value_name = "IMAGE|SPEC|FILE")]
    pub image: Option<String>,
    /// Output file; must not exist unless --force [default: that of the current lock in `[cluster] folder`].
    #[arg(value_name = "FILE")]
    pub target: Option<Utf8PathBuf>,
    /// Compression of its blocks: `zstd[:LEVEL]`, `gzip[:LEVEL]` (read by old kernels too) or `lz4`.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub compression: FileCompression,
    /// Replace FILE if it exists.
    #[arg(long)]
    pub force: bool,
    /// The project.
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// Arguments of `export policy`.
#[derive(Debug, Clone, Args)]
pub struct PolicyArgs {
    /// Admission controller that reads it.
    #[arg(value_parser = controllers(), value_name = "CONTROLLER")]
    pub controller: PolicyController,
    /// Images: `HOST/NAME`, or all below `HOST/` or `HOST/PATH/`.
    #[arg(value_name = "IMAGES")]
    pub images: String,
    /// Output file; must not exist unless --force.
    #[arg(value_name = "FILE")]
    pub target: Utf8PathBuf,
    /// Public key whose word counts (repeatable: one of them is enough) [default: `[trust] keys`].
    #[arg(long, value_name = "PUB")]
    pub key: Vec<Utf8PathBuf>,
    /// GPU whose compute capability must be proven: NVML name, `sm_90` or `9.0` (repeatable: each of them) [default: any].
    #[arg(long, value_name = "GPU")]
    pub gpu: Vec<String>,
    /// Lowest level.
    #[arg(long, value_parser = levels(), default_value = "quick", value_name = "LEVEL")]
    pub level: Level,
    /// Replace FILE if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Admission controllers.
fn controllers() -> impl TypedValueParser<Value = PolicyController> {
    one_of([
        ("kyverno", PolicyController::Kyverno, "Kyverno (`ImageValidatingPolicy`)"),
        ("sigstore", PolicyController::Sigstore, "Sigstore's policy controller (`ClusterImagePolicy`)"),
    ])
}

into_request!(PolicyArgs => ExportPolicy { controller, images, target, key, gpu, level, force });
into_request!(OciArgs => ExportOci { image, target, evidence, project });

impl From<FileArgs> for request::ExportFile {
    fn from(args: FileArgs) -> Self {
        let FileArgs { image, target, compression, force, project } = args;
        // One word alone is the file.
        let (image, target) = match target {
            Some(target) => (image, Some(target)),
            None => (None, image.map(Utf8PathBuf::from)),
        };
        Self { image, target, compression, force, project: project.into() }
    }
}

impl DockerfileArgs {
    fn with_image(self, image: ExportedImage) -> request::Export {
        let Self { spec, dir, force, parts, project, source, target } = self;
        request::Export {
            spec,
            dir,
            force,
            image,
            parts: parts.into(),
            project: project.into(),
            source: source.into(),
            target: target.into(),
        }
    }
}

impl LockFileArgs {
    fn into_request(self) -> request::Export {
        let Self { spec, file, force, lockfile, parts, project, target } = self;
        let source = LockSource { lockfile, ..LockSource::default() };
        let export = DockerfileArgs { spec, dir: file, force, parts, project, source, target };
        export.with_image(ExportedImage::Built)
    }
}

impl From<ExportCommand> for request::Command {
    fn from(command: ExportCommand) -> Self {
        let (format, export) = match command {
            ExportCommand::Oci(args) => return Self::ExportOci(args.into()),
            ExportCommand::Sif(args) => return Self::ExportFile(FileKind::Sif, args.into()),
            ExportCommand::Policy(args) => return Self::ExportPolicy(args.into()),
            ExportCommand::Squashfs(args) => return Self::ExportFile(FileKind::Squashfs, args.into()),
            ExportCommand::Dockerfile(export) => {
                (ExportFormat::Dockerfile, export.with_image(ExportedImage::Built))
            }
            ExportCommand::Pylock(args) => (ExportFormat::Pylock, args.into_request()),
            ExportCommand::Nfd(args) => (ExportFormat::Nfd, args.into_request()),
            ExportCommand::Compose(args) => (ExportFormat::Compose, args.into_request()),
            ExportCommand::Devcontainer(args) => (ExportFormat::Devcontainer, args.into_request()),
            ExportCommand::Apptainer(args) => (ExportFormat::Apptainer, args.into_request()),
            ExportCommand::Slurm(args) => (ExportFormat::Slurm, args.into_request()),
            ExportCommand::Kubernetes(PushedArgs { export, image }) => {
                (ExportFormat::Kubernetes, export.with_image(ExportedImage::Named(image)))
            }
        };
        Self::Export(format, export)
    }
}
