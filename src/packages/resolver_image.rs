//! The image in which packages are resolved: a base of this program's own, never one that a project or a lock names.

use async_trait::async_trait;

use super::error::PackagesError;
use super::settings::Archive;

/// Prepares the image that resolves, when it is needed: a build from a vendor folder never asks for it.
#[async_trait(?Send)]
pub trait ResolverImage {
    /// The image in the engine.
    async fn resolver(&self) -> Result<Resolver, PackagesError>;
}

/// The image that resolves, and what lasts of its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    /// The image in the engine, by tag or id.
    pub image: String,
    /// Archives of its own packages; if empty, those that it names itself.
    pub archives: Vec<Archive>,
    /// The volume of apt's lists.
    pub lists: String,
    /// The volume of uv's cache, for indexes of the settings.
    pub index_cache: String,
}

#[cfg(test)]
impl Resolver {
    /// An image called `resolver`.
    pub(crate) fn sample() -> Self {
        let (lists, index_cache) = ("lists".to_owned(), "index".to_owned());
        Self { image: "resolver".to_owned(), archives: Vec::new(), lists, index_cache }
    }
}

/// One that is there.
#[async_trait(?Send)]
impl ResolverImage for Resolver {
    async fn resolver(&self) -> Result<Resolver, PackagesError> {
        Ok(self.clone())
    }
}
