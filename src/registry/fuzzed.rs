//! Fuzzed parsers: registry documents and Docker's configuration.

use super::docker_config::DockerConfig;
use super::manifest::{Manifest, platform_of_config};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;

/// A manifest, index or image configuration.
pub(crate) fn document(text: &str) {
    if let Ok(Manifest::Index(entries)) = Manifest::parse(text.as_bytes()) {
        for entry in entries {
            assert_eq!(entry.digest.to_string().parse::<Digest>().ok(), Some(entry.digest));
        }
    }
    let _ = platform_of_config(text.as_bytes());
}

/// `config.json` of the Docker client.
pub(crate) fn docker_config(text: &str) {
    if let Ok(config) = DockerConfig::parse(text) {
        let _ = (config.helper("docker.io"), config.login("docker.io"));
    }
}

/// An image reference is written as it was read.
pub(crate) fn reference(text: &str) {
    if let Ok(image) = text.parse::<ImageRef>() {
        assert_eq!(image.to_string().parse().ok(), Some(image));
    }
}
