//! The trait [`Images`] and its values.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;

use crate::engine::error::EngineError;
use crate::engine::image::layered::LayeredImage;
use crate::model::image::info::ImageInfo;
use crate::model::image_digest::Digest;
use crate::model::versions::Machine;
use crate::registry::Credential;
use crate::report::Reporter;

/// An image to pull.
#[derive(Debug, Clone)]
pub struct PullRequest {
    /// The reference with tag or digest.
    pub reference: String,
    /// The requested architecture.
    pub machine: Machine,
    /// The login for its registry, if known.
    pub credential: Option<Credential>,
}

/// The images of an engine.
#[async_trait]
pub trait Images: Send + Sync {
    /// Returns the image of that tag or id, if the engine has it.
    async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError>;
    /// Lists the images with a label of that name, in the engine's order.
    async fn images(&self, label: &str) -> Result<Vec<ImageInfo>, EngineError>;
    /// Adds a tag to an image.
    async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError>;
    /// Removes a tag, or an untagged image; succeeds if absent. Never forces a removal.
    async fn remove_image(&self, reference: &str) -> Result<(), EngineError>;
    /// Removes a tag from `Drop`: blocks until done and logs a failure. See [`Images::remove_image`].
    fn discard_image(&self, reference: &str);
    /// Pulls an image, with a login if its registry requires one.
    async fn pull(&self, pull: PullRequest, reporter: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError>;
    /// Pushes a tag to its registry and returns the digest there.
    async fn push(
        &self,
        reference: &str,
        credential: Option<&Credential>,
        reporter: Arc<dyn Reporter>,
    ) -> Result<Digest, EngineError>;
    /// Creates a tagged image with one layer from a tar file, which is compared with its SHA-256 (hex) while it is sent.
    async fn import(
        &self,
        archive: Utf8PathBuf,
        sha256: &str,
        tag: &str,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError>;
    /// Writes an image with its layers to a file, as `docker save` does.
    async fn save(&self, image: &str, archive: Utf8PathBuf) -> Result<(), EngineError>;
    /// Loads an image whose layers are made here, without those the engine has. The engine compares every layer with its
    /// digest.
    async fn load_layers(
        &self,
        image: LayeredImage,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError>;
    /// Reads files of an image without running it: a tar for each path that exists; an error if all together have more
    /// than `most` bytes.
    async fn read_files(
        &self,
        image: &str,
        paths: &[&str],
        most: u64,
    ) -> Result<BTreeMap<String, Vec<u8>>, EngineError>;
}
