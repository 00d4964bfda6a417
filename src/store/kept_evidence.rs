//! Evidence of images that is kept on this machine, by the digest of the manifest and by where it came from. Anybody may have written it:
//! only signatures by trusted keys are believed, each time it is read.

use std::time::SystemTime;

use super::error::StoreError;
use super::folders::Store;
use crate::model::image_digest::Digest;

/// Where evidence came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A layout or a vendor folder.
    Layout,
    /// A registry, which may have withdrawn it since.
    Registry,
}

impl Origin {
    /// The folder below the state's.
    const fn folder(self) -> &'static str {
        match self {
            Self::Layout => "evidence-of-images",
            Self::Registry => "evidence-of-registries",
        }
    }
}

fn file_of(origin: Origin, digest: &Digest) -> String {
    format!("{}/{}", origin.folder(), digest.as_str().trim_start_matches("sha256:"))
}

/// Keeps the file of evidence of an image.
pub(crate) fn keep_evidence(
    store: &Store,
    origin: Origin,
    digest: &Digest,
    file: &[u8],
) -> Result<(), StoreError> {
    store.write_state(&file_of(origin, digest), file)
}

/// Returns the file of evidence that was kept of an image.
pub(crate) fn kept_evidence(
    store: &Store,
    origin: Origin,
    digest: &Digest,
) -> Result<Option<Vec<u8>>, StoreError> {
    store.read_state(&file_of(origin, digest))
}

/// Returns when evidence of an image was last kept, if that is known.
pub(crate) fn last_kept(store: &Store, digest: &Digest) -> Option<SystemTime> {
    let written = |origin| {
        let file = store.state_dir().join(file_of(origin, digest));
        fs_err::metadata(file).and_then(|metadata| metadata.modified()).ok()
    };
    [Origin::Layout, Origin::Registry].into_iter().filter_map(written).max()
}
