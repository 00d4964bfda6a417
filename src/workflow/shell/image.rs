//! The image that a shell opens; it is built first if it is missing or out of date.

use crate::model::request::{self, ChecksBefore, Level, LockOptions, SpecArgument, TargetOptions};
use crate::model::stack::Stack;
use crate::model::verdict::{Detail, verdict_text};
use crate::report::Event;
use crate::workflow::build::{Done, build_one};
use crate::workflow::build_request::{BuildRequest, typed};
use crate::workflow::confirm::{can_ask, confirm};
use crate::workflow::custom_base::{NamedBase, named_base_in};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::listed_names::with_listed;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::named::Named;
use crate::workflow::own_images::image_of_lock;
use crate::workflow::project_sources::image_hash;
use crate::workflow::session::Session;
use crate::workflow::stack::stack;
use crate::workflow::verify_target::found;

/// The image; a spec that is not built yet is built first.
pub(crate) async fn image(
    session: &Session<'_>,
    name: &str,
    checks: ChecksBefore,
) -> Result<Named, CommandError> {
    match found(session, name).await {
        Err(error) if matches!(error.downcast_ref(), Some(ImageError::SpecNotBuilt { .. })) => {
            let text = format!("no image of `{name}` on this engine: building it first");
            session.reporter.report(Event::Note { text });
            let (source, target) = (LockOptions::default(), TargetOptions::default());
            let spec = SpecArgument::from(name.to_owned());
            let wanted = typed(&spec, &source, &target, session.settings)?;
            let stack = stack(session.settings, &wanted.spec, &source, &target, None)?;
            build(session, &wanted, (stack, None), checks).await?;
            found(session, name).await
        }
        answer => answer,
    }
}

/// Builds an image that is not there yet. A project's is that of its lock: one that is out of date is refused, not updated.
pub(crate) async fn build_first(session: &Session<'_>, mut wanted: BuildRequest) -> Result<(), CommandError> {
    wanted.source.locked = wanted.source.lockfile.is_some();
    let text = format!("no image of `{}` on this engine: building it first", wanted.spec.written());
    session.reporter.report(Event::Note { text });
    let named = named_base_in(session, &wanted.source, &wanted.target).await?;
    let stack = stack(session.settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    build(session, &wanted, (stack, named.as_ref()), ChecksBefore::All).await
}

/// Builds an image as `envforge build` alone does, with these checks; reports the failed ones.
async fn build(
    session: &Session<'_>,
    wanted: &BuildRequest,
    (stack, base): (Stack, Option<&NamedBase>),
    checks: ChecksBefore,
) -> Result<(), CommandError> {
    let args = request::Build::of(wanted.spec.clone());
    let mut wanted = with_listed(wanted, &stack, session.settings).await?;
    if checks == ChecksBefore::Static {
        wanted.level = Level::Static;
        let text = "static checks only before it opens (--no-wait); `envforge verify` runs those on a GPU";
        session.reporter.report(Event::Note { text: text.to_owned() });
    }
    let wanted = &wanted;
    if let Done::Built(built) =
        Box::pin(build_one(&session.on_base(base), wanted, stack, base, &args)).await?
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
    checks: ChecksBefore,
) -> Result<Named, CommandError> {
    let named = named_base_in(session, &wanted.source, &wanted.target).await?;
    let stack = stack(session.settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let path = lock_path(session.settings, &stack, &wanted.source);
    let mut text = format!("the image of {path} is not on this engine yet: building it first");
    if let Some(lock) = read_lock(&path)?
        && let Some(hash) = image_hash(&session.store, wanted, &lock)?
        && let Some(named) = image_of_lock(session, &hash).await?
    {
        let differences = lock.differences_from(&stack, &wanted.added);
        let Some(first) = differences.first() else { return Ok(named) };
        let more = if differences.len() > 1 {
            format!(" and {} more", differences.len() - 1)
        } else {
            String::new()
        };
        text = format!("{path} is out of date ({first}{more}): rebuilding its image first");
        // On a terminal the user may work on in the image of the lock as it is.
        let question = format!("{path} is out of date ({first}{more}): rebuild its image?");
        if can_ask() && !confirm(&question).await {
            return Ok(named);
        }
    }
    session.reporter.report(Event::Note { text });
    build(session, wanted, (stack, named.as_ref()), checks).await?;
    let image = match read_lock(&path)? {
        Some(lock) => match image_hash(&session.store, wanted, &lock)? {
            Some(hash) => image_of_lock(session, &hash).await?,
            None => None,
        },
        None => None,
    };
    let not_there = || ImageError::NotFound {
        image: wanted.spec.written().to_owned(),
        text: "it was removed meanwhile".to_owned(),
    };
    image.ok_or_else(|| not_there().into())
}
