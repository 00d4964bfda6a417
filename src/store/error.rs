//! Errors of the store.

use std::io::ErrorKind;

use crate::failure::{Exit, Failure};

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory could not be read or written; the cause names it.
    #[error("{purpose}: {cause}")]
    File {
        /// The failed action: "cannot write the cache".
        purpose: &'static str,
        /// The system's error, with the path.
        cause: std::io::Error,
    },
    /// A file could not be copied out of the cache; the cause names the file.
    #[error(transparent)]
    Copy(std::io::Error),
    /// A text that is not a SHA-256.
    #[error("invalid SHA-256 `{found}` (expected 64 lower-case hex digits)")]
    NotADigest {
        /// The text.
        found: String,
    },
    /// Bytes of another hash.
    #[error("SHA-256 mismatch: expected `{wanted}`, found `{found}`")]
    WrongContent {
        /// The expected hash.
        wanted: String,
        /// The hash of the bytes.
        found: String,
    },
    /// A stored report cannot be read.
    #[error("cannot read report `{file}`: {why}")]
    Report {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

impl Failure for StoreError {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::File { cause, .. } => {
                let fix = match cause.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some disk space",
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                        "make the directory writable for your user"
                    }
                    _ => return Vec::new(),
                };
                vec![format!(
                    "{fix}, or use other directories: set `ENVFORGE_CACHE_DIR` for downloads, `ENVFORGE_STATE_DIR` for locks and reports"
                )]
            }
            Self::Copy(cause) => cause.hints(),
            Self::Report { file, .. } => vec![format!("remove `{file}`, then verify the image again")],
            Self::NotADigest { .. } | Self::WrongContent { .. } => Vec::new(),
        }
    }
}

impl StoreError {
    pub(crate) fn file(purpose: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::File { purpose, cause }
    }
}
