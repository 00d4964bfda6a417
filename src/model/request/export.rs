//! `export`.

use camino::Utf8PathBuf;

use super::lock::LockOptions;
use super::project::ProjectOptions;
use super::spec::SpecArgument;
use super::spec_parts::SpecParts;
use super::target::TargetOptions;
use super::verify::Level;
use crate::model::file_compression::FileCompression;

/// Arguments of every `export`.
#[derive(Debug, Clone)]
pub struct Export {
    /// What to export: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: Option<SpecArgument>,
    /// The folder to write, or the one file; must be empty or absent, unless --force.
    pub dir: Utf8PathBuf,
    /// Overwrite what an earlier export left in DIR.
    pub force: bool,
    /// The image of the files.
    pub image: ExportedImage,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// Which lock is used and how.
    pub source: LockOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

/// The image of exported files: one of a registry that they name, or one that they build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExportedImage {
    /// The image of the last push of the lock, or one that is built if the lock was not pushed from here.
    #[default]
    PushedOrBuilt,
    /// The image of the last push of the lock.
    LastPush,
    /// This pushed image.
    Named(String),
    /// One that is built.
    Built,
}

impl ExportedImage {
    /// The name of an image that was typed.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::PushedOrBuilt | Self::LastPush | Self::Built => None,
        }
    }
}

/// A request for `export oci`.
#[derive(Debug, Clone)]
pub struct ExportOci {
    /// The image, spec or lock file; `None`: the project's.
    pub image: Option<String>,
    /// The directory, or the file that ends in `.tar`.
    pub target: Utf8PathBuf,
    /// Write its evidence, too.
    pub evidence: bool,
    /// The project.
    pub project: ProjectOptions,
}

/// A request for `export squashfs` and `export sif`.
#[derive(Debug, Clone)]
pub struct ExportFile {
    /// The image, spec or lock file; `None`: the project's.
    pub image: Option<String>,
    /// The file; `None`: that of the project's cluster.
    pub target: Option<Utf8PathBuf>,
    /// How its blocks are compressed.
    pub compression: FileCompression,
    /// Replace a file that is there.
    pub force: bool,
    /// The project.
    pub project: ProjectOptions,
}

/// A file that a cluster starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A squashfs.
    Squashfs,
    /// A squashfs with the front of a SIF.
    Sif,
}

impl FileKind {
    /// Returns the call that writes such a file.
    pub fn call(self) -> &'static str {
        match self {
            Self::Squashfs => "export squashfs",
            Self::Sif => "export sif",
        }
    }
}

/// A request for `export policy`.
#[derive(Debug, Clone)]
pub struct ExportPolicy {
    /// The controller that reads it.
    pub controller: PolicyController,
    /// The images: a repository, or all below a path that ends in `/`.
    pub images: String,
    /// The file.
    pub target: Utf8PathBuf,
    /// Public keys whose word counts; without one those of the settings.
    pub key: Vec<Utf8PathBuf>,
    /// GPUs by name or compute capability; empty: any.
    pub gpu: Vec<String>,
    /// The lowest level.
    pub level: Level,
    /// Replace a file that is there.
    pub force: bool,
}

/// What admits pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyController {
    /// Kyverno.
    Kyverno,
    /// Sigstore's policy controller.
    Sigstore,
}

/// The formats of `export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A Dockerfile with its context.
    Dockerfile,
    /// A Compose project.
    Compose,
    /// A dev container.
    Devcontainer,
    /// An Apptainer definition.
    Apptainer,
    /// A Slurm batch script.
    Slurm,
    /// A kustomize base for Kubernetes.
    Kubernetes,
    /// A pylock.toml.
    Pylock,
    /// The GPUs and drivers for Node Feature Discovery.
    Nfd,
}
