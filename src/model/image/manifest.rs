//! The manifest of an image that envforge puts together itself (OCI image specification, "Image Manifest").
//!
//! Pure: the same configuration and layers give the same bytes, so the image's digest in a registry is a function of them.

use serde_json::{Value, json};

use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;
use crate::model::versions::Machine;

/// Media type of a manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an index of images.
pub const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a configuration.
pub const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer's compressed form.
pub const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Media type of a layer's tar.
pub const PLAIN_LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

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
pub fn manifest(
    config: &BlobDescriptor,
    layers: &[BlobDescriptor],
    compression: LayerCompression,
) -> Vec<u8> {
    let layers: Vec<Value> = layers.iter().map(|layer| layer.json(compression.media_type())).collect();
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config.json(CONFIG_TYPE), "layers": layers,
    })
    .to_string()
    .into_bytes()
}

/// The directory of blobs in an image layout.
pub const BLOBS: &str = "blobs/sha256";

/// Returns the path of a blob in an image layout: `blobs/sha256/…`.
pub fn blob_path(digest: &str) -> String {
    format!("{BLOBS}/{}", digest.trim_start_matches("sha256:"))
}

/// The file `oci-layout` of an image layout.
pub const LAYOUT_FILE: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// Returns the `index.json` of a layout that holds one image, with its name as Docker and containerd read it.
pub fn layout_index(manifest: &BlobDescriptor, machine: Machine, name: Option<&ImageRef>) -> Vec<u8> {
    let mut image = manifest.json(MANIFEST_TYPE);
    image["platform"] = json!({ "architecture": machine.debian(), "os": "linux" });
    if let Some(name) = name {
        image["annotations"] = json!({
            "io.containerd.image.name": format!("{}/{}:{}", name.registry(), name.repository(), name.tag().unwrap_or("latest")),
            "org.opencontainers.image.ref.name": name.tag().unwrap_or("latest"),
        });
    }
    json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [image] }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_names_the_image_and_its_platform() {
        let index = |name: Option<&ImageRef>| -> Value {
            let text = layout_index(&BlobDescriptor::of(b"manifest"), Machine::X86_64, name);
            serde_json::from_slice(&text).expect("JSON")
        };
        let name = "pytorch-cuda:2.8-cu128-unverified".parse().expect("a reference");
        let image = &index(Some(&name))["manifests"][0];
        assert_eq!(image["platform"]["architecture"], "amd64");
        let annotations = &image["annotations"];
        assert_eq!(annotations["org.opencontainers.image.ref.name"], "2.8-cu128-unverified");
        let full = "docker.io/library/pytorch-cuda:2.8-cu128-unverified";
        assert_eq!(annotations["io.containerd.image.name"], full);
        assert!(index(None)["manifests"][0].get("annotations").is_none());
    }

    #[test]
    fn manifest_is_a_function_of_configuration_and_layers() {
        let (config, layer) = (BlobDescriptor::of(b"config"), BlobDescriptor::of(b"layer"));
        let text = String::from_utf8(manifest(&config, std::slice::from_ref(&layer), LayerCompression::Gzip))
            .expect("UTF-8");
        let wanted = format!(
            r#"{{"config":{{"digest":"{}","mediaType":"application/vnd.oci.image.config.v1+json","size":6}},"layers":[{{"digest":"{}","mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","size":5}}],"mediaType":"application/vnd.oci.image.manifest.v1+json","schemaVersion":2}}"#,
            config.digest, layer.digest
        );
        assert_eq!(text, wanted);
    }
}
