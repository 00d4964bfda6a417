//! The file of a project's image on its cluster: `[cluster]` of the project, else of the configuration.

use camino::Utf8PathBuf;

use crate::failure::{Exit, Failure};
use crate::model::cluster::{ClusterRuntime, file_name};
use crate::model::request::FileKind;
use crate::settings::Settings;
use crate::workflow::build_request::BuildRequest;

/// The directory of a cluster's image files.
pub(crate) struct ClusterFolder {
    pub(crate) runtime: ClusterRuntime,
    /// An absolute path.
    pub(crate) path: Utf8PathBuf,
    /// The image's name in names of files.
    pub(crate) name: String,
}

impl ClusterFolder {
    /// The directory for the image of a project; `None`: a spec, or no directory is configured.
    pub(crate) fn of(wanted: &BuildRequest, settings: &Settings) -> Result<Option<Self>, ClusterError> {
        let (Some(root), Some(name)) = (&wanted.folder, &wanted.added.project) else { return Ok(None) };
        let own = wanted.cluster.folder.as_ref().map(|folder| root.join(folder));
        let Some(path) = own.or_else(|| settings.cluster.folder.clone()) else { return Ok(None) };
        let runtime = wanted.cluster.runtime.or(settings.cluster.runtime).ok_or(ClusterError::NoRuntime)?;
        Ok(Some(Self { runtime, path, name: name.clone() }))
    }

    /// The file of the image of the lock with that hash.
    pub(crate) fn file(&self, hash: &str) -> Utf8PathBuf {
        self.path.join(file_name(&self.name, hash, self.runtime.kind()))
    }

    /// Refuses a directory that is missing: shared storage that is not mounted would become a directory of this machine.
    pub(crate) fn check(&self) -> Result<(), ClusterError> {
        if self.path.is_dir() { Ok(()) } else { Err(ClusterError::NoFolder { folder: self.path.clone() }) }
    }
}

/// Why an image has no file on a cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// A directory without the runtime, which decides what kind of file it holds.
    #[error("`[cluster] folder` requires `[cluster] runtime`")]
    NoRuntime,
    /// No FILE, and no cluster that would name one.
    #[error("`{}` without FILE requires `[cluster] folder` in envforge.toml or in the configuration", kind.call())]
    NoFile {
        /// What was to be written.
        kind: FileKind,
    },
    /// The cluster's runtime starts the other kind of file.
    #[error("`{}` without FILE requires another runtime: `[cluster] runtime` is `{}`", kind.call(), runtime.as_str())]
    OtherKind {
        /// What was to be written.
        kind: FileKind,
        /// The runtime.
        runtime: ClusterRuntime,
    },
    /// The directory is a link or something else.
    #[error("cluster directory `{folder}` is not a directory")]
    NotAFolder {
        /// Its path.
        folder: Utf8PathBuf,
    },
    /// The directory is missing.
    #[error("cluster directory not found: `{folder}`")]
    NoFolder {
        /// Its path.
        folder: Utf8PathBuf,
    },
}

impl Failure for ClusterError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoRuntime | Self::NoFile { .. } | Self::OtherKind { .. } => Exit::Usage,
            Self::NotAFolder { .. } | Self::NoFolder { .. } => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::NoRuntime => "add `runtime = \"pyxis\"` or `runtime = \"apptainer\"`".to_owned(),
            Self::NoFile { kind: FileKind::Squashfs } => {
                "name a file: `envforge export squashfs image.sqsh`".to_owned()
            }
            Self::NoFile { kind: FileKind::Sif } => "name a file: `envforge export sif image.sif`".to_owned(),
            Self::OtherKind { runtime, .. } => {
                format!("run `envforge {}`, or name a file", runtime.kind().call())
            }
            Self::NotAFolder { .. } => {
                "name the directory itself in `[cluster] folder`, not a link".to_owned()
            }
            Self::NoFolder { .. } => "mount the shared storage, or create the directory".to_owned(),
        }]
    }
}
