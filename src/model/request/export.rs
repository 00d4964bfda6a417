//! `export`.

use camino::Utf8PathBuf;

use super::lock::LockOptions;
use super::project::ProjectOptions;
use super::spec_parts::SpecParts;
use super::target::TargetOptions;
use crate::model::file_compression::FileCompression;

/// Arguments of every `export`.
#[derive(Debug, Clone)]
pub struct Export {
    /// What to export: `NAME[:VERSION][-CUDA][-PYTHON][-FLAVOUR]`.
    pub spec: Option<String>,
    /// The folder to write; must be empty or absent, unless --force.
    pub dir: Utf8PathBuf,
    /// Overwrite what an earlier export left in DIR.
    pub force: bool,
    /// The pushed image that the files name instead of building one.
    pub image: Option<String>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// Which project.
    pub project: ProjectOptions,
    /// Which lock is used and how.
    pub source: LockOptions,
    /// The machine that will run it.
    pub target: TargetOptions,
}

/// A request for `export oci`.
#[derive(Debug, Clone)]
pub struct ExportOci {
    /// The image, spec or lock file; `None`: the project's.
    pub image: Option<String>,
    /// The directory, or the file that ends in `.tar`.
    pub target: Utf8PathBuf,
    /// The project.
    pub project: ProjectOptions,
}

/// A request for `export squashfs` and `export sif`.
#[derive(Debug, Clone)]
pub struct ExportFile {
    /// The image, spec or lock file; `None`: the project's.
    pub image: Option<String>,
    /// The file.
    pub target: Utf8PathBuf,
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
}
