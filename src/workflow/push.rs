//! `--push`: what goes to a registry, whether it may go there, and the way there. For every command that pushes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::ImageInfo;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;
use crate::model::lock::Lock;
use crate::model::program_version::ZSTD_LAYERS;
use crate::model::versions::Machine;
use crate::registry::{PlatformImage, RegistryError};
use crate::report::Event;
use crate::store::Store;
use crate::store::built_images::{built_from, remember_pushed};
use crate::store::last_push::remember_last_push;
use crate::workflow::assemble::Recipe;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::named::short_id;
use crate::workflow::push_assembled::push_assembled;
use crate::workflow::session::Session;

/// An image that a registry has now.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pushed {
    /// The tag that was pushed.
    pub(super) reference: String,
    /// What the registry knows it by.
    pub(super) digest: Digest,
    /// The index of several platforms that the tag is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<Digest>,
}

impl Pushed {
    /// The same as a reference.
    pub(crate) fn pinned_reference(&self) -> Option<ImageRef> {
        self.pinned().parse().ok()
    }

    /// What the tag is now: `host/name:tag@sha256:…`, of an index that.
    pub(crate) fn tagged(&self) -> String {
        format!("{}@{}", self.reference, self.index.as_ref().unwrap_or(&self.digest))
    }

    /// `host/name:tag@sha256:…`, which pulls exactly this.
    pub(crate) fn pinned(&self) -> String {
        format!("{}@{}", self.reference, self.digest)
    }
}

/// Those of some tags that name their registry, which is the wish to have them pushed.
pub(crate) fn pushable(tags: &[String]) -> Result<Vec<ImageRef>, CommandError> {
    let all = tags.iter().map(|tag| tag.parse()).collect::<Result<Vec<ImageRef>, _>>();
    let mut all = all.map_err(RegistryError::from)?;
    all.retain(ImageRef::names_registry);
    if all.is_empty() { Err(ImageError::NothingToPush.into()) } else { Ok(all) }
}

/// Asks the registries whether they would take these, so that no hour of building ends with a refused login.
pub(crate) async fn check_push_access(
    session: &Session<'_>,
    targets: &[ImageRef],
) -> Result<(), CommandError> {
    for target in targets {
        match session.registry.check_push_access(target).await {
            Err(error) if error.is_unreachable() => {
                let text = format!("{}: cannot check push access before the build", error.reason());
                session.reporter.report(Event::Warning { text });
            }
            other => other?,
        }
    }
    Ok(())
}

/// Warns before a push of an image with wheels whose licence restricts whom they may be passed on to.
pub(crate) fn warn_of_licences(session: &Session<'_>, lock: &Lock) {
    for (package, licence) in lock.restrictive_licences(&session.matrix) {
        let text = format!(
            "`{package}` is under a restrictive licence ({licence}): ensure that everyone who can pull the image may use it"
        );
        session.reporter.report(Event::Warning { text });
    }
}

/// Pushes an image under its tags in registries: from wheels and the cache if it was put together here, else through the
/// engine, which must have the tags.
pub(crate) async fn push(
    session: &Session<'_>,
    image: &str,
    targets: &[ImageRef],
) -> Result<Vec<Pushed>, CommandError> {
    let Some(recipe) = Recipe::of(&session.store, image) else {
        if session.layer_compression != LayerCompression::Gzip {
            let text = format!(
                "layers are compressed as the engine does, not as {}: the image was not assembled here",
                session.layer_compression
            );
            session.reporter.report(Event::Warning { text });
        }
        tracing::debug!(
            image,
            "pushing through the engine, which compresses every layer: not assembled here"
        );
        let mut pushed = Vec::new();
        for target in targets {
            pushed.push(remembered(session, image, push_by_engine(session, target).await?)?);
        }
        return Ok(pushed);
    };
    warn_of_readers(session);
    let mut repositories = BTreeMap::<String, Vec<&ImageRef>>::new();
    for target in targets {
        repositories.entry(target.name()).or_default().push(target);
    }
    let mut digests = BTreeMap::new();
    for (name, targets) in repositories {
        let tags: Vec<&str> = targets.iter().map(|target| target.wanted()).collect();
        digests.insert(name, push_assembled(session, &recipe, targets[0], &tags).await?);
    }
    let mut pushed = Vec::new();
    for target in targets {
        let done = checked(session, target, digests[&target.name()].clone()).await?;
        pushed.push(remembered(session, image, done)?);
    }
    Ok(pushed)
}

/// Pushes an image that was put together here under its digest alone.
pub(crate) async fn push_by_digest(
    session: &Session<'_>,
    image: &str,
    target: &ImageRef,
) -> Result<Pushed, CommandError> {
    let recipe = Recipe::of(&session.store, image)
        .ok_or_else(|| ImageError::NotAssembled { image: image.to_owned() })?;
    warn_of_readers(session);
    let digest = push_assembled(session, &recipe, target, &[]).await?;
    remembered(session, image, Pushed { reference: target.to_string(), digest, index: None })
}

/// Pushes an image that was put together here into the index behind a tag, beside those of the other platforms.
pub(crate) async fn push_platform(
    session: &Session<'_>,
    image: &str,
    target: &ImageRef,
    platforms: &[Machine],
) -> Result<Pushed, CommandError> {
    let pushed = push_by_digest(session, image, target).await?;
    let index = session.registry.add_platform(target, &pushed.digest, platforms).await?;
    let checked = checked(session, target, index.digest.clone()).await?;
    let lock = |image: &PlatformImage| match &image.lock {
        Some(lock) => format!("{} (lock {})", image.machine.platform(), short_id(lock)),
        None => image.machine.platform().to_owned(),
    };
    let images: Vec<_> = index.images.iter().map(lock).collect();
    let text = format!("{target} holds {}", images.join(", "));
    session.reporter.report(Event::Note { text });
    for text in &index.dropped {
        session.reporter.report(Event::Note { text: format!("no longer in {target}: {text}") });
    }
    for machine in &index.missing {
        let text = format!(
            "{target} has no image for {}: push one from an engine of that platform, with the same --platform",
            machine.platform()
        );
        session.reporter.report(Event::Warning { text });
    }
    Ok(Pushed { index: Some(checked.digest), ..pushed })
}

/// Records what a registry has of an image from here: evidence is about such digests alone.
fn remembered(session: &Session<'_>, image: &str, pushed: Pushed) -> Result<Pushed, CommandError> {
    let name = pushed.pinned_reference().map(|name| format!("{}/{}", name.registry(), name.repository()));
    remember_pushed(&session.store, image, (&pushed.digest, name.as_deref()))?;
    note_last_push(&session.store, image, &pushed);
    Ok(pushed)
}

/// Records the push by the lock that the image was built from here, for exports. It is pushed, whatever becomes of the record.
fn note_last_push(store: &Store, image: &str, pushed: &Pushed) {
    let written = match (built_from(store, image), pushed.pinned_reference()) {
        (Ok(Some(lock)), Some(reference)) => remember_last_push(store, &lock, &reference),
        (Err(error), _) => Err(error),
        (Ok(None), _) | (_, None) => Ok(()),
    };
    if let Err(error) = written {
        tracing::warn!(%error, "cannot record the push: exports do not name it");
    }
}

/// Warns that this machine's engine will not read what is pushed.
fn warn_of_readers(session: &Session<'_>) {
    let info = session.engine.info();
    let is_zstd = matches!(session.layer_compression, LayerCompression::Zstd(_));
    if is_zstd && !info.is_podman() && ZSTD_LAYERS.is_met_by(&info.version) == Some(false) {
        let text = format!(
            "{} {} of this machine cannot pull layers compressed with zstd; Docker can from version {} on",
            info.name, info.version, ZSTD_LAYERS.version.major
        );
        session.reporter.report(Event::Warning { text });
    }
}

/// Asks the registry what it has under a tag that was pushed.
async fn checked(session: &Session<'_>, target: &ImageRef, digest: Digest) -> Result<Pushed, CommandError> {
    session.registry.check_pushed(target, &digest, session.engine.info().machine).await?;
    Ok(Pushed { reference: target.to_string(), digest, index: None })
}

async fn push_by_engine(session: &Session<'_>, target: &ImageRef) -> Result<Pushed, CommandError> {
    let credential = session.registry.credential(target).await?;
    let reporter = Arc::clone(&session.reporter);
    let digest = session.engine.push(&target.to_string(), credential.as_ref(), reporter).await?;
    checked(session, target, digest).await
}

/// Puts a tag on the same digest in the registry, where the image is there already under another tag; else pushes it.
pub(crate) async fn push_verified(
    session: &Session<'_>,
    image: &ImageInfo,
    tag: &ImageRef,
) -> Result<Vec<Pushed>, CommandError> {
    let targets = std::slice::from_ref(tag);
    let Some(digest) = image.digest_in(tag) else { return push(session, &image.id, targets).await };
    match session.registry.tag(tag, &digest).await {
        Ok(()) => Ok(vec![Pushed { reference: tag.to_string(), digest, index: None }]),
        // It was there once.
        Err(RegistryError::NotFound { .. }) => push(session, &image.id, targets).await,
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tag_that_names_its_registry_is_pushed() {
        let tags = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let found = pushable(&tags(&["torch:2.8", "team/torch:2.8", "box:5000/torch:2.8"])).expect("one");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["box:5000/torch:2.8"]);
        assert!(
            matches!(pushable(&tags(&["torch:2.8"])), Err(error) if matches!(error.downcast_ref(), Some(ImageError::NothingToPush)))
        );
        assert!(
            matches!(pushable(&tags(&["UPPER case"])), Err(error) if error.downcast_ref::<RegistryError>().is_some())
        );
    }
}
