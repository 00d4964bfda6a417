//! `build`: lock to plan to image to checks to tag.
#![expect(clippy::disallowed_methods, reason = "times its stages and reads sizes of cached files")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use camino::Utf8PathBuf;
use serde::Serialize;

use super::check::check;
use super::lock::{Locked, lock_for, mirrors, package_settings, stack};
use super::session::Session;
use super::{CommandError, Exit};
use crate::agent;
use crate::base::Base;
use crate::cli::BuildArgs;
use crate::engine::{BuildRequest, ImageInfo, Secret};
use crate::lock::Lock;
use crate::packages::{UvSource, gather_debs, gather_uv};
use crate::plan::{Bottom, BuildPlan, CachedFile, Files, UNVERIFIED, plan};
use crate::report::Printer;
use crate::settings::Settings;
use crate::verdict::{Verdict, verdict_text};

/// Seconds each stage took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Seconds {
    lock: f64,
    build: f64,
    checks: f64,
}

/// What `build --json` prints.
#[derive(Serialize)]
struct BuildReport<'a> {
    schema: u32,
    name: &'a str,
    tags: &'a [String],
    image: &'a str,
    size: u64,
    base: &'a str,
    lock: &'a str,
    lock_file: &'a str,
    verified: bool,
    seconds: Seconds,
    verdict: &'a Verdict,
}

pub(super) async fn build(args: &BuildArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let stack = stack(settings, &args.spec, &args.source, &args.target)?;
    let session = Session::open(settings, args.source.network.as_deref()).await?;
    let mut seconds = Seconds::default();
    let started = Instant::now();
    let locked = lock_for(&session, stack, &args.spec, &args.source).await?;
    let files =
        files(&session, &locked.lock, &locked.base, Bottom::Image(locked.base.reference.clone())).await?;
    let plan = plan(&locked.lock, files);
    seconds.lock = started.elapsed().as_secs_f64();
    if args.dry_run {
        Printer.text(&dry_run_text(&plan));
        return Ok(Exit::Done);
    }
    super::space::check(&session, &locked.lock)?;

    let started = Instant::now();
    let scratch = ScratchTag::new(&session);
    let image = build_image(&session, &locked, &plan, &scratch.tag, args.no_cache).await?;
    seconds.build = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let verdict = check(&session, &locked.lock, &plan, &image).await?;
    seconds.checks = started.elapsed().as_secs_f64();
    save_report(&session, &image, &verdict)?;
    let failed = verdict.failures();
    if failed > 0 {
        scratch.leave_image(&locked.base).await?;
        Printer.say(&verdict_text(&verdict));
        return Err(CommandError::ChecksFailed { failed, image: image.id });
    }
    let tags = tags(args, &locked.lock, &plan);
    for tag in &tags {
        session.engine.tag(&image.id, tag).await?;
    }
    scratch.remove().await?;
    if settings.output.json {
        Printer.json(&BuildReport {
            schema: 1,
            name: &plan.name,
            tags: &tags,
            image: &image.id,
            size: image.size,
            base: &locked.base.reference,
            lock: &plan.lock,
            lock_file: locked.path.as_str(),
            verified: false,
            seconds,
            verdict: &verdict,
        });
    } else {
        if !settings.output.quiet {
            Printer.say(&verdict_text(&verdict));
            Printer.say("nothing ran on a GPU: the tag ends in -unverified");
        }
        Printer.text(&tags.join("\n"));
    }
    Ok(Exit::Done)
}

/// The canonical name, what was typed if it names a version, and what `--tag` asks for.
fn tags(args: &BuildArgs, lock: &Lock, plan: &BuildPlan) -> Vec<String> {
    let mut tags = vec![format!("{}{UNVERIFIED}", plan.name)];
    let typed = args.spec.replace('+', "-");
    if lock.requested.is_empty() && args.spec.contains(':') && !args.spec.ends_with(":latest") {
        tags.push(format!("{typed}{UNVERIFIED}"));
    }
    tags.extend(args.tags.iter().map(|tag| unverified(tag)));
    tags.dedup();
    tags
}

/// A reference with the suffix at its tag; one without a tag means `latest`, as Docker reads it.
fn unverified(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    if name.contains(':') {
        format!("{reference}{UNVERIFIED}")
    } else {
        format!("{reference}:latest{UNVERIFIED}")
    }
}

/// Makes everything the context needs present in the cache.
pub(super) async fn files(
    session: &Session<'_>,
    lock: &Lock,
    base: &Base,
    bottom: Bottom,
) -> Result<Files, CommandError> {
    let mirrors: Vec<_> =
        mirrors(session).into_iter().flat_map(|found| [Some(found.main), found.security]).flatten().collect();
    let (store, fetch) = (&session.store, &session.fetch);
    gather_debs(lock, store, fetch, &mirrors, Arc::clone(&session.reporter)).await?;
    let settings = package_settings(session, &lock.stack);
    let source = UvSource { engine: &*session.engine, base_reference: &base.reference, settings: &settings };
    let uv = gather_uv(lock, &source, store, fetch, Arc::clone(&session.reporter)).await?;
    let debs = lock.system.iter().map(|deb| store.blob_path(&deb.sha256)).collect::<Result<_, _>>()?;
    Ok(Files { bottom, debs, uv: cached_file(uv)?, agent: Bytes::from_static(agent::AGENT) })
}

/// A file of the cache, which is named by its SHA-256.
pub(super) fn cached_file(path: Utf8PathBuf) -> Result<CachedFile, CommandError> {
    let bytes = fs_err::read(&path)?;
    let sha256 = crate::sha256::sha256_hex(&bytes);
    Ok(CachedFile { size: bytes.len() as u64, sha256, path })
}

async fn build_image(
    session: &Session<'_>,
    locked: &Locked,
    plan: &BuildPlan,
    scratch_tag: &str,
    no_cache: bool,
) -> Result<ImageInfo, CommandError> {
    locked.base.check_unchanged(&*session.engine).await?;
    let request = BuildRequest {
        context: plan.context.clone(),
        secrets: secrets(session, &locked.lock),
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
fn secrets(session: &Session<'_>, lock: &Lock) -> Vec<Secret> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut index = String::new();
    if let Some(address) = &session.index.default {
        index.extend(["export UV_DEFAULT_INDEX=", &quoted(address.expose()), "\n"]);
    }
    if lock.uses_framework_index()
        && let Some(address) = session.index.framework_index(&lock.stack.framework, lock.stack.cuda)
    {
        index.extend(["export ENVFORGE_FRAMEWORK_INDEX=", &quoted(address.expose()), "\n"]);
    }
    let mut secrets = Vec::new();
    if !index.is_empty() {
        secrets.push(Secret { id: "index".to_owned(), bytes: Bytes::from(index) });
    }
    secrets.extend(session.index.ca_bundle.clone().map(|bytes| Secret { id: "ca".to_owned(), bytes }));
    secrets
}

/// The private tag a build result has until it is checked.
/// Taken off on every path, Ctrl-C included.
struct ScratchTag<'a> {
    session: &'a Session<'a>,
    tag: String,
    gone: bool,
}

impl<'a> ScratchTag<'a> {
    fn new(session: &'a Session<'a>) -> Self {
        Self { session, tag: format!("envforge-scratch:{:016x}", rand::random::<u64>()), gone: false }
    }

    /// Takes the tag off an image that has others.
    async fn remove(mut self) -> Result<(), CommandError> {
        self.session.engine.remove_image(&self.tag).await?;
        self.gone = true;
        Ok(())
    }

    /// Takes the tag off and leaves the image under its id: removing an image's last tag would remove the image, so the
    /// tag moves to the base, which has its own, first.
    async fn leave_image(self, base: &Base) -> Result<(), CommandError> {
        self.session.engine.tag(&base.image_id, &self.tag).await?;
        self.remove().await
    }
}

impl Drop for ScratchTag<'_> {
    fn drop(&mut self) {
        if !self.gone {
            self.session.engine.discard_image(&self.tag);
        }
    }
}

fn save_report(session: &Session<'_>, image: &ImageInfo, verdict: &Verdict) -> Result<(), CommandError> {
    let text = serde_json::to_vec_pretty(verdict).expect("a verdict serialises: it holds text keys only");
    let id = image.id.trim_start_matches("sha256:");
    Ok(session.store.write_state(&format!("reports/{id}.json"), &text)?)
}

/// Layers and context, for `--dry-run`.
fn dry_run_text(plan: &BuildPlan) -> String {
    let mut text = format!("{}\n\nlayers\n  system\n", plan.name);
    for layer in &plan.layers {
        text.extend(["  ", &layer.title, "\n"]);
    }
    text.push_str("  files and agent\n\ncontext\n");
    for entry in &plan.context {
        text.extend([format!("  {:o} {:>11} {}\n", entry.mode, entry.size(), entry.path)]);
    }
    text.push_str("\nchecks before the tag\n");
    for check in &plan.checks {
        text.extend(["  ", check, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::unverified;

    #[test]
    fn a_tag_of_the_user_is_not_verified_either() {
        assert_eq!(unverified("torch:2.8"), "torch:2.8-unverified");
        assert_eq!(unverified("host:5000/team/torch"), "host:5000/team/torch:latest-unverified");
    }
}
