//! One spec: stack to lock to plan to image to checks to tag. Prints nothing.
#![expect(clippy::disallowed_methods, reason = "times its stages")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::agent;
use crate::engine::{EngineError, GpuSelection, ImageBuildRequest, ImageInfo, TemporaryTag};
use crate::evidence::{Entry, SigningKey};
use crate::model::given::Receiver;
use crate::model::image::plan::{BaseSource, BuildPlan, current_name, name, plan, summarize};
use crate::model::lock::Lock;
use crate::model::request;
use crate::model::stack::Stack;
use crate::model::verdict::Verdict;
use crate::model::verdict::required_checks::{gpu_checks, static_checks};
use crate::model::verdict::tag_policy::{TagStatus, claim, moving_tags, tags_for};
use crate::report::Event;
use crate::store::built_images::remember_built;
use crate::store::known_locks::remember_image;
use crate::workflow::assemble::{Assembly, FinishedLayers, PartClock, Purpose, assemble, recorded};
use crate::workflow::base::{check_agent_starts, check_processor};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::build_secrets::secrets;
use crate::workflow::built::Built;
use crate::workflow::check::{
    CheckTarget, ImageOrigin, ProjectSource, check, mounted_project, standing_report,
};
use crate::workflow::check_error::CheckError;
use crate::workflow::content_digest::{content_of, digest_of};
use crate::workflow::context_files::files;
use crate::workflow::custom_base::NamedBase;
use crate::workflow::damaged::{Replaced, Subject};
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{Attester, signing_key};
use crate::workflow::finished_image::finished_image;
use crate::workflow::gpus;
use crate::workflow::image_records;
use crate::workflow::installed_project::with_project;
use crate::workflow::lock::{LockedBuild, lock_for};
use crate::workflow::misfits::{BuildMisfits, misfits_of};
use crate::workflow::project_sources::is_installed;
use crate::workflow::proven::{reports_of, save_report};
use crate::workflow::provenance::attach_provenance;
use crate::workflow::publish_layers::publish_layers;
use crate::workflow::push::{Pushed, push, pushable, warn_of_licences};
use crate::workflow::required_evidence::{status_by_policy, subject_here};
use crate::workflow::session::Session;
use crate::workflow::shared_wheel::note_compiled;
use crate::workflow::stage_timings::StageTimings;
use crate::workflow::tags::tags;

/// What came of one spec.
pub(crate) enum Done {
    /// An image.
    Built(Box<Built>),
    /// What would have been built, for `--dry-run`.
    Planned(String),
}

/// Locks, builds, checks and tags the image of one stack.
pub(crate) async fn build_one(
    session: &Session<'_>,
    wanted: &BuildRequest,
    stack: Stack,
    named: Option<&NamedBase>,
    args: &request::Build,
) -> Result<Done, CommandError> {
    let selection = GpuSelection::IfAny;
    if args.require_gpu && gpus::request(session, &selection).is_none() {
        let because = "the engine has no GPU".to_owned();
        return Err(CheckError::NotProven { because, image: None }.into());
    }
    let mut seconds = StageTimings::default();
    let started = Instant::now();
    let mut locked = Box::pin(lock_for(session, stack, named, wanted)).await?;
    image_records::forget_other_layout(session, &mut locked);
    let misfits = BuildMisfits::told(std::mem::take(&mut locked.misfits), &session.matrix);
    // `--dry-run` runs nothing.
    let project = if args.dry_run {
        None
    } else {
        Box::pin(with_project(session, &locked, wanted, args.no_cache)).await?
    };
    let untagged = tags(&wanted.spec, &args.tags, of_image(project.as_ref(), &locked), &session.matrix);
    let kept = match project {
        None => Box::pin(finished_image(session, &locked, args)).await?,
        // Its lock is made anew of the sources.
        Some(_) => None,
    };
    seconds.lock = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let is_kept = kept.is_some();
    let scratch = if is_kept { None } else { Some(TemporaryTag::new(&*session.engine)) };
    let times = PartClock::default();
    let finished = FinishedLayers::new(session, recorded(&locked.lock), Purpose::Build);
    let image = if let Some(image) = kept {
        let found = misfits_of(&locked.lock, wanted, &session.store, &session.matrix);
        misfits.tell(found, &locked.lock, &*session.reporter);
        image
    } else {
        let bottom = BaseSource::Image(locked.base.reference.clone());
        let lock = of_image(project.as_ref(), &locked);
        let plan = plan(lock, files(session, lock, &locked.base, bottom, wanted).await?);
        if args.dry_run {
            return Ok(Done::Planned(dry_run_text(&plan, &locked.lock, is_installed(wanted))));
        }
        check_processor(session, &locked.lock.stack)?;
        check_agent_starts(&locked.base)?;
        let new = NewImage {
            session,
            project: project.as_ref(),
            plan: &plan,
            wanted,
            args,
            scratch_tag: scratch.as_ref().map_or("", TemporaryTag::name),
            finished: &finished,
            misfits: &misfits,
            times: &times,
        };
        Box::pin(new.make(&mut locked)).await?
    };
    seconds.build = started.elapsed().as_secs_f64();
    seconds.parts = times.timings();
    // Before the checks: an image that fails is known, too, and `prune` finds it.
    let lock = of_image(project.as_ref(), &locked);
    remember_image(&session.store, lock)?;
    remember_built(&session.store, &image.id, &lock.hash())?;

    let started = Instant::now();
    let origin = ImageOrigin::Ours { lock, baked: true };
    let source = match &wanted.folder {
        Some(folder) => mounted_project(folder, &wanted.code, lock, session)?,
        None => ProjectSource::Unused,
    };
    let subject = CheckTarget {
        image: &image,
        name: &name(lock),
        origin,
        level: wanted.level,
        gpus: &selection,
        project: &source,
    };
    let standing = if args.recheck || args.require_gpu { None } else { standing_report(session, &subject)? };
    let stands = standing.is_some();
    let verdict = if let Some(verdict) = standing {
        Verdict { name: name(lock), ..verdict }
    } else {
        let verdict = check(session, &subject).await?;
        save_report(&session.store, &*session.reporter, &verdict.of_image()).await?;
        verdict
    };
    seconds.checks = started.elapsed().as_secs_f64();
    let claim = tag_status(session, lock, &verdict, args)?;
    let claim = status_by_policy(session, &image, claim).await?;
    let mut given = tags_for(&claim, &untagged);
    if args.require_gpu && !claim.is_verified() {
        given.clear();
    }
    if !given.is_empty() {
        given.extend(moved_tags(lock, claim.is_verified()));
    }
    let (mut pushed, mut attested, mut content) = (Vec::new(), Vec::new(), None);
    let mut undone = None;
    if given.is_empty() {
        keep_untagged(scratch, &locked.base.image_id).await?;
    } else {
        let started = Instant::now();
        if wanted.source.locked || args.push {
            let digest = match &project {
                // The lock file records that of the image without the project.
                Some(_) => content_of(session, &image.id).await.map(|content| content.hex()),
                None => digest_of(session, &locked, &image.id).await,
            };
            match digest {
                Ok(digest) => content = Some(digest),
                Err(error) => {
                    if let Some(CheckError::ContentDiffers { .. }) = error.downcast_ref() {
                        keep_untagged(scratch, &locked.base.image_id).await?;
                    }
                    return Err(error);
                }
            }
        }
        seconds.content = started.elapsed().as_secs_f64();
        for tag in &given {
            session.engine.tag(&image.id, tag).await?;
        }
        if let Some(scratch) = scratch {
            scratch.remove().await?;
        }
        let started = Instant::now();
        if args.push {
            warn_of_licences(session, lock);
            pushed = push(session, &image.id, &pushable(&given)?).await?;
            if args.attest {
                let key = signing_key(args.key.as_deref(), session.settings)?;
                let target = (&*pushed, &image);
                (attested, undone) =
                    match attest_build(session, target, (lock, &verdict.of_image()), &key).await {
                        Ok(attested) => (attested, None),
                        // It is pushed, and that is printed first.
                        Err(error) => (Vec::new(), Some(error)),
                    };
            }
        }
        // Last: other layers of another machine are an error, but the image is checked and tagged.
        if !is_kept {
            note_compiled(&finished, &locked.lock, &session.matrix)?;
            Box::pin(publish_layers(&finished, session.engine.info().machine)).await?;
        }
        seconds.push = started.elapsed().as_secs_f64();
    }
    session.reporter.report(Event::Note { text: seconds.text() });
    let (name, hash) = (name(lock), lock.hash());
    let built = Built::new(&locked, image, (claim, verdict), given);
    Ok(Done::Built(Box::new(Built {
        name,
        lock: hash,
        pushed,
        attested,
        undone,
        content,
        misfits: misfits.into_all(),
        required_gpu: args.require_gpu,
        present: is_kept && stands,
        stands,
        seconds,
        ..built
    })))
}

/// What an image is made of that is not there yet.
struct NewImage<'a> {
    session: &'a Session<'a>,
    /// The lock with the project's own wheel, if it is installed.
    project: Option<&'a Lock>,
    plan: &'a BuildPlan,
    wanted: &'a BuildRequest,
    args: &'a request::Build,
    scratch_tag: &'a str,
    finished: &'a FinishedLayers,
    misfits: &'a BuildMisfits,
    times: &'a PartClock,
}

impl NewImage<'_> {
    /// Makes the image under its scratch tag; the lock gets the records of its layers.
    async fn make(self, locked: &mut LockedBuild) -> Result<ImageInfo, CommandError> {
        let Self { session, project, plan, wanted, args, scratch_tag, finished, misfits, times } = self;
        let no_cache = args.no_cache;
        if args.builder == request::BuilderChoice::Assembled {
            let (lock, base) = (of_image(project, locked), &locked.base);
            let misfits = Some(misfits);
            let how = Assembly {
                session,
                lock,
                base,
                plan,
                wanted,
                scratch_tag,
                no_cache,
                finished,
                misfits,
                times,
            };
            let (image, records) = Box::pin(assemble(how)).await?;
            let records = if project.is_some() { records.without_project() } else { records };
            image_records::compare(session, locked, records)?;
            return Ok(image);
        }
        // uv downloads the wheels in the build: what is known is what this machine has.
        let found = misfits_of(&locked.lock, wanted, &session.store, &session.matrix);
        misfits.tell(found, &locked.lock, &*session.reporter);
        let lock = of_image(project, locked);
        disk_space::check(session, lock)?;
        let scratch_tag = scratch_tag.to_owned();
        let request =
            ImageBuildRequest { no_cache, scratch_tag, ..image_request(session, lock, plan, wanted)? };
        build_image(Subject { session, lock, base: &locked.base, wanted }, request).await
    }
}

/// The lock of the image that is built: with the project's own wheel, if it is installed.
fn of_image<'a>(project: Option<&'a Lock>, locked: &'a LockedBuild) -> &'a Lock {
    project.unwrap_or(&locked.lock)
}

/// Takes the scratch tag from an image, which stays.
async fn keep_untagged(scratch: Option<TemporaryTag<'_>>, tagged: &str) -> Result<(), EngineError> {
    match scratch {
        Some(scratch) => scratch.untag_keep_image(tagged).await,
        None => Ok(()),
    }
}

/// The tags that move to a project's image from the one before it; none without a project.
fn moved_tags(lock: &Lock, is_verified: bool) -> Vec<String> {
    current_name(lock).map(|current| moving_tags(&current, is_verified)).unwrap_or_default()
}

/// Signs what an image was built from, and what its checks proved on a GPU, where it was pushed.
async fn attest_build(
    session: &Session<'_>,
    (pushed, image): (&[Pushed], &ImageInfo),
    (lock, verdict): (&Lock, &Verdict),
    key: &SigningKey,
) -> Result<Vec<String>, CommandError> {
    let mut attested = Vec::new();
    for target in pushed.iter().filter_map(Pushed::pinned_reference) {
        let line = attach_provenance(session, (&target, image), lock, key).await?;
        if attested.contains(&line) {
            continue;
        }
        attested.push(line);
        let entries = Entry::of_report(verdict, &agent::sha256());
        if !entries.is_empty() {
            let subject = subject_here(session, &target, image).await?;
            Attester::of(session, key).attach((&target, &subject), &entries).await?;
        }
    }
    Ok(attested)
}

/// The tags that an image may have after these checks. What an earlier run proved of the same id on a GPU stands, but for
/// `--require-gpu`, which asks for a GPU now.
fn tag_status(
    session: &Session<'_>,
    lock: &Lock,
    verdict: &Verdict,
    args: &request::Build,
) -> Result<TagStatus, CommandError> {
    let now = claim(lock, verdict);
    if args.require_gpu {
        return Ok(now);
    }
    let reports = reports_of(&session.store, &*session.reporter, &verdict.image)?;
    let before = reports.tag_status(lock);
    if before == Some(TagStatus::Failed) && verdict.failures() == 0 {
        let text = format!("an earlier run of this image failed: {}", reports.proven(Some(lock)));
        session.reporter.report(Event::Warning { text });
    }
    let stands = before.is_some_and(|status| status.is_verified());
    Ok(if stands && verdict.failures() == 0 { TagStatus::Verified } else { now })
}

/// Returns the build of a plan, without a tag.
fn image_request(
    session: &Session<'_>,
    lock: &Lock,
    plan: &BuildPlan,
    wanted: &BuildRequest,
) -> Result<ImageBuildRequest, CommandError> {
    Ok(ImageBuildRequest {
        context: plan.context.clone(),
        context_secret: session.store.context_secret()?,
        secrets: secrets(session, lock, &wanted.indexes)?,
        // With commands of a project the user was asked before: see `project_trust`. Without them nothing but the download of
        // wheels needs a login, and has it from its secret.
        build_args: Receiver::Run.proxies(&session.settings.network.proxies, !lock.added.run.is_empty()),
        labels: BTreeMap::new(),
        network: session.network,
        no_cache: false,
        scratch_tag: String::new(),
    })
}

/// Builds the image; what is damaged in the cache is fetched once more.
async fn build_image(subject: Subject<'_>, request: ImageBuildRequest) -> Result<ImageInfo, CommandError> {
    let Subject { session, base, .. } = subject;
    let mut replaced = Replaced::default();
    loop {
        base.check_unchanged(&*session.engine).await?;
        match session.engine.build(request.clone(), Arc::clone(&session.reporter)).await {
            Ok(image) => {
                base.check_unchanged(&*session.engine).await?;
                return Ok(image);
            }
            Err(error) => replaced.again(error.into(), subject).await?,
        }
    }
}

/// Layers and context, for `--dry-run`.
fn dry_run_text(plan: &BuildPlan, lock: &Lock, installs: bool) -> String {
    let mut text = format!("{}\n\nlayers\n  system\n", plan.image.name);
    for layer in &plan.image.layers {
        text.extend(["  ", &layer.title, "\n"]);
    }
    if !lock.apt.is_empty() {
        text.extend(["  packages of the distribution: ", &summarize(&lock.added.apt), "\n"]);
    }
    if installs {
        text.push_str("  the project itself, built of its sources: the name gets another hash\n");
    }
    for copy in &lock.added.copy {
        text.extend(["  copy ", &copy.from, " to ", &copy.to, "\n"]);
    }
    for run in &lock.added.run {
        text.extend(["  run ", &run.command, "\n"]);
    }
    text.push_str("  files and agent\n\ncontext\n");
    for entry in &plan.context {
        text.extend([format!("  {:o} {:>11} {}\n", entry.mode, entry.size(), entry.path)]);
    }
    text.push_str("\nchecks before the tag\n");
    for check in static_checks(lock) {
        text.extend(["  ", &check, "\n"]);
    }
    text.push_str("\nchecks on a GPU before a tag without -unverified\n");
    for check in gpu_checks(lock, true) {
        text.extend(["  ", &check, "\n"]);
    }
    text
}
