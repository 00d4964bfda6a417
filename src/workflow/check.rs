//! Runs the agent's checks in a container of an image and judges what it printed.
#![expect(clippy::disallowed_methods, reason = "times the checks and stamps the report")]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use jiff::Timestamp;

use crate::agent;
use crate::engine::{
    ContainerFile, EngineError, GpuRequest, GpuSelection, ImageInfo, Network, RunRequest, shm_size,
};
use crate::model::lock::{Lock, LockedCheck};
use crate::model::request::Level;
use crate::model::verdict::required_checks::{gpu_checks, static_checks};
use crate::model::verdict::tag_policy::not_proven;
use crate::model::verdict::{Check, ImageExpectations, Verdict, expectation_file, judge};
use crate::report::Event;
use crate::workflow::error::CommandError;
use crate::workflow::gpus::request;
use crate::workflow::session::Session;

/// Where the agent of every image of ours lies.
pub(crate) const BAKED_AGENT: &str = "/opt/envforge/agent";
/// A folder that no image uses: the agent finds there what it must find, and lies there where the image has none.
const AGENT: &str = "/envforge/agent";
const EXPECT: &str = "/envforge/expect.txt";
const FORBIDDEN: &str = "/envforge/forbidden.txt";
const USER: &str = "1000:1000";

/// What the image is to us.
pub(crate) enum ImageOrigin<'a> {
    /// Built from this lock; `baked`: its own agent runs, not this program's.
    Ours { lock: &'a Lock, baked: bool },
    /// Nothing is known of it but what it says of itself, as lines the agent reads.
    Foreign { says: String },
}

/// One image to check.
pub(crate) struct CheckTarget<'a> {
    pub(crate) image: &'a ImageInfo,
    /// What was typed.
    pub(crate) name: &'a str,
    pub(crate) origin: ImageOrigin<'a>,
    pub(crate) level: Level,
    pub(crate) gpus: &'a GpuSelection,
}

/// Checks one image, on a GPU if there is one.
pub(crate) async fn check(session: &Session<'_>, subject: &CheckTarget<'_>) -> Result<Verdict, CommandError> {
    let id = format!("checks of {}", subject.name);
    let report = |event| session.reporter.report(event);
    report(Event::StepStarted { id: id.clone(), text: format!("check {}", subject.name) });
    let started = Instant::now();
    let gpus = if subject.level == Level::Static { None } else { request(session, subject.gpus) };
    let mut result = run(session, subject, gpus.as_ref(), &id).await;
    if let Some(error) = result.as_ref().err().and_then(CommandError::downcast_ref::<EngineError>)
        && *subject.gpus == GpuSelection::IfAny
        && gpus.is_some()
        && let Some(finding) = error.gpu_unavailable()
    {
        report(Event::Note { text: format!("no GPU: {}; {}", finding.what, finding.why) });
        result = run(session, subject, None, &id).await;
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
    subject: &CheckTarget<'_>,
    gpus: Option<&GpuRequest>,
    id: &str,
) -> Result<Verdict, CommandError> {
    let level = if gpus.is_some() { subject.level } else { Level::Static };
    let forbidden = session.forbidden();
    let mut request = RunRequest {
        image: subject.image.id.clone(),
        network: Network::None,
        gpus: gpus.cloned(),
        shm_size: gpus.map(|_| shm_size(None)),
        env: environment(),
        report_as: Some(id.to_owned()),
        ..RunRequest::default()
    };
    let mut words = vec![level.as_str(), "--json", "--expect", EXPECT];
    let mut expected = match &subject.origin {
        ImageOrigin::Ours { lock, baked } => {
            request.files = vec![text(EXPECT, expectation_file(lock)), text(FORBIDDEN, forbidden.join("\n"))];
            words.extend(["--forbidden", FORBIDDEN, "--user", USER]);
            if *baked {
                words.insert(0, BAKED_AGENT);
            } else {
                words.insert(0, AGENT);
                request.files.push(agent_file());
            }
            // Root sees every file; what is about the image's user runs as that user.
            request.user = Some("0:0".to_owned());
            let mut required = static_checks(lock);
            if gpus.is_some() {
                required.extend(gpu_checks(lock, level != Level::Quick));
            }
            ImageExpectations { required, forbidden, ..ImageExpectations::default() }
        }
        ImageOrigin::Foreign { says } => {
            words.insert(0, AGENT);
            request.files = vec![text(EXPECT, says.clone()), agent_file()];
            request.sandbox = true;
            ImageExpectations { foreign: true, ..ImageExpectations::default() }
        }
    };
    if level == Level::Perf
        && let Some(expect) = request.files.first_mut()
    {
        let text =
            [&*expect.bytes, crate::workflow::speed_baseline::expected_speeds(session)?.as_bytes()].concat();
        expect.bytes = Bytes::from(text);
    }
    request.command = words.into_iter().map(str::to_owned).collect();
    let outcome = session.engine.run(request, Arc::clone(&session.reporter)).await?;
    if let ImageOrigin::Ours { lock, .. } = &subject.origin {
        expected.extra = extra_checks(session, subject, &lock.added.checks, gpus).await?;
    }
    let mut verdict =
        judge(&String::from_utf8_lossy(&outcome.stdout), outcome.code, subject.image, &expected);
    subject.name.clone_into(&mut verdict.name);
    level.as_str().clone_into(&mut verdict.level);
    verdict.checked = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let ImageOrigin::Ours { lock, .. } = &subject.origin {
        verdict.not_proven = not_proven(lock, &verdict);
    }
    Ok(verdict)
}

/// The project's own checks, each a command in a container of the image: as its user, without network.
async fn extra_checks(
    session: &Session<'_>,
    subject: &CheckTarget<'_>,
    checks: &[LockedCheck],
    gpus: Option<&GpuRequest>,
) -> Result<Vec<Check>, CommandError> {
    let mut all = Vec::new();
    for check in checks {
        let request = RunRequest {
            image: subject.image.id.clone(),
            command: ["/opt/envforge/entrypoint", "/bin/bash", "-euc", &check.command]
                .map(str::to_owned)
                .to_vec(),
            network: Network::None,
            gpus: gpus.cloned(),
            shm_size: gpus.map(|_| shm_size(None)),
            report_as: Some(format!("check {}", check.name)),
            ..RunRequest::default()
        };
        let outcome = session.engine.run(request, Arc::clone(&session.reporter)).await?;
        let said = if outcome.code == 0 { &outcome.stdout } else { &outcome.stderr };
        let last = String::from_utf8_lossy(said);
        let last = last.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        all.push(Check::of_project(&check.name, outcome.code, last));
    }
    Ok(all)
}

fn text(path: &str, text: String) -> ContainerFile {
    ContainerFile { path: path.to_owned(), mode: 0o644, bytes: Bytes::from(text) }
}

fn agent_file() -> ContainerFile {
    ContainerFile { path: AGENT.to_owned(), mode: 0o755, bytes: Bytes::from_static(agent::AGENT) }
}

/// Without network NCCL's first word goes over the loopback; caches go where anybody may write.
fn environment() -> Vec<String> {
    [
        "NCCL_SOCKET_IFNAME=lo",
        "HOME=/tmp",
        "XDG_CACHE_HOME=/tmp/.cache",
        "CUDA_CACHE_PATH=/tmp/.nv",
        "TRITON_CACHE_DIR=/tmp/.triton",
        "TORCHINDUCTOR_CACHE_DIR=/tmp/.inductor",
    ]
    .map(str::to_owned)
    .to_vec()
}
