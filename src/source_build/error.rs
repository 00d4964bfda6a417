//! Why a wheel could not be built from source.

use crate::base::BaseError;
use crate::engine::EngineError;
use crate::fetch::FetchError;
use crate::packages::PackagesError;
use crate::store::StoreError;

/// Why a wheel could not be built from source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Nobody says what the archive's bytes are.
    #[error("no SHA-256 of `{archive}` is known, and what cannot be checked is not built")]
    NoHash {
        /// The archive.
        archive: String,
    },
    /// Nobody says where the archive lies.
    #[error("where `{archive}` lies is not known")]
    NoAddress {
        /// The archive.
        archive: String,
    },
    /// The archive cannot be had.
    #[error("the source archive cannot be had: {cause}")]
    Archive {
        /// What happened.
        cause: FetchError,
    },
    /// A patch that a row names is not part of this program.
    #[error("the patch `{patch}` is not part of this envforge")]
    NoPatch {
        /// Its name.
        patch: String,
    },
    /// Even one compiler is too much.
    #[error("a compiler ran out of memory, although only one ran at a time")]
    OutOfMemory,
    /// The build ended well and made something else than one wheel.
    #[error("the build from source made {found} instead of one wheel")]
    Export {
        /// What it made.
        found: String,
    },
    /// A source distribution that is none.
    #[error("`{archive}` cannot be built: {detail}")]
    Distribution {
        /// Its file name.
        archive: String,
        /// What is wrong with it.
        detail: String,
    },
    /// What its build asks for cannot be had.
    #[error("what the build of `{archive}` asks for cannot be had: {cause}")]
    BuildRequires {
        /// Its file name.
        archive: String,
        /// Why not.
        #[source]
        cause: Box<PackagesError>,
    },
    /// What built packages need changes what they are built beside, without end.
    #[error("what the built packages need changes what they were built beside, each time anew")]
    Unsettled,
    /// The same source made another wheel than the lock names.
    #[error(
        "`{file}` was built again from its source and has other bytes than the lock names (SHA-256 {found}, locked {locked})"
    )]
    OtherWheel {
        /// The wheel.
        file: String,
        /// Of the one that was built.
        found: String,
        /// Of the one in the lock.
        locked: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// Packages of the builder, or the wheel itself.
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

impl SourceError {
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        let mirror = "name a folder that has it: `[source] mirror` (ENVFORGE_SOURCE_MIRROR), or a wheel: `--wheel FILE`";
        match self {
            Self::NoHash { .. } | Self::NoPatch { .. } => {
                vec!["name a wheel that somebody built: `--wheel FILE`".to_owned()]
            }
            Self::NoAddress { .. } | Self::Archive { cause: FetchError::NotFound { .. } } => {
                vec![mirror.to_owned()]
            }
            Self::Archive { cause } => cause.hints().into_iter().chain([mirror.to_owned()]).collect(),
            Self::OutOfMemory => vec![
                "build on a machine with more memory, or add swap; what was compiled is kept for the next run"
                    .to_owned(),
                "fewer GPU targets need less: name them with --gpu".to_owned(),
            ],
            Self::OtherWheel { .. } => vec![
                "take the wheel from where the lock was made: `envforge vendor DIR` there, `build --offline DIR` here".to_owned(),
                "or lock that package anew: `envforge lock -P PACKAGE`".to_owned(),
            ],
            Self::BuildRequires { cause, .. } if cause.is_conflict() => vec![
                "it is built with wheels alone, beside this framework: take a version of the package whose build asks for less".to_owned(),
            ],
            Self::BuildRequires { cause, .. } => cause.hints(),
            Self::Unsettled => vec!["name versions of these packages that fit together".to_owned()],
            Self::Packages(error) => error.hints(),
            Self::Engine(error) => error.hints(),
            Self::Base(error) => error.hints(),
            Self::Store(error) => error.hints(),
            Self::Export { .. } | Self::Distribution { .. } | Self::File(_) => Vec::new(),
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoHash { .. }
            | Self::NoAddress { .. }
            | Self::NoPatch { .. }
            | Self::Distribution { .. }
            | Self::Unsettled
            | Self::OtherWheel { .. } => 1,
            Self::BuildRequires { cause, .. } => cause.exit_code(),
            Self::Packages(error) => error.exit_code(),
            Self::Engine(error) => error.exit_code(),
            Self::Base(error) => error.exit_code(),
            _ => 3,
        }
    }
}
