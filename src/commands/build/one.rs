//! One spec: stack to lock to plan to image to checks to tag. Prints nothing.
#![expect(clippy::disallowed_methods, reason = "times its stages, reads secrets")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde::Serialize;

use super::super::CommandError;
use super::super::base::check_processor;
use super::super::check::{Origin, Subject, check};
use super::super::content::digest_of;
use super::super::gpus::{self, Wish};
use super::super::known_locks::remember_image;
use super::super::lock::{Locked, lock_for};
use super::super::named_base::NamedBase;
use super::super::push::{Pushed, push, pushable};
use super::super::reports;
use super::super::session::Session;
use super::super::space;
use super::super::wanted::Wanted;
use super::files::files;
use super::identical::fixed;
use super::tags::tags;
use crate::address::Address;
use crate::agent;
use crate::base::Base;
use crate::cli::BuildArgs;
use crate::engine::{BuildRequest, ImageInfo, PassingTag, Secret};
use crate::lock::Lock;
use crate::packages::index_secrets_with;
use crate::plan::{Bottom, BuildPlan, asked_for, plan};
use crate::settings::NamedSecret;
use crate::stack::Stack;
use crate::tag_policy::{Claim, claim, tags_for};
use crate::verdict::Verdict;

/// Seconds each stage took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Seconds {
    lock: f64,
    build: f64,
    checks: f64,
    content: f64,
}

impl Seconds {
    /// All stages together.
    pub(super) fn total(self) -> f64 {
        self.lock + self.build + self.checks + self.content
    }
}

/// An image that was built and checked: what `build --json` prints. It has tags only if every check passed.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Built {
    schema: u32,
    pub(super) name: String,
    pub(super) tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) pushed: Vec<Pushed>,
    image: String,
    pub(super) size: u64,
    base: String,
    lock: String,
    lock_file: String,
    content: Option<String>,
    verified: bool,
    /// Why the tags end in `-unverified`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unverified_because: Option<String>,
    #[serde(skip)]
    required_gpu: bool,
    pub(super) seconds: Seconds,
    pub(in crate::commands) verdict: Verdict,
}

impl Built {
    /// The error of an image that has no tag: its checks failed, or a GPU was required and none counted.
    pub(in crate::commands) fn failure(&self) -> Option<CommandError> {
        let failed = self.verdict.failures();
        let image = self.image.clone();
        if failed > 0 {
            return Some(CommandError::ChecksFailed { failed, image });
        }
        let because = self.unverified_because.clone().filter(|_| self.required_gpu)?;
        Some(CommandError::NotProven { because, image: Some(image) })
    }
}

/// What came of one spec.
pub(in crate::commands) enum Done {
    /// An image.
    Built(Box<Built>),
    /// What would have been built, for `--dry-run`.
    Planned(String),
}

/// Locks, builds, checks and tags the image of one stack.
pub(in crate::commands) async fn build_one(
    session: &Session<'_>,
    wanted: &Wanted,
    stack: Stack,
    named: Option<&NamedBase>,
    args: &BuildArgs,
) -> Result<Done, CommandError> {
    let wish = Wish::IfAny;
    if args.require_gpu && gpus::request(session, &wish).is_none() {
        let because = "the engine has no GPU".to_owned();
        return Err(CommandError::NotProven { because, image: None });
    }
    let mut seconds = Seconds::default();
    let started = Instant::now();
    let locked = Box::pin(lock_for(session, stack, named, wanted)).await?;
    let bottom = Bottom::Image(locked.base.reference.clone());
    let plan = plan(&locked.lock, files(session, &locked.lock, &locked.base, bottom, wanted).await?);
    seconds.lock = started.elapsed().as_secs_f64();
    if args.dry_run {
        return Ok(Done::Planned(dry_run_text(&plan, &locked.lock)));
    }
    check_processor(session, &locked.lock.stack)?;
    check_agent_starts(&locked.base)?;
    space::check(session, &locked.lock)?;

    let started = Instant::now();
    let scratch = PassingTag::new(&*session.engine);
    let mut image = build_image(session, &locked, &plan, scratch.name(), wanted, args.no_cache).await?;
    if args.bit_identical {
        image = fixed(session, &locked.base, image, scratch.name()).await?;
    }
    seconds.build = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let origin = Origin::Ours { lock: &locked.lock, baked: true };
    let subject = Subject { image: &image, name: &plan.name, origin, level: wanted.level, gpus: &wish };
    let verdict = check(session, &subject).await?;
    seconds.checks = started.elapsed().as_secs_f64();
    reports::save(&session.store, &verdict)?;
    let claim = claim(&locked.lock, &verdict);
    let mut given = tags_for(&claim, &tags(&wanted.spec, &args.tags, &locked.lock, &plan));
    if args.require_gpu && !claim.is_verified() {
        given.clear();
    }
    let (mut pushed, mut content) = (Vec::new(), None);
    if given.is_empty() {
        scratch.leave_image(&locked.base.image_id).await?;
    } else {
        let started = Instant::now();
        if wanted.source.locked || args.push {
            match digest_of(session, &locked, &image.id).await {
                Ok(digest) => content = Some(digest),
                Err(error @ CommandError::ContentDiffers { .. }) => {
                    scratch.leave_image(&locked.base.image_id).await?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        seconds.content = started.elapsed().as_secs_f64();
        remember_image(&session.store, &locked.lock)?;
        for tag in &given {
            session.engine.tag(&image.id, tag).await?;
        }
        scratch.remove().await?;
        if args.push {
            for target in pushable(&given)? {
                pushed.push(push(session, &target.to_string()).await?);
            }
        }
    }
    Ok(Done::Built(Box::new(Built {
        schema: 1,
        name: plan.name,
        tags: given,
        pushed,
        image: image.id,
        size: image.size,
        base: locked.base.reference.clone(),
        lock: plan.lock,
        lock_file: locked.path.to_string(),
        content,
        verified: claim.is_verified(),
        unverified_because: match claim {
            Claim::Unverified { because } => Some(because),
            Claim::Verified | Claim::Failed => None,
        },
        required_gpu: args.require_gpu,
        seconds,
        verdict,
    })))
}

/// Refuses a base in which the agent cannot start: an image that cannot be checked gets no tag, so none is built.
fn check_agent_starts(base: &Base) -> Result<(), CommandError> {
    match (agent::needed_glibc(), &base.glibc) {
        (Some(needs), Some(glibc)) if needs > *glibc => Err(CommandError::AgentTooNew {
            base: base.name.clone(),
            glibc: glibc.to_string(),
            needs: needs.to_string(),
        }),
        _ => Ok(()),
    }
}

async fn build_image(
    session: &Session<'_>,
    locked: &Locked,
    plan: &BuildPlan,
    scratch_tag: &str,
    wanted: &Wanted,
    no_cache: bool,
) -> Result<ImageInfo, CommandError> {
    locked.base.check_unchanged(&*session.engine).await?;
    let request = BuildRequest {
        context: plan.context.clone(),
        secrets: secrets(session, &locked.lock, &wanted.indexes)?,
        build_args: session.settings.proxies.clone(),
        labels: BTreeMap::new(),
        network: session.network,
        no_cache,
        scratch_tag: scratch_tag.to_owned(),
    };
    let image = session.engine.build(request, Arc::clone(&session.reporter)).await?;
    locked.base.check_unchanged(&*session.engine).await?;
    Ok(image)
}

/// Certificates and index addresses, served during RUN steps and kept nowhere.
fn secrets(
    session: &Session<'_>,
    lock: &Lock,
    further: &BTreeMap<String, Address>,
) -> Result<Vec<Secret>, CommandError> {
    let mut secrets = index_secrets_with(&session.index, lock, further);
    let names: BTreeSet<_> = lock.added.run.iter().flat_map(|run| &run.secrets).collect();
    for name in names {
        let bytes = secret_value(session, name)?;
        secrets.push(Secret { id: format!("user-{name}"), bytes });
    }
    Ok(secrets)
}

/// The value of a secret that a run step reads.
fn secret_value(session: &Session<'_>, name: &str) -> Result<Bytes, CommandError> {
    let none = |why: String| CommandError::NoSecret { name: name.to_owned(), why };
    match session.settings.secrets.get(name) {
        Some(NamedSecret::Value(value)) => Ok(Bytes::from(value.clone())),
        Some(NamedSecret::File(file)) => {
            fs_err::read(file).map(Bytes::from).map_err(|error| none(error.to_string()))
        }
        Some(NamedSecret::Unset(variable)) => Err(none(format!("{variable} is not set"))),
        None => Err(none("no configuration names it".to_owned())),
    }
}

/// Layers and context, for `--dry-run`.
fn dry_run_text(plan: &BuildPlan, lock: &Lock) -> String {
    let mut text = format!("{}\n\nlayers\n  system\n", plan.name);
    for layer in &plan.layers {
        text.extend(["  ", &layer.title, "\n"]);
    }
    if !lock.apt.is_empty() {
        text.extend(["  packages of the distribution: ", &asked_for(&lock.added.apt), "\n"]);
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
    for check in &plan.checks {
        text.extend(["  ", check, "\n"]);
    }
    text.push_str("\nchecks on a GPU before a tag without -unverified\n");
    for check in &plan.gpu_checks {
        text.extend(["  ", check, "\n"]);
    }
    text
}
