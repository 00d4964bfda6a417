//! The base as an image: local, or pulled from a registry; pinned by its registry digest.
//!
//! Owns the choice of the reference. It queries the registry for the digest first, and the engine pulls by that digest: a
//! tag that moves in between changes nothing. An image without registry digest is pinned by its id, and one that came
//! over a mirror must not be named by the mirror's address: both get a private tag, of id or digest.

use super::error::BaseError;
use super::request::{Base, BaseRequest};
use super::tools::BaseTools;
use crate::engine::{EngineError, ImageInfo, PullRequest};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::lock::BaseProvider;
use crate::registry::{RegistryError, RetryPolicy};
use crate::report::Event;

/// The repository of private tags.
const PRIVATE: &str = "envforge-base";

/// Returns the tag, made of digest or ID, of a base without registry name in the engine.
pub fn private_tag(digest: &str) -> String {
    let short: String = digest.strip_prefix("sha256:").unwrap_or(digest).chars().take(16).collect();
    format!("{PRIVATE}:{short}")
}

/// Returns the base of an image reference; only the locked digest is accepted.
pub(super) async fn image_base(
    means: &BaseTools<'_>,
    request: &BaseRequest<'_>,
    patience: RetryPolicy,
) -> Result<Base, BaseError> {
    let name: ImageRef = request.name.parse().map_err(RegistryError::from)?;
    let provider = Provider { means, request, name, patience };
    let locked = request.locked.and_then(|locked| Some((locked.digest.as_deref()?, locked.image.as_deref())));
    let Some((digest, image)) = locked else {
        return without_triggers(means, provider.current().await?).await;
    };
    let base = without_triggers(means, provider.locked(digest).await?).await?;
    // A tag of the engine and an archive of a vendor folder are only claims.
    if image.is_some_and(|image| base.image.as_deref() != Some(image)) {
        return Err(BaseError::OtherImage { name: base.name, reference: base.reference });
    }
    Ok(base)
}

/// Refuses a base whose own instructions would run in a build above it: they may name any cache and image of the engine.
async fn without_triggers(means: &BaseTools<'_>, base: Base) -> Result<Base, BaseError> {
    let triggers = means.engine.image(&base.image_id).await?.map(|image| image.triggers).unwrap_or_default();
    match triggers.first() {
        None => Ok(base),
        Some(first) => Err(BaseError::NoBase {
            reference: base.name,
            why: format!("it has instructions for builds above it (ONBUILD {first})"),
        }),
    }
}

struct Provider<'a> {
    means: &'a BaseTools<'a>,
    request: &'a BaseRequest<'a>,
    name: ImageRef,
    patience: RetryPolicy,
}

impl Provider<'_> {
    /// Returns the current image of the name: the engine's if present, else the registry's. An upgrade queries the registry
    /// first for images that came from it.
    async fn current(&self) -> Result<Base, BaseError> {
        let image = self.means.engine.image(&self.name.to_string()).await?;
        let Some(image) = image.filter(|image| image.architecture == self.request.machine.debian()) else {
            return self.resolved(&self.name).await;
        };
        let Some(digest) = image.digest_in(&self.name) else { return self.base_of_id(image).await };
        if self.request.upgrade {
            match self.resolved(&self.name).await {
                Err(BaseError::Registry(error)) if error.is_unreachable() => {
                    let text = format!("using the local image `{}`: {}", self.name, error.reason());
                    self.means.reporter.report(Event::Warning { text });
                }
                newest => return newest,
            }
        }
        self.base_at(&self.name, digest, image).await
    }

    /// Returns exactly that image, from any source.
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
        // An image from a mirror or a vendor directory has a tag of its digest, which is a claim: only the fingerprint tells what
        // it is.
        let kept = private_tag(digest.as_str());
        let image = self.means.engine.image(&kept).await?;
        let image = image.filter(|image| image.architecture == self.request.machine.debian());
        let has_fingerprint = self.request.locked.is_some_and(|locked| locked.image.is_some());
        match image {
            Some(image) if has_fingerprint => {
                Ok(self.base(kept, &image, digest.to_string(), Some(pinned.to_string())))
            }
            Some(_) => self.resolved(&pinned).await.map_err(|error| match error {
                BaseError::NotPullable { .. } | BaseError::Registry(_) => {
                    tracing::debug!(%error, "cannot get the image by its digest");
                    BaseError::NoFingerprint { name: self.request.name.clone(), reference: kept }
                }
                error => error,
            }),
            None => self.resolved(&pinned).await,
        }
    }

    /// Queries the registry, then lets the engine pull by digest.
    async fn resolved(&self, wanted: &ImageRef) -> Result<Base, BaseError> {
        let (registry, machine) = (self.means.registry, self.request.machine);
        match registry.resolve(wanted, machine, self.patience).await {
            Ok(resolved) => {
                let image = self.pull(&resolved.source).await?;
                self.base_at(&resolved.source, resolved.digest, image).await
            }
            // The engine may reach it: it has its own network, proxies and mirrors.
            Err(error) if error.is_unreachable() && self.engine_may_try() => {
                tracing::debug!(%error, "pulling by tag through the engine");
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

    /// Returns the base of an image with that digest in its registry.
    async fn base_at(&self, source: &ImageRef, digest: Digest, image: ImageInfo) -> Result<Base, BaseError> {
        let published = self.name.pinned(&digest).to_string();
        let reference = if source.name() == self.name.name() {
            published.clone()
        } else {
            self.tagged(&image, digest.as_str()).await?
        };
        Ok(self.base(reference, &image, digest.to_string(), Some(published)))
    }

    /// Returns the base of a local image without registry digest.
    async fn base_of_id(&self, image: ImageInfo) -> Result<Base, BaseError> {
        let id = image.id.clone();
        let reference = self.tagged(&image, &id).await?;
        Ok(self.base(reference, &image, id, None))
    }

    async fn tagged(&self, image: &ImageInfo, digest: &str) -> Result<String, BaseError> {
        let tag = private_tag(digest);
        self.means.engine.tag(&image.id, &tag).await?;
        Ok(tag)
    }

    fn base(&self, reference: String, image: &ImageInfo, digest: String, published: Option<String>) -> Base {
        Base {
            provider: BaseProvider::Image,
            name: self.request.name.clone(),
            suite: self.request.suite.clone(),
            reference,
            image_id: image.id.clone(),
            digest: Some(digest),
            published,
            content: None,
            image: Some(image.fingerprint()),
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
