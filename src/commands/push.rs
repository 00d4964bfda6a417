//! `push`: an image of the engine into registries, under the tags that its last checks allow.

use serde::Serialize;

use crate::engine::ImageInfo;
use crate::evidence::SigningKey;
use crate::failure::Exit;
use crate::model::image::plan::UNVERIFIED;
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::request::{self, LockOptions, TargetOptions};
use crate::model::verdict::tag_policy::TagStatus;
use crate::model::verdict::{ImageState, Proven};
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::workflow::build_request::wanted;
use crate::workflow::carried_evidence::carry;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::signing_key;
use crate::workflow::image_error::ImageError;
use crate::workflow::named::Named;
use crate::workflow::own_images::{image_of_project, note_stale_lock};
use crate::workflow::proven::reports_of;
use crate::workflow::provenance::{attach_provenance, require_built_here};
use crate::workflow::push::{
    Pushed, check_push_access, push, push_by_digest, push_platform, pushable, warn_of_licences,
};
use crate::workflow::request_error::RequestError;
use crate::workflow::required_evidence::status_by_policy;
use crate::workflow::session::{LazySession, Session, SessionOptions};
use crate::workflow::spec_parts::restricted_name;
use crate::workflow::verify_target::{found, provenance};

/// What `push --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    image: &'a str,
    verified: bool,
    #[serde(flatten)]
    proven: Proven,
    pushed: &'a [Pushed],
    /// What was signed: the image by its digest, and the key.
    attested: &'a [String],
    /// Documents of evidence that were copied, those that were there already left out; null without --evidence.
    evidence: Option<usize>,
}

pub(super) async fn push_image(args: &request::Push, settings: &Settings) -> Result<Exit, CommandError> {
    let all = pushable(&args.targets)?;
    if all.len() < args.targets.len() || all.iter().any(|target| target.digest().is_some()) {
        return Err(ImageError::NothingToPush.into());
    }
    if !args.platforms.is_empty() && all.iter().any(|target| target.tag().is_none()) {
        return Err(RequestError::PlatformsNeedTag.into());
    }
    let name = restricted_name(args.image.as_ref(), &args.parts, &settings.matrix)?;
    // An unusable key fails before anything is pushed.
    let key = args.attest.then(|| signing_key(args.key.as_deref(), settings)).transpose()?;
    let options = SessionOptions { compression: args.compression, ..SessionOptions::default() };
    let lazy = LazySession::new(settings, options);
    let session = lazy.session().await?;
    let own = session.engine.info().machine;
    if !args.platforms.is_empty() && !args.platforms.contains(&own) {
        return Err(RequestError::OwnPlatform { own: own.platform() }.into());
    }
    let image = match &name {
        Some(name) => found(session, name).await?,
        None => project_image(session, &args.project).await?,
    }
    .image;
    let known = provenance(session, None, &image).await?;
    if let Some(lock) = &known.lock {
        warn_of_licences(session, lock);
    }
    if key.is_some() {
        require_built_here(session, &image, known.lock.as_ref().filter(|_| known.ours))?;
    }
    let reports = reports_of(&session.store, &*session.reporter, &image.id)?;
    let lock = known.lock.filter(|_| known.ours);
    let status = lock.as_ref().and_then(|lock| reports.tag_status(lock));
    let proven = reports.proven(lock.as_ref());
    // The failure is a fact of the image, wherever it was built.
    let unknown = || match proven.state {
        ImageState::Failed => TagStatus::Failed,
        _ => TagStatus::Unverified { because: "it was not built and checked here".to_owned() },
    };
    let status = status.unwrap_or_else(unknown);
    let status = status_by_policy(session, &image, status).await?;
    let (tagged, by_digest): (Vec<ImageRef>, Vec<ImageRef>) =
        all.into_iter().partition(|target| target.tag().is_some());
    let tagged = match &status {
        TagStatus::Verified => tagged,
        TagStatus::Failed if !tagged.is_empty() => {
            return Err(ImageError::FailedChecks { proven: proven.to_string() }.into());
        }
        TagStatus::Failed => Vec::new(),
        TagStatus::Unverified { because } => {
            if !tagged.is_empty() {
                let text = format!("pushing as {UNVERIFIED}: {because}");
                session.reporter.report(Event::Note { text });
            }
            tagged.iter().map(unverified).collect::<Result<_, _>>()?
        }
    };
    check_push_access(session, &tagged).await?;
    check_push_access(session, &by_digest).await?;
    for target in &tagged {
        // Engines push what they have tagged; here it also says where the image went.
        session.engine.tag(&image.id, &target.to_string()).await?;
    }
    let mut pushed = Vec::new();
    if args.platforms.is_empty() {
        pushed = push(session, &image.id, &tagged).await?;
    } else {
        for target in &tagged {
            pushed.push(push_platform(session, &image.id, target, &args.platforms).await?);
        }
    }
    for target in &by_digest {
        pushed.push(push_by_digest(session, &image.id, target).await?);
    }
    let (attested, mut undone) = match (&key, &lock) {
        (Some(key), Some(lock)) => attest(session, (&pushed, &image), lock, key).await,
        _ => (Vec::new(), None),
    };
    let mut evidence = args.evidence.then_some(0);
    for target in pushed.iter().filter(|_| args.evidence).filter_map(Pushed::pinned_reference) {
        match carry(session, &image, &target).await {
            Ok(count) => evidence = evidence.map(|all| all + count),
            Err(error) => undone = undone.or(Some(error)),
        }
    }
    if settings.output.json {
        let verified = status.is_verified();
        Printer.json(&Report {
            schema: 1,
            image: &image.id,
            verified,
            proven,
            pushed: &pushed,
            attested: &attested,
            evidence,
        });
    } else {
        for pushed in &pushed {
            Printer.text(&format!("{}\n", pushed.tagged()));
        }
        for attested in attested {
            session.reporter.report(Event::Note { text: format!("provenance attached: {attested}") });
        }
        session.reporter.report(Event::Note { text: proven.to_string() });
    }
    // It is pushed, and that is printed.
    undone.map_or(Ok(Exit::Done), Err)
}

/// Signs what an image was built from, wherever it was pushed; the error is the first, after which nothing more is signed.
async fn attest(
    session: &Session<'_>,
    (pushed, image): (&[Pushed], &ImageInfo),
    lock: &Lock,
    key: &SigningKey,
) -> (Vec<String>, Option<CommandError>) {
    let mut attested: Vec<String> = Vec::new();
    for target in pushed.iter().filter_map(Pushed::pinned_reference) {
        match attach_provenance(session, (&target, image), lock, key).await {
            Ok(line) if attested.contains(&line) => {}
            Ok(line) => attested.push(line),
            Err(error) => return (attested, Some(error)),
        }
    }
    (attested, None)
}

/// The image of the project's lock.
async fn project_image(
    session: &Session<'_>,
    project: &request::ProjectOptions,
) -> Result<Named, CommandError> {
    let (source, target) = (LockOptions::default(), TargetOptions::default());
    let wanted = wanted(None, project, &source, &target, session.settings)?;
    note_stale_lock(session, &wanted).await?;
    image_of_project(session, &wanted, false).await
}

/// The same tag with the suffix of an image that is not verified.
pub(super) fn unverified(target: &ImageRef) -> Result<ImageRef, CommandError> {
    let text = target.to_string();
    let text = if text.ends_with(UNVERIFIED) { text } else { format!("{text}{UNVERIFIED}") };
    Ok(text.parse()?)
}

#[cfg(test)]
mod tests {
    use crate::model::markdown::{documented_fields, printed_fields};
    use crate::model::verdict::standing::ImageReports;

    #[test]
    fn every_field_is_documented() {
        let proven = ImageReports::default().proven(None);
        let report = super::Report {
            schema: 1,
            image: "sha256:1",
            verified: false,
            proven,
            pushed: &[],
            attested: &[],
            evidence: None,
        };
        let documented = documented_fields("envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8");
        assert_eq!(printed_fields(&report), documented);
    }

    use super::unverified;

    #[test]
    fn unverified_tag_has_the_suffix_once() {
        for typed in ["box:5000/team/torch:2.8", "box:5000/team/torch:2.8-unverified"] {
            let target = unverified(&typed.parse().expect("a reference")).expect("a tag");
            assert_eq!(target.to_string(), "box:5000/team/torch:2.8-unverified");
        }
    }
}
