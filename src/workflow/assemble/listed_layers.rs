//! Finished layers that a place lists under the hash of their inputs.

use camino::Utf8PathBuf;

use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_ref::ImageRef;

/// Layers that a place lists under a key.
pub(super) struct ListedLayers {
    pub(super) place: Place,
    /// The digests of their tars.
    pub(super) diff_ids: Vec<String>,
}

/// A place that may have finished layers.
pub(super) enum Place {
    Folder(Utf8PathBuf),
    Registry(ImageRef, Vec<BlobDescriptor>),
}

impl Place {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Folder(folder) => folder.to_string(),
            Self::Registry(image, _) => image.to_string(),
        }
    }
}
