//! The documents behind a tag: an index of platforms, or one image. Docker's media types and OCI's.

use serde::Deserialize;

use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_digest::Digest;
use crate::model::versions::Machine;

/// Supported document types.
pub(super) const ACCEPT: [&str; 4] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// A document behind a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Manifest {
    /// One document per platform.
    Index(Vec<PlatformEntry>),
    /// One image; its configuration has the platform.
    Image {
        /// The configuration.
        config: Digest,
        /// The layers, lowest first.
        layers: Vec<BlobDescriptor>,
    },
}

/// One platform of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlatformEntry {
    /// `linux/arm64/v8`.
    pub(super) platform: String,
    /// Whether it states no architecture: an engine may take it for any.
    pub(super) is_unstated: bool,
    /// Its manifest.
    pub(super) digest: Digest,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestError {
    /// Not JSON, or incomplete.
    #[error("{0}")]
    Malformed(String),
    /// A kind that is not read.
    #[error("a document of kind `{0}`")]
    Kind(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<u64>,
    media_type: Option<String>,
    manifests: Option<Vec<Entry>>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Entry {
    digest: Digest,
    platform: Option<Platform>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: Digest,
    #[serde(default)]
    size: u64,
}

/// A platform as an index and an image's configuration write it.
#[derive(Deserialize)]
struct Platform {
    os: Option<String>,
    architecture: Option<String>,
    variant: Option<String>,
}

impl Platform {
    fn text(&self) -> String {
        let part = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let variant = self.variant.as_deref().filter(|variant| !variant.is_empty());
        let variant = variant.map(|variant| format!("/{variant}")).unwrap_or_default();
        format!("{}/{}{variant}", part(&self.os), part(&self.architecture))
    }
}

impl Manifest {
    /// Reads a document.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|error| ManifestError::Malformed(error.to_string()))?;
        if let Some(entries) = document.manifests {
            let entries = entries.into_iter().map(|entry| PlatformEntry {
                is_unstated: entry.platform.as_ref().is_none_or(|stated| stated.architecture.is_none()),
                platform: entry
                    .platform
                    .map_or_else(|| "unknown/unknown".to_owned(), |platform| platform.text()),
                digest: entry.digest,
            });
            return Ok(Self::Index(entries.collect()));
        }
        match document.config {
            Some(config) => {
                let blob = |layer: Descriptor| BlobDescriptor { digest: layer.digest, size: layer.size };
                let layers = document.layers.into_iter().map(blob).collect();
                Ok(Self::Image { config: config.digest, layers })
            }
            None if document.schema_version == Some(1) => {
                Err(ManifestError::Kind("Docker image manifest, schema 1".to_owned()))
            }
            None => match document.media_type {
                Some(kind) => Err(ManifestError::Kind(kind)),
                None => Err(ManifestError::Malformed("neither an index nor an image".to_owned())),
            },
        }
    }
}

/// The platform in an image's configuration.
pub(super) fn platform_of_config(bytes: &[u8]) -> Result<String, ManifestError> {
    let platform: Platform =
        serde_json::from_slice(bytes).map_err(|error| ManifestError::Malformed(error.to_string()))?;
    Ok(platform.text())
}

/// Whether a platform is that of the machine: `linux/arm64/v8` is `linux/arm64`.
pub(super) fn is_platform_of(written: &str, machine: Machine) -> bool {
    let wanted = machine.platform();
    // The variants that such a machine runs; `amd64/v3` may need more than it has.
    let variants: &[&str] = match machine {
        Machine::X86_64 => &["", "/v1"],
        Machine::Aarch64 => &["", "/v8"],
    };
    written.strip_prefix(wanted).is_some_and(|variant| variants.contains(&variant))
}

/// Whether some engine may take an entry of an index for that machine: containerd, for one, reads `x86_64` and `AArch64` as well, and
/// takes the first that fits.
pub(super) fn may_be_taken_for(entry: &PlatformEntry, machine: Machine) -> bool {
    let lower = entry.platform.to_ascii_lowercase();
    let mut parts = lower.split('/');
    let (os, architecture) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let names: &[&str] = match machine {
        Machine::X86_64 => &["amd64", "x86_64", "x86-64"],
        Machine::Aarch64 => &["arm64", "aarch64"],
    };
    entry.is_unstated
        || (["", "linux"].contains(&os) && (architecture.is_empty() || names.contains(&architecture)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(seed: &str) -> Digest {
        Digest::of(seed.as_bytes())
    }

    #[test]
    fn index_lists_platforms_without_attestations() {
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
              {{"digest":"{}","size":1,"platform":{{"os":"linux","architecture":"amd64"}}}},
              {{"digest":"{}","size":1,"platform":{{"os":"linux","architecture":"arm64","variant":"v8"}}}},
              {{"digest":"{}","size":1,"platform":{{"os":"unknown","architecture":"unknown"}}}},
              {{"digest":"{}","size":1}}]}}"#,
            digest("a"),
            digest("b"),
            digest("c"),
            digest("d")
        );
        let Ok(Manifest::Index(entries)) = Manifest::parse(text.as_bytes()) else { panic!("an index") };
        let of = |machine| -> Vec<_> {
            entries
                .iter()
                .filter(|entry| is_platform_of(&entry.platform, machine))
                .map(|entry| entry.digest.clone())
                .collect()
        };
        assert_eq!(of(Machine::X86_64), [digest("a")]);
        assert_eq!(of(Machine::Aarch64), [digest("b")]);
        let taken = |machine| entries.iter().filter(|entry| may_be_taken_for(entry, machine)).count();
        assert_eq!(taken(Machine::X86_64), 2, "one states nothing");
        for name in ["x86_64", "AMD64", "x86-64"] {
            let other =
                PlatformEntry { platform: format!("linux/{name}"), is_unstated: false, digest: digest("e") };
            assert!(may_be_taken_for(&other, Machine::X86_64) && !may_be_taken_for(&other, Machine::Aarch64));
        }
    }

    #[test]
    fn image_manifest_gives_its_configuration_and_layers() {
        for kind in &ACCEPT[2..] {
            let text = format!(
                r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{"digest":"{}","size":2}},"layers":[{{"digest":"{}","size":3}}]}}"#,
                digest("c"),
                digest("abc")
            );
            let wanted = Manifest::Image { config: digest("c"), layers: vec![BlobDescriptor::of(b"abc")] };
            assert_eq!(Manifest::parse(text.as_bytes()), Ok(wanted));
        }
        let config = br#"{"architecture":"arm64","os":"linux","variant":"v8","config":{}}"#;
        assert_eq!(platform_of_config(config).as_deref(), Ok("linux/arm64/v8"));
    }

    #[test]
    fn unsupported_document_reports_its_kind() {
        let kind = |text: &str| Manifest::parse(text.as_bytes()).expect_err("no image").to_string();
        assert!(kind(r#"{"schemaVersion":1,"fsLayers":[]}"#).contains("schema 1"));
        assert!(kind(r#"{"schemaVersion":2,"mediaType":"application/x.other"}"#).contains("x.other"));
        assert!(kind("<html>").contains("line 1"));
        assert!(kind("{}").contains("neither"));
    }

    #[test]
    fn a_machine_runs_its_own_platform_only() {
        assert!(
            is_platform_of("linux/amd64", Machine::X86_64)
                && is_platform_of("linux/amd64/v1", Machine::X86_64)
        );
        assert!(
            !is_platform_of("linux/amd64/v3", Machine::X86_64)
                && !is_platform_of("windows/amd64", Machine::X86_64)
        );
        assert!(
            !is_platform_of("linux/arm64", Machine::X86_64)
                && !is_platform_of("linux/arm/v7", Machine::Aarch64)
        );
    }

    proptest::proptest! {
        #[test]
        fn parser_never_panics_on_documents(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = Manifest::parse(&bytes);
            let _ = platform_of_config(&bytes);
        }
    }
}
