//! An image that envforge puts together itself: its layers and its configuration. Values only.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;

use crate::model::image::manifest::{LAYER_TYPE, PLAIN_LAYER_TYPE};
use crate::model::versions::Machine;

/// The bytes of a layer, written each time they are needed.
pub trait LayerContent: Send + Sync {
    /// Writes them. They must have the digest and size that the [`ImageLayer`] says: the engine compares.
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
    /// Its compressed form, if that can be written without compressing.
    pub packed: Option<PackedLayer>,
}

/// The compressed form of a layer.
#[derive(Clone)]
pub struct PackedLayer {
    /// SHA-256 of the gzip stream: `sha256:…`.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// Writes the gzip stream, which must have that digest and size: the engine compares.
    pub content: Arc<dyn LayerContent>,
}

/// What an engine is sent of a layer.
pub(super) struct Blob<'a> {
    pub(super) media_type: &'static str,
    pub(super) digest: &'a str,
    pub(super) size: u64,
    pub(super) content: Option<&'a Arc<dyn LayerContent>>,
}

impl ImageLayer {
    /// The layer for an image store: one that keeps what it is sent takes less disk for compressed forms, any other would only
    /// have to unpack them.
    pub(super) fn for_store(self, keeps_blobs: bool) -> Self {
        Self { packed: self.packed.filter(|_| keeps_blobs), ..self }
    }

    /// The blob that is sent: its compressed form, if there is one.
    pub(super) fn blob(&self) -> Blob<'_> {
        match &self.packed {
            Some(PackedLayer { digest, size, content }) => {
                Blob { media_type: LAYER_TYPE, digest, size: *size, content: Some(content) }
            }
            None => Blob {
                media_type: PLAIN_LAYER_TYPE,
                digest: &self.diff_id,
                size: self.size,
                content: self.content.as_ref(),
            },
        }
    }
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
    /// What is to come, for progress, if that is known.
    pub expected: Option<Expected>,
}

/// Layers of an image and the bytes of their tars, as far as they are known before they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    /// Number of layers.
    pub layers: usize,
    /// Bytes of their tars.
    pub bytes: u64,
}
