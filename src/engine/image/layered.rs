//! An image that envforge puts together itself: its layers and its configuration. Values only.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;

use crate::model::versions::Machine;

/// The tar of a layer, written each time it is needed.
pub trait LayerContent: Send + Sync {
    /// Writes the uncompressed tar. It must have the digest and size that its [`ImageLayer`] says: the engine compares.
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()>;
}

/// A layer of an image to load.
#[derive(Clone)]
pub struct ImageLayer {
    /// What it holds, for progress.
    pub title: String,
    /// SHA-256 of its tar: `sha256:…`.
    pub diff_id: String,
    /// Size of its tar in bytes.
    pub size: u64,
    /// Its tar; `None`: a layer of the base, which the engine has.
    pub content: Option<Arc<dyn LayerContent>>,
}

impl std::fmt::Debug for ImageLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ImageLayer({}, {}, {} bytes)", self.title, self.diff_id, self.size)
    }
}

/// Returns the configuration of an image from the digests of all its layers, lowest first.
pub type ConfigOf = Box<dyn FnOnce(&[String]) -> Bytes + Send>;

/// The configuration of an image that is nothing but its layers.
pub fn plain_config(machine: Machine, diff_ids: &[String]) -> Bytes {
    let config = serde_json::json!({
        "architecture": machine.debian(), "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
    });
    config.to_string().into()
}

/// An image to load: its layers come one by one, lowest first, while later ones are still being made.
pub struct LayeredImage {
    /// The layers. The image is complete when the channel closes.
    pub layers: tokio::sync::mpsc::Receiver<ImageLayer>,
    /// Makes its configuration.
    pub config: ConfigOf,
    /// A private tag of the result, removed by the caller.
    pub scratch_tag: String,
    /// What is loaded, for progress.
    pub title: String,
}
