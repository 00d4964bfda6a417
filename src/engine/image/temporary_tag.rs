//! A temporary tag: of an unchecked result, or of a system under construction.

use crate::engine::error::EngineError;
use crate::engine::image::types::Images;
use crate::host::process_owner::unique_name;

/// The repository of temporary tags. Each tag contains its owner process, so that the next run finds an orphan.
pub(in crate::engine) const PRIVATE: &str = "envforge-scratch";

/// Whether a tag is a temporary one of a run: its image is of nobody yet.
pub fn is_temporary(tag: &str) -> bool {
    owner_part(tag).is_some()
}

/// The tag of a temporary reference, which names its owner. Podman writes out the registry in front of the repository.
pub(in crate::engine) fn owner_part(reference: &str) -> Option<&str> {
    let (name, tag) = reference.rsplit_once(':')?;
    (name == PRIVATE || name.ends_with(&format!("/{PRIVATE}"))).then_some(tag)
}

/// A private tag, removed on every path, including Ctrl-C.
pub struct TemporaryTag<'a> {
    images: &'a dyn Images,
    name: String,
    removed: bool,
}

impl<'a> TemporaryTag<'a> {
    /// Reserves a unique tag; no image has it yet.
    pub fn new(images: &'a dyn Images) -> Self {
        Self { images, name: format!("{PRIVATE}:{}", unique_name()), removed: false }
    }

    /// Returns the tag.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the tag, and the image if it has no other tag.
    pub async fn remove(mut self) -> Result<(), EngineError> {
        self.images.remove_image(&self.name).await?;
        // Only now: if this future is dropped before, the guard must still remove the tag.
        self.removed = true;
        Ok(())
    }

    /// Removes the tag and keeps the image under its id: removing the last tag would remove the image, so the tag first
    /// moves to an image with other tags.
    pub async fn untag_keep_image(self, tagged_image: &str) -> Result<(), EngineError> {
        self.images.tag(tagged_image, &self.name).await?;
        self.remove().await
    }
}

impl Drop for TemporaryTag<'_> {
    fn drop(&mut self) {
        if !self.removed {
            self.images.discard_image(&self.name);
        }
    }
}
