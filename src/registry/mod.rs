//! Image registries: digests of tags, credentials and mirrors.
//!
//! Speaks the registry API (version 2; Docker and OCI documents) to ask, never to move layers: pulling and pushing is the
//! engine's work, which gets the reference and the credential from here. Pure: `reference`, `digest`, `manifest`,
//! `challenge`, `docker_config`, `mirrors`. Edges: `client` and `conversation` (HTTP), `helper` and `lookup` (credential
//! helpers), `trust` (certificates).

mod challenge;
mod client;
mod client_session;
mod credential;
mod docker_config;
mod error;
#[cfg(test)]
pub(crate) mod fuzzed;
mod helper;
mod lookup;
mod manifest;
mod plain_http;
mod retry;
#[cfg(test)]
mod tests;
mod trust;

pub use client::{Registry, ResolvedImage};
pub use credential::{Credential, Login};
pub use error::RegistryError;
pub use retry::RetryPolicy;
