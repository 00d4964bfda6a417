//! The checks before the tag: the agent in a container of the fresh image, and what its configuration says.
#![expect(clippy::disallowed_methods, reason = "times the checks")]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::CommandError;
use super::session::Session;
use crate::engine::{ContainerFile, ImageInfo, Network, RunRequest};
use crate::lock::Lock;
use crate::plan::BuildPlan;
use crate::report::Event;
use crate::verdict::{Expected, Verdict, expectation_file, judge};

/// Where the agent finds what it must find, in a folder that no image uses.
const EXPECT: &str = "/tmp/envforge-expect.txt";
const USER: &str = "1000:1000";
const FORBIDDEN: &str = "/tmp/envforge-forbidden.txt";

/// Runs the static checks in the image and judges them.
pub(super) async fn check(
    session: &Session<'_>,
    lock: &Lock,
    plan: &BuildPlan,
    image: &ImageInfo,
) -> Result<Verdict, CommandError> {
    let id = "checks".to_owned();
    let text = format!("check the image: {} checks", plan.checks.len());
    session.reporter.report(Event::StepStarted { id: id.clone(), text });
    let started = Instant::now();
    let forbidden = session.forbidden();
    let file = |path: &str, text: String| ContainerFile {
        path: path.to_owned(),
        mode: 0o644,
        bytes: Bytes::from(text),
    };
    let request = RunRequest {
        image: image.id.clone(),
        command: [
            "/opt/envforge/agent",
            "static",
            "--json",
            "--expect",
            EXPECT,
            "--forbidden",
            FORBIDDEN,
            "--user",
            USER,
        ]
        .map(str::to_owned)
        .to_vec(),
        files: vec![file(EXPECT, expectation_file(lock)), file(FORBIDDEN, forbidden.join("\n"))],
        // Root sees every file; what is about the image's user runs as that user.
        user: Some("0:0".to_owned()),
        network: Network::None,
        report_as: Some(id.clone()),
        ..RunRequest::default()
    };
    let outcome = session.engine.run(request, Arc::clone(&session.reporter)).await?;
    let expected = Expected { required: plan.checks.clone(), forbidden };
    let verdict = judge(&String::from_utf8_lossy(&outcome.stdout), outcome.code, image, &expected);
    let seconds = started.elapsed().as_secs_f64();
    session.reporter.report(match verdict.failures() {
        0 => Event::StepFinished { id, cached: false, seconds },
        failed => {
            Event::StepFailed { id, text: format!("{failed} of {} checks failed", verdict.checks.len()) }
        }
    });
    Ok(verdict)
}
