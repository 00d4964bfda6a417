//! A tag for something that passes: a result not yet checked, a system in the making.

use super::{Engine, EngineError};
use crate::owner::own_name;

/// The repository of such tags. Each names the process that took it, so that the next run finds what a killed one left.
pub(super) const PRIVATE: &str = "envforge-scratch";

/// A private tag, taken off on every path, Ctrl-C included.
pub struct PassingTag<'a> {
    engine: &'a dyn Engine,
    name: String,
    gone: bool,
}

impl<'a> PassingTag<'a> {
    /// A tag nobody else has; it stands on no image yet.
    pub fn new(engine: &'a dyn Engine) -> Self {
        Self { engine, name: format!("{PRIVATE}:{}", own_name()), gone: false }
    }

    /// The tag.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the tag off; the image goes if it has no other.
    pub async fn remove(mut self) -> Result<(), EngineError> {
        self.engine.remove_image(&self.name).await?;
        // Only now: if this was dropped while waiting, the guard still has work.
        self.gone = true;
        Ok(())
    }

    /// Takes the tag off and leaves the image under its id: removing an image's last tag would remove the image, so the
    /// tag moves to an image that has others first.
    pub async fn leave_image(self, tagged_image: &str) -> Result<(), EngineError> {
        self.engine.tag(tagged_image, &self.name).await?;
        self.remove().await
    }
}

impl Drop for PassingTag<'_> {
    fn drop(&mut self) {
        if !self.gone {
            self.engine.discard_image(&self.name);
        }
    }
}
