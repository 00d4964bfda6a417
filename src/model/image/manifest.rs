//! The manifest of an image that envforge puts together itself (OCI image specification, "Image Manifest").
//!
//! Pure: the same configuration and layers give the same bytes, so the image's digest in a registry is a function of them.

use serde_json::{Value, json};

use crate::model::image_digest::Digest;

/// Media type of a manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What a manifest says of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobDescriptor {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

impl BlobDescriptor {
    /// Returns the descriptor of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: Digest::of(bytes), size: bytes.len() as u64 }
    }

    fn json(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest, "size": self.size })
    }
}

/// Returns the manifest of an image of compressed layers, lowest first.
pub fn manifest(config: &BlobDescriptor, layers: &[BlobDescriptor]) -> Vec<u8> {
    let layers: Vec<Value> = layers.iter().map(|layer| layer.json(LAYER_TYPE)).collect();
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config.json(CONFIG_TYPE), "layers": layers,
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_is_a_function_of_configuration_and_layers() {
        let (config, layer) = (BlobDescriptor::of(b"config"), BlobDescriptor::of(b"layer"));
        let text = String::from_utf8(manifest(&config, std::slice::from_ref(&layer))).expect("UTF-8");
        let wanted = format!(
            r#"{{"config":{{"digest":"{}","mediaType":"application/vnd.oci.image.config.v1+json","size":6}},"layers":[{{"digest":"{}","mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","size":5}}],"mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}}"#,
            config.digest, layer.digest
        );
        assert_eq!(text, wanted);
    }
}
