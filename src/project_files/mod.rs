//! The files of a project that become part of an image: copied ones, and the sources that its own wheel is built from.

mod copy;
mod git;
mod sources;
mod sources_error;

pub use copy::{CopyError, collect_copy};
pub use sources::{ProjectSources, collect_sources};
pub use sources_error::SourcesError;

/// Names excluded everywhere: caches of tools.
const LEFT_OUT: [&str; 5] = [".git", "__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".ruff_cache"];

/// Whether a file is a lock file, which cannot be part of the files it lists.
fn is_lock(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.next() == Some("envforge") && parts.next_back() == Some("lock")
}
