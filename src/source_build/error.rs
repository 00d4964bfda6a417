//! Why a wheel cannot be built from source.

use crate::base::BaseError;
use crate::engine::EngineError;
use crate::failure::{Exit, Failure};
use crate::fetch::FetchError;
use crate::packages::PackagesError;
use crate::store::StoreError;

/// Why a wheel cannot be built from source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The SHA-256 of the archive is unknown.
    #[error("cannot build `{archive}`: no SHA-256 known")]
    NoHash {
        /// The archive.
        archive: String,
    },
    /// The address of the archive is unknown.
    #[error("no download URL known for `{archive}`")]
    NoAddress {
        /// The archive.
        archive: String,
    },
    /// The archive cannot be downloaded.
    #[error("cannot download source archive: {cause}")]
    Archive {
        /// The download error.
        cause: FetchError,
    },
    /// A patch of a row is missing in this program.
    #[error("patch `{patch}` not found in this version of envforge")]
    NoPatch {
        /// Its name.
        patch: String,
    },
    /// A single compiler exceeds the memory.
    #[error("out of memory: a single compiler process exceeds the memory of this machine")]
    OutOfMemory,
    /// The build succeeded, but did not produce exactly one wheel.
    #[error("source build: expected one wheel, found {found}")]
    Export {
        /// The result.
        found: String,
    },
    /// The source distribution is invalid.
    #[error("cannot build `{archive}`: {detail}")]
    Distribution {
        /// Its file name.
        archive: String,
        /// The problem.
        detail: String,
    },
    /// The build requirements cannot be resolved.
    #[error("cannot resolve build requirements of `{archive}`: {cause}")]
    BuildRequires {
        /// Its file name.
        archive: String,
        /// The reason.
        #[source]
        cause: Box<PackagesError>,
    },
    /// The image lacks what packages are compiled with, or its GPUs are not theirs.
    #[error("cannot build from source:\n  {}", reasons.join("\n  "))]
    Unfit {
        /// Every reason.
        reasons: Vec<String>,
        /// The spec with nvcc, if the image lacks it.
        devel: Option<String>,
        /// Whether other GPUs would help.
        gpus: bool,
    },
    /// The lock names a recipe that this version of envforge does not have.
    #[error("cannot rebuild {name}: the lock file names another recipe than this version of envforge has")]
    OtherRecipe {
        /// The package.
        name: String,
    },
    /// The source builds do not converge.
    #[error("source builds do not converge: dependencies change on every pass")]
    Unsettled,
    /// The rebuilt wheel does not match the lock file.
    #[error("rebuilt `{file}` does not match the lock file (SHA-256 {found}, locked {locked})")]
    OtherWheel {
        /// The wheel.
        file: String,
        /// SHA-256 of the rebuilt wheel.
        found: String,
        /// SHA-256 of the locked wheel.
        locked: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// An error of the builder's packages or the wheel.
    #[error(transparent)]
    Packages(#[from] PackagesError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The base.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// The cache.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failure for SourceError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoHash { .. }
            | Self::NoAddress { .. }
            | Self::NoPatch { .. }
            | Self::Distribution { .. }
            | Self::Unfit { .. }
            | Self::OtherRecipe { .. }
            | Self::Unsettled
            | Self::OtherWheel { .. } => Exit::No,
            Self::BuildRequires { cause, .. } => cause.exit(),
            Self::Packages(error) => error.exit(),
            Self::Engine(error) => error.exit(),
            Self::Base(error) => error.exit(),
            Self::Archive { .. }
            | Self::OutOfMemory
            | Self::Export { .. }
            | Self::File(..)
            | Self::Store(..) => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let mirror = "set a directory that has it: `[source] mirror` (ENVFORGE_SOURCE_MIRROR), or use a prebuilt wheel: `--wheel FILE`";
        match self {
            Self::NoHash { .. } | Self::NoPatch { .. } => {
                vec!["use a prebuilt wheel: `--wheel FILE`".to_owned()]
            }
            Self::NoAddress { .. } | Self::Archive { cause: FetchError::NotFound { .. } } => {
                vec![mirror.to_owned()]
            }
            Self::Archive { cause } => cause.hints().into_iter().chain([mirror.to_owned()]).collect(),
            Self::OutOfMemory => vec![
                "build on a machine with more memory, or add swap (compiled files are cached for the next run)"
                    .to_owned(),
                "select fewer GPU targets with `--gpu` (they need less memory)".to_owned(),
            ],
            Self::OtherWheel { .. } | Self::OtherRecipe { .. } => vec![
                "copy the wheel from the machine that created the lock file: `envforge vendor DIR` there, `build --offline DIR` here".to_owned(),
                "or lock that package again: `envforge lock -P PACKAGE`".to_owned(),
            ],
            Self::BuildRequires { cause, .. } if cause.is_conflict() => vec![
                "select a version with fewer build requirements (they are installed as wheels next to this framework)".to_owned(),
            ],
            Self::BuildRequires { cause, .. } => cause.hints(),
            Self::Unfit { devel, gpus, .. } => {
                let devel = devel.iter().map(|spec| format!("build the flavour with nvcc: {spec}"));
                let gpus = gpus.then(|| "select GPUs that the package supports: `--gpu sm_80`".to_owned());
                devel.chain(gpus).collect()
            }
            Self::Unsettled => vec!["specify compatible versions of these packages".to_owned()],
            Self::Packages(error) => error.hints(),
            Self::Engine(error) => error.hints(),
            Self::Base(error) => error.hints(),
            Self::Store(error) => error.hints(),
            Self::Export { .. } | Self::Distribution { .. } | Self::File(_) => Vec::new(),
        }
    }
}
