//! Image registries: which digest a tag means, with which credential, over which mirror.
//!
//! Speaks the registry API (version 2; Docker and OCI documents) to ask, never to move layers: pulling and pushing is the
//! engine's work, which gets the reference and the credential from here. Pure: `reference`, `digest`, `manifest`,
//! `challenge`, `docker_config`, `mirrors`. Edges: `client` and `conversation` (HTTP), `helper` and `lookup` (credential
//! helpers), `trust` (certificates).

mod challenge;
mod client;
mod conversation;
mod credential;
mod digest;
mod docker_config;
mod error;
#[cfg(test)]
pub(crate) mod fuzzed;
mod helper;
mod hidden;
mod lookup;
mod manifest;
mod mirrors;
mod reference;
mod settings;
#[cfg(test)]
mod tests;
mod trust;

pub use client::{Patience, Registry, Resolved};
pub use credential::{Credential, Login};
pub use digest::{Digest, DigestError};
pub use error::RegistryError;
pub use hidden::Hidden;
pub use mirrors::{ImageMirrors, MirrorRuleError};
pub use reference::{ImageRef, ReferenceError};
pub use settings::{EnvironmentLogin, RegistrySettings};
