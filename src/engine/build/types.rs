//! The trait [`Builder`] and its values.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::engine::error::EngineError;
use crate::model::image::context::ContextEntry;
use crate::model::image::info::ImageInfo;
use crate::model::request::network::Network;
use crate::report::Reporter;

/// A secret that a build may read but not keep.
#[derive(Clone)]
pub struct Secret {
    /// Its id in `RUN --mount=type=secret,id=…`.
    pub id: String,
    /// Its bytes (at most 500 KB).
    pub bytes: Bytes,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({}, {} bytes)", self.id, self.bytes.len())
    }
}

/// An image to build.
#[derive(Debug, Clone)]
pub struct ImageBuildRequest {
    /// The context, including `Dockerfile`.
    pub context: Vec<ContextEntry>,
    /// What keeps others from knowing the key under which the daemon keeps the context's files: of this machine alone.
    pub context_secret: Vec<u8>,
    /// Secrets of the build.
    pub secrets: Vec<Secret>,
    /// Docker's predefined proxy arguments only (`HTTPS_PROXY`…).
    pub build_args: BTreeMap<String, String>,
    /// Labels in addition to those of the Dockerfile.
    pub labels: BTreeMap<String, String>,
    /// Network of RUN steps.
    pub network: Network,
    /// Whether to ignore cached layers.
    pub no_cache: bool,
    /// A private tag of the result, removed by the caller.
    pub scratch_tag: String,
}

#[cfg(test)]
impl ImageBuildRequest {
    /// A build with secrets of these ids and a proxy.
    pub(super) fn sample(secrets: &[&str]) -> Self {
        let secret = |id: &&str| Secret { id: (*id).to_owned(), bytes: Bytes::from_static(b"s") };
        Self {
            context: vec![ContextEntry::text("Dockerfile", "FROM x")],
            context_secret: b"of this machine".to_vec(),
            secrets: secrets.iter().map(secret).collect(),
            build_args: [("HTTPS_PROXY".to_owned(), "p q".to_owned())].into(),
            labels: [].into(),
            network: Network::Host,
            no_cache: false,
            scratch_tag: "envforge-scratch:1".to_owned(),
        }
    }
}

/// The builder of an engine.
#[async_trait]
pub trait Builder: Send + Sync {
    /// Builds an image; dropping the future cancels the build in the daemon.
    async fn build(
        &self,
        request: ImageBuildRequest,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError>;
}
