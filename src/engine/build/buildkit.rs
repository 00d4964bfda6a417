//! Builds an image with the daemon's BuildKit.
//!
//! Opens two connections: a session that serves context and secrets, and a gRPC channel for the build and its progress.
//! Both end when the future is dropped, and the daemon's build with them. Replaces bollard's builder, which shows no
//! progress, reads secrets only from files or the environment, holds the context in memory twice and cannot use the host's
//! network.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard_buildkit_proto::moby::buildkit::v1::control_client::ControlClient;
use bollard_buildkit_proto::moby::buildkit::v1::{CacheOptions, SolveRequest, StatusRequest};
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::progress::{Progress, plain};
use super::session::BuildSession;
use super::types::ImageBuildRequest;
use crate::engine::error::EngineError;
use crate::engine::transport::classify_error::{connection_lost, step_failure};
use crate::engine::transport::daemon::Daemon;
use crate::engine::transport::upgrade::grpc;
use crate::model::request::network::Network;
use crate::report::Reporter;

/// Largest gRPC message, as in BuildKit's own client.
const MESSAGE: usize = 16 << 20;
/// The time limit of the last messages of a finished build.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Control = ControlClient<Channel>;

/// Builds an image under its scratch tag; sets `exporting` once the daemon may be writing the tag.
pub(super) async fn build_in_session(
    daemon: &Daemon,
    request: &ImageBuildRequest,
    reporter: &dyn Reporter,
    exporting: &AtomicBool,
) -> Result<(), EngineError> {
    let session = BuildSession::open(daemon, request).await?;
    let mut control = control(daemon).await?;
    let mut watcher = control.clone();
    let reference = format!("{:032x}", rand::random::<u128>());
    let solve = solve_request(request, &reference, &session.id);

    let mut progress = Progress::new(reporter);
    let solved = {
        let mut watch = std::pin::pin!(watch(&mut watcher, reference, &mut progress, exporting));
        let mut solve = std::pin::pin!(control.solve(solve));
        tokio::select! {
            solved = &mut solve => {
                let _ = tokio::time::timeout(LAST_WORDS, watch).await;
                solved
            }
            () = &mut watch => solve.await,
        }
    };
    solved.map(drop).map_err(|status| session.refusal.or(failure(&status, progress.failed_output())))
}

async fn control(daemon: &Daemon) -> Result<Control, EngineError> {
    let pipe = grpc(&daemon.dialer, "/grpc", &[]).await?;
    let mut pipe = Some(TokioIo::new(pipe));
    // The address is never resolved: the connection is open already.
    let endpoint = Endpoint::from_static("http://engine");
    let connector = tower::service_fn(move |_: http::Uri| {
        let pipe = pipe.take().ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotConnected));
        async { pipe }
    });
    let channel = endpoint.connect_with_connector(connector).await;
    let channel = channel.map_err(|error| connection_lost("opening a build", &error))?;
    Ok(Control::new(channel).max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE))
}

/// Follows the build's progress to its end. The result comes from the solve, even without progress.
async fn watch(
    control: &mut Control,
    reference: String,
    progress: &mut Progress<'_>,
    exporting: &AtomicBool,
) {
    let mut messages = match control.status(StatusRequest { r#ref: reference }).await {
        Ok(messages) => messages.into_inner(),
        Err(status) => {
            tracing::debug!(%status, "no build progress");
            return;
        }
    };
    while let Ok(Some(message)) = messages.message().await {
        progress.apply(&message);
        exporting.fetch_or(progress.exporting(), Ordering::Relaxed);
    }
}

fn solve_request(request: &ImageBuildRequest, reference: &str, session: &str) -> SolveRequest {
    let mut attributes = HashMap::from([("image-resolve-mode".to_owned(), "default".to_owned())]);
    attributes
        .extend(request.build_args.iter().map(|(key, value)| (format!("build-arg:{key}"), value.clone())));
    attributes.extend(request.labels.iter().map(|(key, value)| (format!("label:{key}"), value.clone())));
    if request.no_cache {
        attributes.insert("no-cache".to_owned(), String::new());
    }
    let network = match request.network {
        Network::Bridge => None,
        Network::Host => Some("host"),
        Network::None => Some("none"),
    };
    if let Some(network) = network {
        attributes.insert("force-network-mode".to_owned(), network.to_owned());
    }
    let host = request.network == Network::Host;
    SolveRequest {
        r#ref: reference.to_owned(),
        session: session.to_owned(),
        frontend: "dockerfile.v0".to_owned(),
        frontend_attrs: attributes,
        exporter_deprecated: "moby".to_owned(),
        exporter_attrs_deprecated: HashMap::from([("name".to_owned(), request.scratch_tag.clone())]),
        entitlements: if host { vec!["network.host".to_owned()] } else { Vec::new() },
        cache: Some(CacheOptions::default()),
        ..SolveRequest::default()
    }
}

/// Maps a build's status: a lost connection, a full disk, or a failed step.
fn failure(status: &Status, output: Vec<String>) -> EngineError {
    let during = "a build";
    // Only an error of the connection has a source.
    if let Some(source) = status.source() {
        return connection_lost(during, source);
    }
    let text = plain(status.message()).to_owned();
    if matches!(status.code(), Code::Unavailable | Code::Cancelled) || text.ends_with("context canceled") {
        return EngineError::Lost { during: during.to_owned(), cause: text };
    }
    step_failure(text, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ImageBuildRequest {
        ImageBuildRequest {
            context: Vec::new(),
            context_secret: Vec::new(),
            secrets: Vec::new(),
            build_args: [("HTTPS_PROXY".to_owned(), "p".to_owned())].into(),
            labels: [("a".to_owned(), "b".to_owned())].into(),
            network: Network::Bridge,
            no_cache: false,
            scratch_tag: "envforge-scratch:1".to_owned(),
        }
    }

    #[test]
    fn solve_request_contains_every_option() {
        let solve = solve_request(&request(), "ref", "session");
        assert_eq!(solve.frontend_attrs["build-arg:HTTPS_PROXY"], "p");
        assert_eq!(solve.frontend_attrs["label:a"], "b");
        assert_eq!(solve.exporter_attrs_deprecated["name"], "envforge-scratch:1");
        assert!(solve.entitlements.is_empty() && !solve.frontend_attrs.contains_key("no-cache"));
        assert!(!solve.frontend_attrs.contains_key("force-network-mode"));
        let host = ImageBuildRequest { network: Network::Host, no_cache: true, ..request() };
        let solve = solve_request(&host, "ref", "session");
        assert_eq!(solve.entitlements, ["network.host"]);
        assert_eq!(solve.frontend_attrs["force-network-mode"], "host");
        assert!(solve.frontend_attrs.contains_key("no-cache"));
    }

    #[test]
    fn failed_step_keeps_exit_code_and_output() {
        let text = "failed to solve with frontend dockerfile.v0: failed to build LLB: \
                    executor failed running [/bin/sh -c false]: exit code: 7";
        let error = failure(&Status::unknown(text), vec!["last".to_owned()]);
        assert_eq!(
            error.to_string(),
            "build step failed: executor failed running [/bin/sh -c false]: exit code: 7"
        );
        assert!(matches!(error, EngineError::BuildFailed { output, .. } if output == ["last"]));
    }

    #[test]
    fn full_disk_is_recognized_in_status_and_output() {
        let status = Status::unknown("failed to copy files: write /a: no space left on device");
        assert!(matches!(failure(&status, Vec::new()), EngineError::DiskFull { .. }));
        let status = Status::unknown("executor failed running [apt]: exit code: 100");
        let line = "E: You don't have enough: No space left on device".to_owned();
        assert!(matches!(failure(&status, vec![line, "after".to_owned()]), EngineError::DiskFull { .. }));
    }

    #[test]
    fn ended_connection_is_reported_as_lost() {
        let reset = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset by peer");
        let error = failure(&Status::from_error(Box::new(reset)), Vec::new());
        assert_eq!(error.to_string(), "lost connection to the engine during a build: reset by peer");
        assert!(matches!(failure(&Status::unavailable("closing"), Vec::new()), EngineError::Lost { .. }));
    }
}
