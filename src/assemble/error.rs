//! Why layers cannot be made of wheels.

use crate::failure::{Exit, Failure};
use crate::store::StoreError;

/// Why layers cannot be made of wheels.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// The wheel has other bytes than the locked one.
    #[error("SHA-256 mismatch for `{file}`: expected `{wanted}`, found `{found}`")]
    WrongHash {
        /// The wheel's file name.
        file: String,
        /// The locked hash.
        wanted: String,
        /// The hash of the bytes.
        found: String,
    },
    /// The wheel is damaged or contains entries that are not installed.
    #[error("cannot install `{file}`:{}", lines(reasons))]
    Refused {
        /// The wheel's file name.
        file: String,
        /// Every reason, each with the name of its entry.
        reasons: Vec<String>,
    },
    /// One distribution has a file where another has a directory.
    #[error(
        "cannot install `{file_owner}` and `{folder_owner}`: `{path}` is a file of one and a directory of the other"
    )]
    FileAndFolder {
        /// The path in the image.
        path: String,
        /// The distribution with the file.
        file_owner: String,
        /// The distribution with the directory.
        folder_owner: String,
    },
    /// A package replaces files of CUDA or of the framework.
    #[error("packages cannot replace files of CUDA or the framework:{}", lines(reasons))]
    Replaces {
        /// Every file, with both packages.
        reasons: Vec<String>,
    },
    /// The project itself and a package install different files at one path.
    #[error(
        "the project and packages of the image have different files at the same paths:{}",
        lines(reasons)
    )]
    OfProject {
        /// Every file, with both.
        reasons: Vec<String>,
    },
    /// A module of the project hides that of a package, or the other way round.
    #[error(
        "the project and packages of the image have different modules of the same name:{}",
        lines(reasons)
    )]
    HiddenModules {
        /// Every name, with both files.
        reasons: Vec<String>,
    },
    /// The entries of a layer do not go together.
    #[error("cannot assemble a layer:{}", lines(reasons))]
    Layer {
        /// Every reason, each with its path.
        reasons: Vec<String>,
    },
    /// The wheel cannot be read.
    #[error("cannot read `{file}`: {cause}")]
    Read {
        /// The wheel's file name.
        file: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// A part of a layer vanished from the cache after it was found there.
    #[error("{what} vanished from the cache while it was in use")]
    Gone {
        /// The part: `the byte code of …`.
        what: String,
    },
    /// The layer cannot be written.
    #[error("cannot write a layer: {0}")]
    Write(std::io::Error),
    /// The digests of a layer cannot be recorded.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AssembleError {
    /// The error of a layer whose tar vanished, by its SHA-256.
    pub(crate) fn layer_gone(sha256: &str) -> Self {
        Self::Gone { what: format!("layer {}", sha256.get(..12).unwrap_or(sha256)) }
    }

    /// The error of a wheel of the cache: one that is absent is gone.
    pub(crate) fn of_cache(self) -> Self {
        match self {
            Self::Read { file, cause } if cause.kind() == std::io::ErrorKind::NotFound => {
                Self::Gone { what: format!("`{file}`") }
            }
            error => error,
        }
    }
}

impl Failure for AssembleError {
    fn exit(&self) -> Exit {
        match self {
            Self::WrongHash { .. }
            | Self::Read { .. }
            | Self::Gone { .. }
            | Self::Write(_)
            | Self::Store(_) => Exit::Outside,
            Self::Refused { .. }
            | Self::FileAndFolder { .. }
            | Self::Replaces { .. }
            | Self::OfProject { .. }
            | Self::HiddenModules { .. }
            | Self::Layer { .. } => Exit::No,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::WrongHash { wanted, .. } => vec![format!(
                "delete `sha256/{}/{wanted}` in the cache directory, then run it again to download the wheel",
                wanted.get(..2).unwrap_or_default()
            )],
            Self::Refused { .. } => {
                vec!["lock another version of the package, or report it to its author".to_owned()]
            }
            Self::FileAndFolder { .. } => vec!["remove one of the two packages".to_owned()],
            Self::Replaces { .. } => vec!["remove the package, or lock another version of it".to_owned()],
            Self::HiddenModules { .. } | Self::OfProject { .. } => {
                vec!["rename the project's modules and programs".to_owned()]
            }
            Self::Gone { .. } => {
                vec!["end what removes files of the cache, then run the same command again".to_owned()]
            }
            Self::Layer { .. } => Vec::new(),
            Self::Read { cause, .. } | Self::Write(cause) => cause.hints(),
            Self::Store(error) => error.hints(),
        }
    }
}

fn lines(all: &[String]) -> String {
    all.iter().flat_map(|line| ["\n  - ", line]).collect()
}
