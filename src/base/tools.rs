//! The tools that base providers work with.

use std::sync::Arc;

use crate::engine::Engine;
use crate::fetch::Fetcher;
use crate::registry::Registry;
use crate::report::Reporter;
use crate::store::Store;

/// Dependencies of the base providers.
pub struct BaseTools<'a> {
    /// The engine that stores the image.
    pub engine: &'a dyn Engine,
    /// Registries, for the digests of images.
    pub registry: &'a Registry,
    /// The cache of downloads and built bases.
    pub store: &'a Store,
    /// The HTTP client for packages.
    pub fetch: &'a Fetcher,
    /// Receiver of events.
    pub reporter: Arc<dyn Reporter>,
}
