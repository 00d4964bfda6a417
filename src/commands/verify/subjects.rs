//! `verify` without an image: the project here, else the images of this machine that no GPU has proven yet.

use crate::engine::GpuSelection;
use crate::model::request::{self, Level, LockOptions, TargetOptions};
use crate::report::{Event, Printer};
use crate::workflow::build_request::wanted;
use crate::workflow::confirm::{can_ask, confirm};
use crate::workflow::error::CommandError;
use crate::workflow::gpus;
use crate::workflow::named::Named;
use crate::workflow::own_images::{
    NoImageChosen, counted, image_of_project, is_outside_project, note_stale_lock, nothing_built, own_images,
};
use crate::workflow::proven::proven;
use crate::workflow::session::LazySession;

/// The request with the images that it means; `None`: there is nothing to do.
pub(super) async fn with_images(
    args: &request::Verify,
    gpus: &GpuSelection,
    lazy: &LazySession<'_>,
) -> Result<Option<request::Verify>, CommandError> {
    if !args.images.is_empty() {
        return Ok(Some(args.clone()));
    }
    let (session, settings) = (lazy.session().await?, lazy.settings);
    let is_named = args.project.environment.is_some() || args.project.project.is_some();
    let mut args = args.clone();
    if is_named || !is_outside_project(settings) {
        let source = LockOptions::default();
        let wanted = wanted(None, &args.project, &source, &TargetOptions::default(), settings)?;
        let image = image_of_project(session, &wanted, args.last).await?;
        note_stale_lock(session, &wanted).await?;
        args.images = vec![image.reference];
        return Ok(Some(args));
    }
    let own = own_images(session).await?;
    if own.is_empty() {
        return Err(nothing_built(settings));
    }
    if args.last {
        args.images = own.into_iter().take(1).map(|named| named.reference).collect();
        return Ok(Some(args));
    }
    let count = own.len();
    for Named { reference, image } in own {
        if !proven(&session.store, &*session.reporter, &image)?.is_verified() {
            args.images.push(reference);
        }
    }
    if args.images.is_empty() {
        Printer.say(&format!("nothing to verify: each of the {count} images built here is verified"));
        return Ok(None);
    }
    if !can_ask() {
        return Err(NoImageChosen::CannotAsk { images: args.images }.into());
    }
    if args.level != Level::Static && gpus::request(session, gpus).is_none() {
        args.level = Level::Static;
        let text =
            "no GPU on the engine's host: the static checks run, and no image gets a verified tag".to_owned();
        session.reporter.report(Event::Note { text });
    }
    Printer.say(&format!("{} not verified yet:\n  {}", counted(args.images.len()), args.images.join("\n  ")));
    Ok(confirm(&format!("verify {}?", if args.images.len() == 1 { "it" } else { "them" }))
        .await
        .then_some(args))
}
