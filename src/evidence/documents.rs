//! Evidence as documents of a registry, in the two forms that verifiers read: cosign's `.att` tag, and Sigstore bundles that refer to
//! the image (OCI referrers).

use serde_json::{Value, json};

use super::envelope::Envelope;
use crate::model::image::manifest::{BlobDescriptor, INDEX_TYPE, MANIFEST_TYPE};
use crate::model::image_digest::Digest;
use crate::model::sha256::{hex, is_sha256_hex};

/// Media type of an envelope in the tag's manifest.
const ENVELOPE_TYPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Media type of a bundle.
const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// What every media type of a bundle begins with.
const ANY_BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// Media type of the empty configuration `{}`.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// The annotation by which cosign finds an envelope's type.
const PREDICATE_TYPE: &str = "predicateType";
/// The same of a bundle.
const BUNDLE_PREDICATE: &str = "dev.sigstore.bundle.predicateType";

/// An envelope as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attestation {
    /// The envelope.
    pub envelope: Envelope,
    /// The fingerprint of the key that the document names; nothing proves it.
    pub signer: Option<String>,
}

/// The tag of the attestations of an image: `sha256-HEX.att`.
pub fn legacy_tag(digest: &Digest) -> String {
    format!("{}.att", referrers_tag(digest))
}

/// The tag of the list of referrers where a registry has no API for them: `sha256-HEX`.
pub fn referrers_tag(digest: &Digest) -> String {
    digest.as_str().replace(':', "-")
}

/// The manifest under the `.att` tag: a layer for each envelope.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Legacy {
    /// The layers with their annotations, ours and others'.
    layers: Vec<Value>,
}

impl Legacy {
    /// Reads the manifest; `None`: it is something else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        Some(Self { layers: value["layers"].as_array()?.clone() })
    }

    /// The envelopes that may be of those predicate types, newest last.
    pub fn blobs(&self, kinds: &[&str]) -> Vec<BlobDescriptor> {
        // The annotation alone proves nothing: without one the envelope is read.
        let may_be = |layer: &&Value| {
            let kind = layer["annotations"][PREDICATE_TYPE].as_str();
            let is_kind = kind.is_none_or(|kind| kinds.contains(&kind));
            layer["mediaType"] == ENVELOPE_TYPE && is_kind
        };
        self.layers.iter().filter(may_be).filter_map(descriptor).collect()
    }

    /// Takes out the layers of some blobs.
    pub fn remove(&mut self, blobs: &[Digest]) {
        let is_one = |layer: &Value| descriptor(layer).is_some_and(|layer| blobs.contains(&layer.digest));
        self.layers.retain(|layer| !is_one(layer));
    }

    /// Adds an envelope of that predicate type, unless it is there.
    pub fn add(&mut self, envelope: &BlobDescriptor, predicate: &str) {
        if self.layers.iter().filter_map(descriptor).any(|layer| layer.digest == envelope.digest) {
            return;
        }
        self.layers.push(json!({
            "mediaType": ENVELOPE_TYPE, "size": envelope.size, "digest": envelope.digest,
            "annotations": { "dev.cosignproject.cosign/signature": "", PREDICATE_TYPE: predicate },
        }));
    }

    /// The configuration that the manifest names: cosign wants one that lists the layers.
    pub fn config(&self) -> Vec<u8> {
        let digests: Vec<_> = self.layers.iter().map(|layer| layer["digest"].clone()).collect();
        json!({
            "architecture": "", "created": "0001-01-01T00:00:00Z", "os": "", "config": {},
            "history": [{ "created": "0001-01-01T00:00:00Z" }],
            "rootfs": { "type": "layers", "diff_ids": digests },
        })
        .to_string()
        .into_bytes()
    }

    /// The manifest.
    pub fn manifest(&self) -> Vec<u8> {
        let config = BlobDescriptor::of(&self.config());
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": { "mediaType": CONFIG_TYPE, "size": config.size, "digest": config.digest },
            "layers": self.layers,
        })
        .to_string()
        .into_bytes()
    }
}

/// A Sigstore bundle that refers to an image.
pub struct Bundle;

impl Bundle {
    /// The bundle of an envelope; `signer` is the fingerprint of the key that it names, empty if that is not known.
    pub fn blob(envelope: &Envelope, signer: &str) -> Vec<u8> {
        use base64::Engine as _;
        let hint = base64::engine::general_purpose::STANDARD.encode(bytes_of(signer));
        json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": { "publicKey": { "hint": hint } },
            "dsseEnvelope": envelope.to_bundle_value(),
        })
        .to_string()
        .into_bytes()
    }

    /// The configuration of every manifest of a bundle.
    pub const CONFIG: &'static [u8] = b"{}";

    /// The manifest: `subject` is the image's manifest, with its media type.
    pub fn manifest(
        blob: &BlobDescriptor,
        predicate: &str,
        (subject, media_type): (&BlobDescriptor, &str),
        created: &str,
    ) -> Vec<u8> {
        let config = BlobDescriptor::of(Self::CONFIG);
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "artifactType": BUNDLE_TYPE,
            "config": { "mediaType": EMPTY_TYPE, "size": config.size, "digest": config.digest },
            "layers": [{ "mediaType": BUNDLE_TYPE, "size": blob.size, "digest": blob.digest }],
            "annotations": {
                "dev.sigstore.bundle.content": "dsse-envelope", BUNDLE_PREDICATE: predicate,
                "org.opencontainers.image.created": created,
            },
            "subject": { "mediaType": media_type, "size": subject.size, "digest": subject.digest },
        })
        .to_string()
        .into_bytes()
    }

    /// The blob of a bundle in a referrer's manifest; `None`: the manifest is of something else.
    pub fn of_manifest(bytes: &[u8]) -> Option<BlobDescriptor> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let layers = value["layers"].as_array()?;
        layers.iter().find(|layer| is_bundle(&layer["mediaType"])).and_then(descriptor)
    }

    /// The envelope of a bundle with the key that it names.
    pub fn attestation(bytes: &[u8]) -> Option<Attestation> {
        use base64::Engine as _;
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        let hint = value["verificationMaterial"]["publicKey"]["hint"].as_str().map(str::to_owned);
        let decoded = hint.and_then(|hint| base64::engine::general_purpose::STANDARD.decode(hint).ok());
        let signer = decoded.filter(|bytes| bytes.len() == 32).map(|bytes| hex(&bytes));
        let envelope = Envelope::from_value(value.get_mut("dsseEnvelope")?.take()).ok()?;
        Some(Attestation { envelope, signer })
    }
}

/// One entry of a list of referrers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// Its manifest.
    pub digest: Digest,
    /// Whether its type says that it is no bundle: an SBOM of its own, say. cosign 3 writes a wrong type, so that an unknown one is read.
    pub is_other: bool,
    /// The predicate type that it is listed with.
    pub predicate: Option<String>,
}

impl Referrer {
    /// Whether it may be a bundle of one of these predicate types.
    pub fn may_be(&self, kinds: &[&str]) -> bool {
        !self.is_other && self.predicate.as_deref().is_none_or(|kind| kinds.contains(&kind))
    }
}

/// The referrers in a list of them, as the API or the tag gives it; `None`: it is something else.
pub fn referrers(bytes: &[u8]) -> Option<Vec<Referrer>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let entries = value["manifests"].as_array()?;
    let referrer = |entry: &Value| {
        let kind = entry["artifactType"].as_str().unwrap_or_default();
        let is_other = !kind.is_empty() && !kind.starts_with(ANY_BUNDLE) && kind != EMPTY_TYPE;
        let predicate = entry["annotations"][BUNDLE_PREDICATE].as_str().map(str::to_owned);
        Some(Referrer { digest: entry["digest"].as_str()?.parse().ok()?, is_other, predicate })
    };
    Some(entries.iter().filter_map(referrer).collect())
}

/// The list of referrers, if there is one, without some of them and with new ones: descriptors of manifests, with their predicate
/// types; `None`: what is there is something else.
pub fn with_referrers(
    before: Option<&[u8]>,
    without: &[Digest],
    new: &[(BlobDescriptor, &str)],
) -> Option<Vec<u8>> {
    let mut entries = match before {
        Some(bytes) => serde_json::from_slice::<Value>(bytes).ok()?["manifests"].as_array()?.clone(),
        None => Vec::new(),
    };
    let is_one = |entry: &Value| without.iter().any(|digest| entry["digest"] == digest.as_str());
    let is_new = |entry: &Value| new.iter().any(|(blob, _)| entry["digest"] == blob.digest.as_str());
    entries.retain(|entry| !is_one(entry) && !is_new(entry));
    entries.extend(new.iter().map(|(manifest, predicate)| {
        json!({
            "mediaType": MANIFEST_TYPE, "size": manifest.size, "digest": manifest.digest, "artifactType": BUNDLE_TYPE,
            "annotations": { BUNDLE_PREDICATE: predicate },
        })
    }));
    Some(
        json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries }).to_string().into_bytes(),
    )
}

/// The bytes of a fingerprint; empty if the text is not a SHA-256 in hexadecimal.
fn bytes_of(fingerprint: &str) -> Vec<u8> {
    if !is_sha256_hex(fingerprint) {
        return Vec::new();
    }
    let pair = |at: usize| u8::from_str_radix(&fingerprint[at..at + 2], 16).unwrap_or_default();
    (0..fingerprint.len()).step_by(2).map(pair).collect()
}

/// Whether a descriptor in the index of a layout is a bundle that refers to an image, and no image.
pub fn is_bundle_manifest(artifact_type: &str) -> bool {
    artifact_type.starts_with(ANY_BUNDLE)
}

fn is_bundle(media_type: &Value) -> bool {
    media_type.as_str().is_some_and(|kind| kind.starts_with(ANY_BUNDLE))
}

fn descriptor(layer: &Value) -> Option<BlobDescriptor> {
    Some(BlobDescriptor { digest: layer["digest"].as_str()?.parse().ok()?, size: layer["size"].as_u64()? })
}
