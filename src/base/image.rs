//! The base as an image: local, or pulled from a registry; pinned by its registry digest.
//!
//! Owns the choice of the reference. The registry is asked for the digest first, and the engine pulls by that digest: a
//! tag that moves in between changes nothing. An image without registry digest is pinned by its id, and one that came
//! over a mirror must not be named by the mirror's address: both get a private tag, of id or digest.

use super::error::BaseError;
use super::prepare::Means;
use super::request::{Base, BaseRequest};
use crate::engine::{EngineError, ImageInfo, PullRequest};
use crate::lock::BaseProvider;
use crate::registry::{Digest, ImageRef, Patience, RegistryError};
use crate::report::Event;

/// The repository of private tags.
const PRIVATE: &str = "envforge-base";

/// The tag under which an engine keeps a base that has no name of a registry there, by its digest or id.
pub fn private_tag(digest: &str) -> String {
    let short: String = digest.strip_prefix("sha256:").unwrap_or(digest).chars().take(16).collect();
    format!("{PRIVATE}:{short}")
}

/// The base of an image reference; a locked digest is the only image that will do.
pub(super) async fn image_base(
    means: &Means<'_>,
    request: &BaseRequest<'_>,
    patience: Patience,
) -> Result<Base, BaseError> {
    let name: ImageRef = request.name.parse().map_err(RegistryError::from)?;
    let provider = Provider { means, request, name, patience };
    match request.locked.and_then(|locked| locked.digest.as_deref()) {
        None => provider.current().await,
        Some(digest) => provider.locked(digest).await,
    }
}

struct Provider<'a> {
    means: &'a Means<'a>,
    request: &'a BaseRequest<'a>,
    name: ImageRef,
    patience: Patience,
}

impl Provider<'_> {
    /// What the name means now: to the engine if it has it, else to the registry. An upgrade asks the registry first about
    /// what came from there.
    async fn current(&self) -> Result<Base, BaseError> {
        let image = self.means.engine.image(&self.name.to_string()).await?;
        let Some(image) = image.filter(|image| image.architecture == self.request.machine.debian()) else {
            return self.resolved(&self.name).await;
        };
        let Some(digest) = image.digest_in(&self.name) else { return self.base_of_id(image).await };
        if self.request.upgrade {
            match self.resolved(&self.name).await {
                Err(BaseError::Registry(error)) if error.is_unreachable() => {
                    let text = format!("`{}` stays as the engine has it: {}", self.name, error.reason());
                    self.means.reporter.report(Event::Warning { text });
                }
                newest => return newest,
            }
        }
        self.base_at(&self.name, digest, image).await
    }

    /// Exactly that image, wherever it is.
    async fn locked(&self, digest: &str) -> Result<Base, BaseError> {
        // The id of a local image that came from no registry.
        if let Some(image) = self.means.engine.image(digest).await?
            && image.id == digest
        {
            return self.base_of_id(image).await;
        }
        let digest: Digest = digest.parse().map_err(BaseError::LockedDigest)?;
        let pinned = self.name.pinned(&digest);
        for source in self.means.registry.sources(&pinned) {
            if let Some(image) = self.means.engine.image(&source.to_string()).await? {
                return self.base_at(&source, digest, image).await;
            }
        }
        // What came over a mirror or out of a vendor folder goes by a tag of its digest.
        let kept = private_tag(digest.as_str());
        let image = self.means.engine.image(&kept).await?;
        if let Some(image) = image.filter(|image| image.architecture == self.request.machine.debian()) {
            return Ok(self.base(kept, image, digest.to_string(), Some(pinned.to_string())));
        }
        self.resolved(&pinned).await
    }

    /// Asks the registry, then lets the engine pull by digest.
    async fn resolved(&self, wanted: &ImageRef) -> Result<Base, BaseError> {
        let (registry, machine) = (self.means.registry, self.request.machine);
        match registry.resolve(wanted, machine, self.patience).await {
            Ok(resolved) => {
                let image = self.pull(&resolved.source).await?;
                self.base_at(&resolved.source, resolved.digest, image).await
            }
            // The engine may reach what we do not: it has a network, proxies and mirrors of its own.
            Err(error) if error.is_unreachable() && self.engine_may_try() => {
                tracing::debug!(%error, "the engine is asked to pull without a digest");
                let Ok(image) = self.pull(wanted).await else { return Err(error.into()) };
                match wanted.digest().cloned().or_else(|| image.digest_in(wanted)) {
                    Some(digest) => self.base_at(wanted, digest, image).await,
                    None => self.base_of_id(image).await,
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn engine_may_try(&self) -> bool {
        !self.patience.once || !self.means.engine.info().local
    }

    async fn pull(&self, source: &ImageRef) -> Result<ImageInfo, BaseError> {
        let engine = self.means.engine;
        let pull = PullRequest {
            reference: source.to_string(),
            machine: self.request.machine,
            credential: self.means.registry.credential(source).await?,
        };
        engine.pull(pull, std::sync::Arc::clone(&self.means.reporter)).await.map_err(|error| match error {
            EngineError::Registry { .. } | EngineError::Refused { .. } | EngineError::NoSuchImage { .. } => {
                BaseError::NotPullable { reference: self.name.to_string(), source: error }
            }
            // Not the image's fault: another provider would fail the same way.
            error => BaseError::Engine(error),
        })
    }

    /// The base of an image that its registry knows by that digest.
    async fn base_at(&self, source: &ImageRef, digest: Digest, image: ImageInfo) -> Result<Base, BaseError> {
        let published = self.name.pinned(&digest).to_string();
        let reference = if source.name() == self.name.name() {
            published.clone()
        } else {
            self.tagged(&image, digest.as_str()).await?
        };
        Ok(self.base(reference, image, digest.to_string(), Some(published)))
    }

    /// The base of a local image that no registry knows.
    async fn base_of_id(&self, image: ImageInfo) -> Result<Base, BaseError> {
        let id = image.id.clone();
        let reference = self.tagged(&image, &id).await?;
        Ok(self.base(reference, image, id, None))
    }

    async fn tagged(&self, image: &ImageInfo, digest: &str) -> Result<String, BaseError> {
        let tag = private_tag(digest);
        self.means.engine.tag(&image.id, &tag).await?;
        Ok(tag)
    }

    fn base(&self, reference: String, image: ImageInfo, digest: String, published: Option<String>) -> Base {
        Base {
            provider: BaseProvider::Image,
            name: self.request.name.clone(),
            suite: self.request.suite.clone(),
            reference,
            image_id: image.id,
            digest: Some(digest),
            published,
            content: None,
            packages: Vec::new(),
            archive: None,
            glibc: None,
            cuda: false,
            mirrors: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_tag_has_the_first_16_digits() {
        let digest = Digest::of(b"");
        assert_eq!(private_tag(digest.as_str()), "envforge-base:e3b0c44298fc1c14");
        assert_eq!(private_tag(&digest.as_str()["sha256:".len()..]), "envforge-base:e3b0c44298fc1c14");
    }
}
