//! Why a file for a cluster cannot be written.

use std::io;

use crate::model::counted::listed;

/// Why a file for a cluster cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterFileError {
    /// The image has paths that the file cannot hold.
    #[error("the file cannot hold some paths of the image:{}", listed(reasons))]
    Paths {
        /// Each path with what it has.
        reasons: Vec<String>,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}
