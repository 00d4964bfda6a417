//! The builder of an engine, detected once on connect.

use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::classic_output::PlainOutput;
use super::classic_request::send_build;
use super::classic_secrets::PODMAN_SECRET;
use super::context_tar::stream;
use crate::engine::error::EngineError;
use crate::engine::info::BuilderKind;
use crate::engine::sent_file::Refusal;
use crate::engine::transport::daemon::Daemon;
use crate::engine::transport::upgrade::grpc;
use crate::model::image::context::ContextEntry;
use crate::report::NullReporter;

/// A step that requires a secret and then fails: its program does not exist.
const PROBE: &str = "FROM scratch\nRUN --mount=type=secret,id=probe,required=true [\"/envforge-probe\"]\n";

/// Returns the daemon's builder.
pub(in crate::engine) async fn builder_kind(daemon: &Daemon) -> Result<BuilderKind, EngineError> {
    if grpc(&daemon.dialer, "/grpc", &[]).await.is_ok() {
        return Ok(BuilderKind::BuildKit);
    }
    let context = [
        ContextEntry::text("Dockerfile", PROBE),
        ContextEntry::text(&format!("{PODMAN_SECRET}probe"), "probe"),
    ];
    let query = vec![
        ("rm", "1".to_owned()),
        ("forcerm", "1".to_owned()),
        ("secrets", json!([format!("id=probe,src={PODMAN_SECRET}probe")]).to_string()),
    ];
    let exporting = AtomicBool::new(false);
    let mut output = PlainOutput::new(&NullReporter, &exporting);
    let answer = match send_build(daemon, &query, stream(&context, &Refusal::default()), &mut output).await {
        Err(EngineError::BuildFailed { text, .. } | EngineError::Refused { text, .. }) => text,
        Err(other) => return Err(other),
        Ok(()) => String::new(),
    };
    tracing::debug!(%answer, "tried a classic build");
    Ok(builds_of(&answer))
}

/// Interprets the failure of the probe. Docker's old builder has no mounts; an engine without secrets misses the required
/// one; with both the step starts, and its program is missing.
fn builds_of(answer: &str) -> BuilderKind {
    let mounts = !answer.contains("requires BuildKit") && !answer.contains("nknown flag: mount");
    let secrets = mounts && answer.contains("runtime");
    BuilderKind::Plain { mounts, secrets }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_distinguishes_three_kinds_of_engines() {
        // Docker 20.10.24, Podman 5.4.2 without and with the secret.
        let docker = "the --mount option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/";
        assert_eq!(builds_of(docker), BuilderKind::Plain { mounts: false, secrets: false });
        let without = "RUN [\"/x\"]: resolving mountpoints for container \"ace5\": secret required but no secret with id \"probe\" found";
        assert_eq!(builds_of(without), BuilderKind::Plain { mounts: true, secrets: false });
        let with = "RUN /envforge-probe: while running runtime: exit status 1";
        assert_eq!(builds_of(with), BuilderKind::Plain { mounts: true, secrets: true });
    }
}
