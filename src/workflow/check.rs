//! Runs the agent's checks in a container of an image and judges what it printed.
#![expect(clippy::disallowed_methods, reason = "times the checks and stamps the report")]

use std::sync::Arc;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use envforge_protocol::{CheckId, ExpectationText, Key};
use jiff::Timestamp;

use crate::engine::{EngineError, GpuRequest, GpuSelection, ImageInfo, RunRequest};
use crate::model::image::paths::WORKSPACE;
use crate::model::lock::{Lock, LockedCheck};
use crate::model::request::Level;
use crate::model::shared_memory::shm_size;
use crate::model::verdict::required_checks::{gpu_checks, static_checks};
use crate::model::verdict::tag_policy::not_proven;
use crate::model::verdict::{Check, ImageExpectations, Verdict, expectation_file, judge};
use crate::model::versions::ComputeCapability;
use crate::report::Event;
use crate::shell::{ProjectCode, User, caller_ids};
use crate::workflow::build_request::CodeRequest;
use crate::workflow::check_conditions::{Run, conditions};
use crate::workflow::check_container::{
    AGENT, AgentReport, BAKED_AGENT, EXPECT, USER, agent_file, as_root, environment, file_checks, limits,
    text, without_file_checks, words,
};
use crate::workflow::error::CommandError;
use crate::workflow::gpus::request;
use crate::workflow::project_code::code_at;
use crate::workflow::proven::reports_of;
use crate::workflow::session::Session;

/// What the image is to us.
pub(crate) enum ImageOrigin<'a> {
    /// Built from this lock; `baked`: its own agent runs, not this program's.
    Ours { lock: &'a Lock, baked: bool },
    /// Nothing is known of it but what it says of itself, as lines the agent reads.
    Foreign { says: String },
    /// Its label names this lock, and it was not built here: held to the lock, in a sandbox.
    Claimed { lock: &'a Lock },
}

/// One image to check.
pub(crate) struct CheckTarget<'a> {
    pub(crate) image: &'a ImageInfo,
    /// What was typed.
    pub(crate) name: &'a str,
    pub(crate) origin: ImageOrigin<'a>,
    pub(crate) level: Level,
    pub(crate) gpus: &'a GpuSelection,
    /// The source of the project whose checks run.
    pub(crate) project: &'a ProjectSource,
}

/// Where the source of an image's project is.
pub(crate) enum ProjectSource {
    /// Here, and its checks import it.
    Here(MountedProject),
    /// Its checks run on the image alone: the project turned its own code off, or there is none.
    Unused,
    /// The image was named, and its project is not here.
    Elsewhere,
}

/// The source of a project, read-only in the containers of its own checks.
pub(crate) struct MountedProject {
    /// Its folder, without links.
    pub(crate) folder: Utf8PathBuf,
    /// What makes it importable.
    pub(crate) code: ProjectCode,
}

/// Checks one image, on a GPU if there is one.
pub(crate) async fn check(session: &Session<'_>, subject: &CheckTarget<'_>) -> Result<Verdict, CommandError> {
    check_for(session, subject, &[]).await
}

/// Checks one image for these GPUs, whatever it is meant for (none given: for those it is meant for); without a GPU if the engine cannot
/// give one.
pub(crate) async fn check_for(
    session: &Session<'_>,
    subject: &CheckTarget<'_>,
    asked: &[ComputeCapability],
) -> Result<Verdict, CommandError> {
    let id = format!("checks of {}", subject.name);
    let report = |event| session.reporter.report(event);
    report(Event::StepStarted { id: id.clone(), text: format!("check {}", subject.name) });
    let started = Instant::now();
    let gpus = if subject.level == Level::Static { None } else { request(session, subject.gpus) };
    let mut result = run(session, (subject, asked), gpus.as_ref(), &id).await;
    if let Some(error) = result.as_ref().err().and_then(CommandError::downcast_ref::<EngineError>)
        && *subject.gpus == GpuSelection::IfAny
        && gpus.is_some()
        && let Some(finding) = error.gpu_unavailable()
    {
        report(Event::Note { text: format!("no GPU: {}; {}", finding.what, finding.why) });
        result = run(session, (subject, asked), None, &id).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    report(match result.as_ref().map(|verdict| (verdict.failures(), verdict.checks.len())) {
        Ok((0, _)) => Event::StepFinished { id, cached: false, seconds },
        Ok((failed, all)) => Event::StepFailed { id, text: format!("{failed} of {all} checks failed") },
        // The error itself is told once, by who started this.
        Err(_) => Event::StepFailed { id, text: "cannot run the checks".to_owned() },
    });
    result
}

async fn run(
    session: &Session<'_>,
    (subject, asked): (&CheckTarget<'_>, &[ComputeCapability]),
    gpus: Option<&GpuRequest>,
    id: &str,
) -> Result<Verdict, CommandError> {
    let level = if gpus.is_some() { subject.level } else { Level::Static };
    let speeds = match level {
        Level::Perf => crate::workflow::speed_baseline::expected_speeds(session)?,
        _ => String::new(),
    };
    // Before the run: what changes while it lasts is another condition.
    let conditions = if asked.is_empty() { conditions_of(session, subject, gpus)? } else { None };
    let own = limits(level, session.engine.info());
    let mut request = RunRequest {
        gpus: gpus.cloned(),
        shm_size: gpus.map(|_| shm_size(None)),
        env: environment(subject.image),
        report_as: Some(id.to_owned()),
        ..RunRequest::bounded(&subject.image.id, Vec::new(), own)
    };
    let run = |request| session.engine.run(request, Arc::clone(&session.reporter));
    let (report, expected) = match &subject.origin {
        ImageOrigin::Ours { lock, baked } => {
            request.files = vec![text(EXPECT, for_gpus(expectation_file(lock), asked) + &speeds)];
            let agent = if *baked { BAKED_AGENT } else { AGENT };
            request.files.extend((!baked).then(agent_file));
            request.command = words(&[agent, level.as_str(), "--json", "--expect", EXPECT, "--user", USER]);
            request.command.extend(without_file_checks());
            as_root(&mut request);
            let forbidden = session.forbidden_strings();
            let files = file_checks(subject.image, &forbidden, own);
            let (code, files) = tokio::try_join!(run(request), run(files))?;
            let required = required(lock, level);
            let extra = extra_checks(session, subject, &lock.added.checks, gpus).await?;
            let expected = ImageExpectations { required, forbidden, foreign: false, extra };
            (AgentReport::of_two(&code, &files), expected)
        }
        ImageOrigin::Claimed { lock } => {
            request.files =
                vec![text(EXPECT, for_gpus(expectation_file(lock), asked) + &speeds), agent_file()];
            request.command = words(&[AGENT, level.as_str(), "--json", "--expect", EXPECT]);
            request.command.extend(without_file_checks());
            let mut required = required(lock, level);
            required.retain(|id| CheckId::parse(id).is_none_or(|id| !id.group().looks_at_files_only()));
            let expected = ImageExpectations { required, ..ImageExpectations::default() };
            (AgentReport::of(&run(request).await?), expected)
        }
        ImageOrigin::Foreign { says } => {
            request.files = vec![text(EXPECT, for_gpus(says.clone(), asked) + &speeds), agent_file()];
            request.command = words(&[AGENT, level.as_str(), "--json", "--expect", EXPECT]);
            let expected = ImageExpectations { foreign: true, ..ImageExpectations::default() };
            (AgentReport::of(&run(request).await?), expected)
        }
    };
    let mut verdict = judge(&report.lines, &report.end, subject.image, &expected);
    if gpus.is_none() {
        verdict = verdict.without_a_gpu();
    }
    subject.name.clone_into(&mut verdict.name);
    level.as_str().clone_into(&mut verdict.level);
    verdict.checked = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let engine = session.engine.info();
    verdict.engine = Some(format!("{} {}", engine.name, engine.version));
    verdict.lock = match &subject.origin {
        ImageOrigin::Ours { lock, .. } | ImageOrigin::Claimed { lock } => Some(lock.hash()),
        ImageOrigin::Foreign { .. } => None,
    };
    verdict.sandboxed = !matches!(subject.origin, ImageOrigin::Ours { .. });
    if let ImageOrigin::Ours { lock, .. } = &subject.origin {
        verdict.not_proven = not_proven(lock, &verdict);
    }
    verdict.conditions = conditions;
    Ok(verdict)
}

/// The facts of an expectation file with other GPUs than those the image is meant for; as they are if none are asked for.
fn for_gpus(facts: String, asked: &[ComputeCapability]) -> String {
    if asked.is_empty() {
        return facts;
    }
    let is_target = |line: &&str| line.split_once('=').is_some_and(|(key, _)| key == Key::Target.as_str());
    let mut text: String =
        facts.lines().filter(|line| !is_target(line)).flat_map(|line| [line, "\n"]).collect();
    let mut targets = ExpectationText::default();
    for gpu in asked {
        targets.add(Key::Target, gpu.dotted());
    }
    text.push_str(&targets.into_string());
    text
}

/// The whole report of an earlier run under the conditions of now, if it stands.
pub(crate) fn standing_report(
    session: &Session<'_>,
    subject: &CheckTarget<'_>,
) -> Result<Option<Verdict>, CommandError> {
    let gpus = if subject.level == Level::Static { None } else { request(session, subject.gpus) };
    let Some(now) = conditions_of(session, subject, gpus.as_ref())? else { return Ok(None) };
    let reports = reports_of(&session.store, &*session.reporter, &subject.image.id)?;
    Ok(reports.made_under(&now).cloned())
}

/// The digest of the conditions of checks with these GPUs; `None`: they are not all known, or it is not an image of ours.
fn conditions_of(
    session: &Session<'_>,
    subject: &CheckTarget<'_>,
    gpus: Option<&GpuRequest>,
) -> Result<Option<String>, CommandError> {
    let ImageOrigin::Ours { lock, .. } = &subject.origin else { return Ok(None) };
    let level = if gpus.is_some() { subject.level } else { Level::Static };
    let with_source = !lock.added.checks.is_empty() && matches!(subject.project, ProjectSource::Here(_));
    let required = required(lock, level);
    conditions(session, Run { image: subject.image, lock, level, required, with_source, gpus })
}

/// The checks that a tag requires at that level.
fn required(lock: &Lock, level: Level) -> Vec<String> {
    let mut all = static_checks(lock);
    if level != Level::Static {
        all.extend(gpu_checks(lock, level != Level::Quick));
    }
    all
}

/// The project's own checks, each a command in a container of the image: as its user, without network, with a read-only root. The
/// entrypoint gives it a home in /tmp. With the project's source they run as the caller, who can read it.
async fn extra_checks(
    session: &Session<'_>,
    subject: &CheckTarget<'_>,
    checks: &[LockedCheck],
    gpus: Option<&GpuRequest>,
) -> Result<Vec<Check>, CommandError> {
    let mut all = Vec::new();
    let info = session.engine.info();
    let mounted = match subject.project {
        ProjectSource::Here(project) if !checks.is_empty() => {
            bind(session, project).map(|bind| (bind, project))
        }
        _ => None,
    };
    let is_elsewhere = matches!(subject.project, ProjectSource::Elsewhere);
    let judged = |check: &LockedCheck, code: i64, last: &str| {
        let found = Check::of_project(&check.name, code, last);
        match &mounted {
            Some(_) => found.with_mounted_project(),
            None if is_elsewhere => found.without_project(),
            None => found,
        }
    };
    for check in checks {
        let words = ["/bin/bash", "-euc", &check.command].map(str::to_owned).to_vec();
        let words = match &mounted {
            Some((_, project)) => project.code.before(words),
            None => words,
        };
        let command = std::iter::once("/opt/envforge/entrypoint".to_owned()).chain(words).collect();
        let own = limits(Level::Full, info);
        // Podman without root and Docker without root know the caller by other numbers.
        let is_plain = mounted.is_some() && !info.rootless && !info.is_podman();
        let user = User::on(info, caller_ids());
        let request = RunRequest {
            gpus: gpus.cloned(),
            shm_size: gpus.map(|_| shm_size(None)),
            report_as: Some(format!("check {}", check.name)),
            binds: mounted.iter().map(|(bind, _)| bind.clone()).collect(),
            user: is_plain.then(|| user.numbers()),
            ..RunRequest::bounded(&subject.image.id, command, own)
        };
        let outcome = session.engine.run(request, Arc::clone(&session.reporter)).await?;
        if let Some(limit) = outcome.reached {
            all.push(judged(check, outcome.code, &format!("ended: it {limit}")));
            continue;
        }
        let said = if outcome.code == 0 { &outcome.stdout } else { &outcome.stderr };
        let last = String::from_utf8_lossy(said);
        let last = last.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        all.push(judged(check, outcome.code, last));
    }
    Ok(all)
}

/// The bind of a project's folder; `None` with a note where the engine cannot have it.
fn bind(session: &Session<'_>, project: &MountedProject) -> Option<String> {
    let folder = &project.folder;
    let why = if !session.engine.info().local {
        "the engine is on another machine"
    } else if folder.as_str().contains(':') {
        "its path has a `:`"
    } else {
        return Some(format!("{folder}:{WORKSPACE}:ro"));
    };
    let text = format!("the project's checks run without its source: {why}");
    session.reporter.report(Event::Note { text });
    None
}

/// Returns the source of a project for its checks.
pub(crate) fn mounted_project(
    folder: &Utf8Path,
    request: &CodeRequest,
    lock: &Lock,
    session: &Session<'_>,
) -> Result<ProjectSource, CommandError> {
    if lock.added.checks.is_empty() {
        return Ok(ProjectSource::Unused);
    }
    let folder = folder.canonicalize_utf8()?;
    let code = code_at(&folder, request, Some(lock), &*session.reporter)?;
    Ok(match code {
        Some(code) => ProjectSource::Here(MountedProject { folder, code }),
        None => ProjectSource::Unused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_are_asked_for_replace_those_of_the_image() {
        let facts = "framework=torch\ntarget=9.0\ntarget=8.0\n".to_owned();
        assert_eq!(for_gpus(facts.clone(), &[]), facts);
        let asked = ["sm_120".parse().expect("a GPU")];
        assert_eq!(for_gpus(facts, &asked), "framework=torch\ntarget=12.0\n");
        assert_eq!(for_gpus(String::new(), &asked), "target=12.0\n", "an image from elsewhere");
    }
}
