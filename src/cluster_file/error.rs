//! Why a file for a cluster cannot be written.

use std::io;

/// Why a file for a cluster cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterFileError {
    /// The image has paths that the file cannot hold.
    #[error("the file cannot hold some paths of the image:{}", lines(reasons))]
    Paths {
        /// Each path with what it has.
        reasons: Vec<String>,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Paths that are named.
const NAMED: usize = 10;

fn lines(reasons: &[String]) -> String {
    let mut text: String = reasons.iter().take(NAMED).flat_map(|reason| ["\n  - ", reason]).collect();
    if let Some(more @ 1..) = reasons.len().checked_sub(NAMED) {
        text.push_str("\n  - and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    text
}
