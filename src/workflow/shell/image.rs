//! The image that a shell opens; it is built first if it is missing or out of date.

use crate::engine::ImageInfo;
use crate::model::image::plan::{LOCK_LABEL, UNVERIFIED};
use crate::model::request::{self, LockOptions, TargetOptions};
use crate::model::stack::Stack;
use crate::model::verdict::{Detail, verdict_text};
use crate::report::Event;
use crate::store::built_images::built_from;
use crate::workflow::build::{Done, build_one};
use crate::workflow::build_request::{BuildRequest, typed};
use crate::workflow::custom_base::{NamedBase, named_base};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::Session;
use crate::workflow::stack::stack;
use crate::workflow::verify_target::{Named, found};

/// The image; a spec that is not built yet is built first.
pub(crate) async fn image(session: &Session<'_>, name: &str) -> Result<Named, CommandError> {
    match found(session, name).await {
        Err(error) if matches!(error.downcast_ref(), Some(ImageError::SpecNotBuilt { .. })) => {
            let text = format!("no image of `{name}` on this engine: building it first");
            session.reporter.report(Event::Note { text });
            let (source, target) = (LockOptions::default(), TargetOptions::default());
            let wanted = typed(name, &source, &target)?;
            let stack = stack(session.settings, name, &source, &target, None)?;
            build(session, &wanted, stack, None).await?;
            found(session, name).await
        }
        answer => answer,
    }
}

/// Builds an image as `envforge build` alone does; reports the failed checks.
pub(crate) async fn build(
    session: &Session<'_>,
    wanted: &BuildRequest,
    stack: Stack,
    base: Option<&NamedBase>,
) -> Result<(), CommandError> {
    let args = request::Build::of(&wanted.spec);
    if let Done::Built(built) = Box::pin(build_one(session, wanted, stack, base, &args)).await?
        && let Some(error) = built.rejection()
    {
        let text = verdict_text(&built.verdict, Detail::Problems);
        session.reporter.report(Event::Note { text });
        return Err(error);
    }
    Ok(())
}

/// The image of the project's lock; it is built if there is none, or if the lock no longer fits.
pub(crate) async fn project_image(
    session: &Session<'_>,
    wanted: &BuildRequest,
) -> Result<Named, CommandError> {
    let named = named_base(session.settings, &wanted.source, &wanted.target).await?;
    let stack = stack(session.settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let path = lock_path(session.settings, &stack, &wanted.source);
    if let Some(lock) = read_lock(&path)?
        && lock.differences_from(&stack, &wanted.added).is_empty()
        && let Some(named) = tagged(session, &lock.hashes()).await?
    {
        return Ok(named);
    }
    let text = format!("the image of {path} is not on this engine yet: building it first");
    session.reporter.report(Event::Note { text });
    build(session, wanted, stack, named.as_ref()).await?;
    let hashes = read_lock(&path)?.map(|lock| lock.hashes()).unwrap_or_default();
    let not_there =
        || ImageError::NotFound { image: wanted.spec.clone(), text: "it was removed meanwhile".to_owned() };
    tagged(session, &hashes).await?.ok_or_else(|| not_there().into())
}

/// The image of the lock with these hashes, by a verified tag if it has one; one of its own hash comes first.
async fn tagged(session: &Session<'_>, hashes: &[String]) -> Result<Option<Named>, CommandError> {
    let images = session.engine.images(LOCK_LABEL).await?;
    // Anybody can write a label: only what was built here counts.
    let built = |image: &ImageInfo, hash: &String| -> Result<bool, CommandError> {
        let claimed = image.labels.get(LOCK_LABEL) == Some(hash);
        Ok(claimed && built_from(&session.store, &image.id)?.is_some_and(|from| hashes.contains(&from)))
    };
    for hash in hashes {
        for image in &images {
            if built(image, hash)?
                && let Some(named) = named(image.clone())
            {
                return Ok(Some(named));
            }
        }
    }
    Ok(None)
}

fn named(image: ImageInfo) -> Option<Named> {
    let tag = image.tags.iter().find(|tag| !tag.ends_with(UNVERIFIED)).or(image.tags.first())?.clone();
    Some(Named { reference: tag, image })
}
