//! `verify`: checks images, ours and others', and gives a verified image its real tags.

mod absent_gpu;
mod here;
mod nodes;
mod project_source;
mod report;
mod subjects;
mod submitted;

use project_source::project_of;
use report::{VerifiedTags, VerifyOutcome, finish, no_report, shown};

use crate::agent;
use crate::engine::{GpuSelection, ImageInfo};
use crate::evidence::{AttestedNodes, Entry, SigningKey};
use crate::failure::Exit;
use crate::host;
use crate::model::image::plan::UNVERIFIED;
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::request;
use crate::model::verdict::standing::ImageReports;
use crate::model::verdict::tag_policy::{TagStatus, claim, verified_tags};
use crate::model::verdict::{ImageState, Proven, Verdict, VerdictStatus};
use crate::report::{Event, reporter};
use crate::settings::Settings;
use crate::store::{Store, StoreError, reports};
use crate::workflow::check::{CheckTarget, ProjectSource, check};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{Attester, EvidenceError, signing_key};
use crate::workflow::fleet::is_image_file;
use crate::workflow::gpus::selection;
use crate::workflow::image_error::ImageError;
use crate::workflow::named::{Named, short_id};
use crate::workflow::proven::{lock_of_build, proven, reports_of, save_report};
use crate::workflow::push::{Pushed, push_verified, pushable, warn_of_licences};
use crate::workflow::request_error::RequestError;
use crate::workflow::required_evidence::{KeptProofs, status_by_policy, subject_here};
use crate::workflow::session::{LazySession, Session};
use crate::workflow::spec_parts::restricted_names;
use crate::workflow::speed_baseline;
use crate::workflow::verify_target::{Provenance, found, local, provenance};

pub(super) async fn verify(args: &request::Verify, settings: &Settings) -> Result<Exit, CommandError> {
    let images = restricted_names(&args.images, &args.parts, &settings.matrix)?;
    let args = &request::Verify { images, ..args.clone() };
    if let Some(on) = &args.fleet.on {
        return Box::pin(nodes::ask(args, on, settings)).await;
    }
    if !args.fleet.merge.is_empty() {
        return nodes::merge_files(args, settings);
    }
    if let Some(image) = args.images.first()
        && let Some(option) = args.project.option()
    {
        return Err(RequestError::SpecAndProject { spec: image.clone(), option }.into());
    }
    // An image of such a name is meant by its name with a tag.
    if let Some(file) = args.images.iter().find(|name| is_image_file(name)) {
        return here::verify_file(args, file, settings).await;
    }
    let gpus = selection(args.gpus.as_deref())?;
    let absent = absent_gpu::named(&args.gpu, &settings.matrix)?;
    let lazy = LazySession::of(settings);
    let Some(args) = &subjects::with_images(args, &gpus, &lazy).await? else { return Ok(Exit::Done) };
    if args.lock.is_some() && args.images.len() > 1 {
        return Err(RequestError::OneSpecOnly { option: "--lock", count: args.images.len() }.into());
    }
    // An unusable key fails before the checks run, not after.
    let key = args.attest.then(|| signing_key(args.key.as_deref(), settings)).transpose()?;
    let mut answers = Vec::new();
    if args.last {
        for name in &args.images {
            answers.push(last(&lazy, name).await);
        }
    } else {
        let session = lazy.session().await?;
        for name in &args.images {
            answers.push(if absent.is_empty() {
                one(session, args, (&gpus, key.as_ref()), name).await
            } else {
                VerifyOutcome::of(name, absent_gpu::checked(session, args, &absent, name).await)
            });
        }
    }
    finish(answers, args, settings)
}

/// One image: found, checked, its report kept, its tags put on and pushed if it earned them.
async fn one(
    session: &Session<'_>,
    args: &request::Verify,
    (gpus, key): (&GpuSelection, Option<&SigningKey>),
    name: &str,
) -> VerifyOutcome {
    match checked(session, args, gpus, name).await {
        Err(error) => VerifyOutcome::of(name, Err(error)),
        Ok(checked) => {
            let mut reward = VerifiedTags::default();
            let mut given = give(session, args, &checked, &mut reward).await;
            if let Some(key) = key {
                let attested = attest(session, args, (name, key), &checked, &mut reward).await;
                given = given.and(attested);
            }
            let proven = proven(&session.store, &*session.reporter, &checked.image);
            let undone = given.err();
            let (proven, by_key, undone) = match proven {
                Ok(proven) => {
                    note_what_stands(session, &checked.verdict, &proven);
                    match by_key(session, &checked.image, &proven) {
                        Ok(by_key) => (proven.to_string(), by_key, undone),
                        Err(error) => (proven.to_string(), None, undone.or(Some(error.into()))),
                    }
                }
                Err(error) => (String::new(), None, undone.or(Some(error.into()))),
            };
            let answer = VerifyOutcome::of(name, Ok(checked.verdict));
            VerifyOutcome { reward, proven, by_key, undone, ..answer }
        }
    }
}

/// Whose key proves the image for this machine where its own checks leave that open, by the evidence that is kept here.
fn by_key(session: &Session<'_>, image: &ImageInfo, proven: &Proven) -> Result<Option<String>, StoreError> {
    let engine = session.engine.info();
    KeptProofs::open(&session.store, session.settings, engine, &*session.reporter).text_of(image, proven)
}

/// Says what earlier runs on a GPU proved and this one, which ran on none, leaves standing.
fn note_what_stands(session: &Session<'_>, verdict: &Verdict, proven: &Proven) {
    let stands = matches!(proven.state, ImageState::Verified | ImageState::Passed);
    if stands && !verdict.executed {
        session.reporter.report(Event::Note { text: format!("the image stays {proven}") });
    }
}

/// An image with its verdict.
struct Checked {
    image: ImageInfo,
    verdict: Verdict,
    lock: Option<Lock>,
}

async fn checked(
    session: &Session<'_>,
    args: &request::Verify,
    gpus: &GpuSelection,
    name: &str,
) -> Result<Checked, CommandError> {
    let Named { reference, image } = found(session, name).await?;
    let provenance = provenance(session, args.lock.as_deref(), &image).await?;
    let origin = provenance.origin(&image, &session.matrix);
    let project = &match &provenance.lock {
        Some(lock) => project_of(session, args, lock)?,
        None => ProjectSource::Unused,
    };
    let subject = CheckTarget { image: &image, name: &reference, origin, level: args.level, gpus, project };
    let verdict = check(session, &subject).await?;
    save_report(&session.store, &*session.reporter, &verdict.of_image()).await?;
    if args.record {
        let text = match speed_baseline::record(session, &verdict)? {
            0 => "no speeds measured: nothing recorded".to_owned(),
            count => format!("recorded {count} speeds as the baseline of this host"),
        };
        session.reporter.report(Event::Note { text });
    }
    // A tag that names another image now is not given away with this one's verdict.
    let now = session.engine.image(&reference).await?;
    if now.is_some_and(|now| now.id != image.id) {
        return Err(ImageError::Moved { image: reference }.into());
    }
    let Provenance { lock, ours } = provenance;
    Ok(Checked { image, verdict, lock: lock.filter(|_| ours) })
}

/// Puts the real tags on an image that has only unverified ones and earned them, here and where they name.
async fn give(
    session: &Session<'_>,
    args: &request::Verify,
    Checked { image, verdict, lock }: &Checked,
    reward: &mut VerifiedTags,
) -> Result<(), CommandError> {
    // The exit code is that of the failure, whatever earlier runs proved on other GPUs.
    if verdict.failures() > 0 {
        return Ok(());
    }
    let earned = verified_tags(&image.tags);
    // An earlier run on a GPU counts as long as it stands; this one has just been added to them.
    let reports = reports_of(&session.store, &*session.reporter, &image.id)?;
    let status = lock.as_ref().map(|lock| reports.tag_status(lock).unwrap_or_else(|| claim(lock, verdict)));
    let status = match status {
        Some(status) => Some(status_by_policy(session, image, status).await?),
        None => None,
    };
    let because = match status {
        Some(TagStatus::Verified) => {
            for tag in &earned {
                note_moved_tag(session, tag, &image.id).await?;
                session.engine.tag(&image.id, tag).await?;
                reward.tags.push(tag.clone());
            }
            if args.push {
                if let Some(lock) = lock {
                    warn_of_licences(session, lock);
                }
                let known = image.tags.iter().filter(|tag| !tag.ends_with(UNVERIFIED)).cloned();
                for target in pushable(&known.chain(earned).collect::<Vec<_>>())? {
                    reward.pushed.extend(push_verified(session, image, &target).await?);
                }
            }
            return Ok(());
        }
        // The exit code is that of the failure.
        Some(TagStatus::Failed) => return Ok(()),
        Some(TagStatus::Unverified { because }) => because,
        None => "the image was not built here from a lock that is known".to_owned(),
    };
    if args.push {
        return Err(ImageError::NotPushed { because }.into());
    }
    if lock.is_some() && verdict.executed && !earned.is_empty() {
        session.reporter.report(Event::Note { text: format!("not tagged as verified: {because}") });
    }
    Ok(())
}

/// Signs what the report proves, or withdraws, and attaches it to the image where a registry has it.
async fn attest(
    session: &Session<'_>,
    args: &request::Verify,
    (name, key): (&str, &SigningKey),
    Checked { image, verdict, lock }: &Checked,
    reward: &mut VerifiedTags,
) -> Result<(), CommandError> {
    let named = || name.to_owned();
    if lock.is_none() {
        return Err(EvidenceError::Foreign { image: named() }.into());
    }
    let mut entries = Entry::of_report(&verdict.of_image(), &agent::sha256());
    if args.attest_nodes {
        // Which UUID is of which model is not known here.
        let is_one_model = entries.windows(2).all(|pair| pair[0].gpu == pair[1].gpu);
        let nodes = attested_nodes(session, args.gpus.is_none() && is_one_model);
        entries.iter_mut().filter(|entry| entry.stands()).for_each(|entry| entry.nodes.clone_from(&nodes));
    }
    if entries.is_empty() {
        let why = match verdict.verdict {
            VerdictStatus::Undecided => "the host hindered the checks",
            VerdictStatus::Failed => {
                "the failed run names no GPU (`envforge evidence withdraw` takes back what stood)"
            }
            VerdictStatus::Passed => "its report names no GPU with a driver",
            VerdictStatus::StaticOnly => "nothing ran on a GPU",
        };
        return Err(EvidenceError::NothingProven { image: named(), why }.into());
    }
    let target =
        where_pushed(name, image, reward).ok_or_else(|| EvidenceError::NotPushed { image: named() })?;
    let subject = subject_here(session, &target, image).await?;
    let attached = Attester::of(session, key).attach((&target, &subject), &entries).await?;
    reward.attested.push(format!("{} by key {}", attached.pinned, attached.key));
    Ok(())
}

/// The engine's machine by name, with the UUIDs of its GPUs if it is this one and the checks had all of them.
fn attested_nodes(session: &Session<'_>, has_all: bool) -> AttestedNodes {
    let (info, here) = (session.engine.info(), host::boot().map(|boot| boot.name));
    let is_here = info.local && (info.host.is_none() || info.host == here);
    // A remote engine without a name is some other machine.
    let name = info.host.clone().or_else(|| here.filter(|_| info.local));
    let Some(name) = name else { return AttestedNodes::new() };
    let found = if is_here && has_all { host::gpu_identities() } else { None };
    let uuids = found.map(|found| found.devices.into_iter().collect()).unwrap_or_default();
    AttestedNodes::from([(name, uuids)])
}

/// The image in a registry: where this run pushed it, what was typed, or where the engine has it from.
fn where_pushed(name: &str, image: &ImageInfo, reward: &VerifiedTags) -> Option<ImageRef> {
    let typed = || name.parse::<ImageRef>().ok().filter(ImageRef::names_registry);
    let pushed = reward.pushed.first().and_then(Pushed::pinned_reference);
    let known = || {
        image.digests.iter().find_map(|text| text.parse::<ImageRef>().ok()).filter(ImageRef::names_registry)
    };
    pushed.or_else(typed).or_else(known)
}

/// Says which image a tag belonged to that the verified one gets now.
async fn note_moved_tag(session: &Session<'_>, tag: &str, to: &str) -> Result<(), CommandError> {
    if let Some(before) = session.engine.image(tag).await?
        && before.id != to
    {
        let text = format!("tag {tag} moves from image {} to {}", short_id(&before.id), short_id(to));
        session.reporter.report(Event::Note { text });
    }
    Ok(())
}

/// The report that counts most, and what all of them prove.
async fn last(lazy: &LazySession<'_>, name: &str) -> VerifyOutcome {
    match kept_reports(lazy, name).await {
        Err(error) => VerifyOutcome::of(name, Err(error)),
        Ok((reports, lock, by_key)) => {
            let proven = reports.proven(lock.as_ref()).to_string();
            if let Some(id) = reports.image() {
                let text = format!("image {}: {proven}", short_id(id));
                reporter(lazy.settings.output).report(Event::Note { text });
            }
            VerifyOutcome { proven, by_key, ..VerifyOutcome::of(name, shown(&reports, lock.as_ref(), name)) }
        }
    }
}

/// The reports of an image, with the lock it was built from here and whose key proves it; the engine is asked which image the name means
/// now, if it answers.
async fn kept_reports(
    lazy: &LazySession<'_>,
    name: &str,
) -> Result<(ImageReports, Option<Lock>, Option<String>), CommandError> {
    let settings = lazy.settings;
    if let Ok(session) = lazy.session().await
        && let Some(Named { image, .. }) = local(session, name).await?
    {
        let lock = lock_of_build(&session.store, &*session.reporter, &image.id)?;
        let reports = reports_of(&session.store, &*session.reporter, &image.id)?;
        let by_key = by_key(session, &image, &reports.proven(lock.as_ref()))?;
        return Ok((reports, lock, by_key));
    }
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let reports = reports::named(&store, name)?.ok_or_else(|| no_report(name))?;
    let reporter = reporter(settings.output);
    let lock = reports.image().map(|id| lock_of_build(&store, &*reporter, id)).transpose()?.flatten();
    Ok((reports, lock, None))
}
