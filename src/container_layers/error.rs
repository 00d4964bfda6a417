//! Why a layer cannot be made.

use std::time::Duration;

use crate::archive::content_digest::ContentError;
use crate::archive::saved_layers::SavedImageError;
use crate::engine::EngineError;
use crate::failure::{Exit, Failure};
use crate::store::StoreError;

/// Why a layer cannot be made in a container.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine's archive cannot be used.
    #[error(transparent)]
    Saved(#[from] SavedImageError),
    /// The cache failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Files from a container cannot be read.
    #[error("cannot read the files of {what}: {source}")]
    Content {
        /// The layer.
        what: &'static str,
        /// Why.
        source: ContentError,
    },
    /// The program in the container failed.
    #[error("cannot make {what}: exit code {code}{}", output.iter().fold(String::new(), |all, line| all + "\n  " + line))]
    Step {
        /// The layer.
        what: &'static str,
        /// Its exit code.
        code: i64,
        /// The last lines of its output.
        output: Vec<String>,
    },
    /// A step of the engine's builder did not end.
    #[error("cannot make a layer: its step ran for more than {} min", limit.as_secs() / 60)]
    TooLong {
        /// The most that it may take.
        limit: Duration,
    },
    /// The compiler of byte code answered something else than asked.
    #[error("the compiler of byte code returned {found}")]
    ByteCode {
        /// What it returned.
        found: String,
    },
    /// A step above the wheels changed what belongs to them.
    #[error(
        "cannot use the layer of {what}: it replaces or deletes `/{path}`, which belongs to the Python packages"
    )]
    Environment {
        /// The layer.
        what: &'static str,
        /// The entry, relative to the root.
        path: String,
    },
    /// A compressed layer has another content than its name says.
    #[error("a layer has the content {found} instead of {wanted}")]
    OtherLayer {
        /// The digest of the tar that was looked for: `sha256:…`.
        wanted: String,
        /// The digest of its tar, or why it has none.
        found: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Failure for LayerError {
    fn exit(&self) -> Exit {
        match self {
            Self::Engine(error) => error.exit(),
            Self::Saved(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Environment { .. } => Exit::No,
            Self::Content { .. }
            | Self::Step { .. }
            | Self::TooLong { .. }
            | Self::ByteCode { .. }
            | Self::OtherLayer { .. }
            | Self::Io(_) => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Engine(error) => error.hints(),
            Self::Saved(error) => error.hints(),
            Self::Store(error) => error.hints(),
            Self::Environment { .. } => {
                vec!["remove the distribution package that brings it: see `apt` in envforge.toml".to_owned()]
            }
            Self::OtherLayer { .. } => vec!["do not use its source: nothing of it was used".to_owned()],
            Self::TooLong { .. } => {
                vec![
                    "find the script of a package that does not end: run the same command again with -v"
                        .to_owned(),
                ]
            }
            Self::Content { .. } | Self::Step { .. } | Self::ByteCode { .. } | Self::Io(_) => {
                vec![
                    "run the same command again with -v; `--builder dockerfile` builds without this step"
                        .to_owned(),
                ]
            }
        }
    }
}
