//! An image as an engine describes it.

use std::collections::BTreeMap;

use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::sha256::sha256_hex;

/// The metadata of an image in the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageInfo {
    /// `sha256:…` of the configuration.
    pub id: String,
    /// Tags of the image.
    pub tags: Vec<String>,
    /// Registry digests of the image (`name@sha256:…`).
    pub digests: Vec<String>,
    /// Size in bytes, all layers.
    pub size: u64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Environment, as `NAME=value`.
    pub env: Vec<String>,
    /// The configured user.
    pub user: String,
    /// Layer diff ids, lowest first.
    pub layers: Vec<String>,
    /// `created_by` lines of the history, oldest first.
    pub history: Vec<String>,
    /// Instructions that run in every build above it (`ONBUILD`).
    pub triggers: Vec<String>,
    /// Bytes added by each line of the history.
    pub sizes: Vec<u64>,
    /// The processor architecture.
    pub architecture: String,
}

impl ImageInfo {
    /// Returns what an image of this one takes over from it, as one SHA-256 (`sha256:…`): layers, variables, labels, user,
    /// architecture. Unlike the id it is the same on every engine.
    pub fn fingerprint(&self) -> String {
        let mut env = self.env.clone();
        env.sort();
        let parts = serde_json::json!({
            "architecture": self.architecture,
            "env": env,
            "labels": self.labels,
            "layers": self.layers,
            "user": self.user,
        });
        format!("sha256:{}", sha256_hex(parts.to_string().as_bytes()))
    }

    /// Returns the digest of the image in the registry of `name`, recorded by the engine on a pull or push.
    pub fn digest_in(&self, name: &ImageRef) -> Option<Digest> {
        let of = |text: &String| {
            let known: ImageRef = text.parse().ok()?;
            (known.name() == name.name()).then(|| known.digest().cloned()).flatten()
        };
        self.digests.iter().find_map(of)
    }
}
