//! Evidence of images that came to this machine without a registry, by the digest of the manifest. Anybody may have written it: only
//! signatures by trusted keys are believed, each time it is read.

use super::error::StoreError;
use super::folders::Store;
use crate::model::image_digest::Digest;

/// The folder below the state's.
const FOLDER: &str = "evidence-of-images";

fn file_of(digest: &Digest) -> String {
    format!("{FOLDER}/{}", digest.as_str().trim_start_matches("sha256:"))
}

/// Keeps the file of evidence of an image.
pub(crate) fn keep_evidence(store: &Store, digest: &Digest, file: &[u8]) -> Result<(), StoreError> {
    store.write_state(&file_of(digest), file)
}

/// Returns the file of evidence that was kept of an image.
pub(crate) fn kept_evidence(store: &Store, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
    store.read_state(&file_of(digest))
}
