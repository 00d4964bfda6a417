//! Image registries: digests of tags, credentials and mirrors.
//!
//! Speaks the registry API (version 2; Docker and OCI documents): asks for digests, and uploads images whose blobs are made
//! here. Pulling an image is the engine's work, which gets the reference and the credential from here; single layers come
//! into the cache. Pure: `manifest`, `challenge`,
//! `docker_config`, `upload_location`. Edges: `client` and `client_session` (HTTP), `push`, `upload` and `pull` (blobs), `helper` and
//! `lookup` (credential helpers), `trust` (certificates).

mod blob;
mod challenge;
mod client;
mod client_session;
mod credential;
mod docker_config;
mod error;
mod evidence;
#[cfg(test)]
pub(crate) mod fuzzed;
mod helper;
mod lookup;
mod manifest;
mod plain_http;
mod platforms;
mod pull;
mod push;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "starts a program")]
#[path = "../../tests/support/registry_process.rs"]
mod real_registry;
#[cfg(test)]
mod real_tests;
mod retry;
#[cfg(test)]
pub(crate) mod test_registry;
#[cfg(test)]
mod tests;
mod trust;
mod upload;
mod upload_location;
#[cfg(test)]
mod upload_tests;
mod uploads;

pub use blob::{Blob, BlobContent};
pub use client::{Registry, ResolvedImage};
pub use credential::{Credential, Login};
pub use error::RegistryError;
pub use evidence::{
    Attached, EvidenceList, EvidenceSubject, FoundEvidence, IndexSubject, LARGEST_DOCUMENT, NewEvidence,
};
pub use platforms::{PlatformImage, PlatformIndex};
pub use pull::PublishedImage;
pub use push::ManifestDocument;
pub use retry::RetryPolicy;
pub use upload::BlobOrigin;
