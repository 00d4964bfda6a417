//! Requests of projects that the user allowed, by the digest of the requests and the project's folder.

use super::error::StoreError;
use super::folders::Store;

fn file_of(digest: &str) -> String {
    format!("trusted-projects/{digest}")
}

/// Records that the user allowed these requests; `text` lists them for a reader of the file.
pub(crate) fn remember_trusted(store: &Store, digest: &str, text: &str) -> Result<(), StoreError> {
    store.write_state(&file_of(digest), text.trim_start().as_bytes())
}

/// Returns whether the user allowed these requests before.
pub(crate) fn is_trusted(store: &Store, digest: &str) -> Result<bool, StoreError> {
    Ok(store.read_state(&file_of(digest))?.is_some())
}
