//! Builds an image with the daemon's BuildKit.
//!
//! Two connections of ours: a session that serves context and secrets, and a gRPC channel that carries the build and
//! its progress. Both end when the future is dropped, and with them the build in the daemon. bollard's own builder is
//! not used: it shows no progress, takes secrets from files or the environment only, keeps the context in memory twice
//! and cannot ask for the host's network.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard_buildkit_proto::moby::buildkit::v1::control_client::ControlClient;
use bollard_buildkit_proto::moby::buildkit::v1::{CacheOptions, SolveRequest, StatusRequest};
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::connect::Daemon;
use super::dial::Dialer;
use super::fault::{lost, step_failure};
use super::progress::{Progress, plain};
use super::session::Session;
use super::upgrade::grpc;
use super::{BuildRequest, EngineError, ImageInfo, Network};
use crate::report::Reporter;

/// Largest gRPC message, as BuildKit's own client has it.
const MESSAGE: usize = 16 << 20;
/// How long the last messages of a finished build are waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Control = ControlClient<Channel>;

impl Daemon {
    /// Builds an image and gives it.
    pub(super) async fn build(
        &self,
        request: &BuildRequest,
        reporter: &dyn Reporter,
    ) -> Result<ImageInfo, EngineError> {
        // First, so that it goes last: connections end before the tag is looked for.
        let mut guard = ScratchTag::new(self, &request.scratch_tag);
        let session = Session::open(self, request).await?;
        let mut control = self.control().await?;
        let mut watcher = control.clone();
        let reference = format!("{:032x}", rand::random::<u128>());
        let solve = solve_request(request, &reference, &session.id);

        let mut progress = Progress::new(reporter);
        let solved = {
            let mut watch = std::pin::pin!(watch(&mut watcher, reference, &mut progress, &guard.exporting));
            let mut solve = std::pin::pin!(control.solve(solve));
            tokio::select! {
                solved = &mut solve => {
                    let _ = tokio::time::timeout(LAST_WORDS, watch).await;
                    solved
                }
                () = &mut watch => solve.await,
            }
        };
        // From here on nothing is under way: a refused build made no tag, and a good one's tag is the caller's.
        guard.done = true;
        match solved {
            Ok(_) => self.made_image(&request.scratch_tag).await,
            Err(status) => Err(failure(&status, progress.failed_output())),
        }
    }

    async fn control(&self) -> Result<Control, EngineError> {
        let pipe = grpc(&self.dialer, "/grpc", &[]).await?;
        let mut pipe = Some(TokioIo::new(pipe));
        // The address is never looked up: the connection is there already.
        let endpoint = Endpoint::from_static("http://engine");
        let connector = tower::service_fn(move |_: http::Uri| {
            let pipe = pipe.take().ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotConnected));
            async { pipe }
        });
        let channel = endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| lost("opening a build", &error))?;
        Ok(Control::new(channel).max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE))
    }
}

/// Follows the build's progress to its end. Without progress the build goes on: its result comes from the solve.
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

fn solve_request(request: &BuildRequest, reference: &str, session: &str) -> SolveRequest {
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

/// What a build's end means: a lost daemon, a full disk, or a step that failed.
fn failure(status: &Status, output: Vec<String>) -> EngineError {
    let during = "a build";
    // What the daemon itself said has no source; what the connection said has one.
    if let Some(source) = status.source() {
        return lost(during, source);
    }
    let text = plain(status.message()).to_owned();
    if matches!(status.code(), Code::Unavailable | Code::Cancelled) || text.ends_with("context canceled") {
        return EngineError::Lost { during: during.to_owned(), cause: text };
    }
    step_failure(text, output)
}

/// Sees to it that a build that was dropped leaves no tag, also where the drop came while the image was written.
pub(super) struct ScratchTag {
    daemon: Daemon,
    tag: String,
    pub(super) exporting: AtomicBool,
    pub(super) done: bool,
}

impl ScratchTag {
    pub(super) fn new(daemon: &Daemon, tag: &str) -> Self {
        Self { daemon: daemon.clone(), tag: tag.to_owned(), exporting: AtomicBool::new(false), done: false }
    }
}

impl Drop for ScratchTag {
    fn drop(&mut self) {
        if self.done || !self.exporting.load(Ordering::Relaxed) {
            return;
        }
        let (daemon, tag) = (self.daemon.clone(), self.tag.clone());
        super::docker::finish_on_a_thread(async move {
            // The daemon may still be writing the tag when it learns of the end.
            for _ in 0..15 {
                match daemon.image(&tag).await {
                    Ok(Some(_)) => {
                        if let Err(error) = daemon.remove_image(&tag).await {
                            tracing::warn!(%tag, %error, "tag of a dropped build could not be removed");
                        }
                        return;
                    }
                    Ok(None) => tokio::time::sleep(Duration::from_millis(200)).await,
                    Err(_) => return,
                }
            }
        });
    }
}

/// True if the daemon serves BuildKit over its API.
pub(super) async fn serves_buildkit(dialer: &Dialer) -> bool {
    grpc(dialer, "/grpc", &[]).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> BuildRequest {
        BuildRequest {
            context: Vec::new(),
            secrets: Vec::new(),
            build_args: [("HTTPS_PROXY".to_owned(), "p".to_owned())].into(),
            labels: [("a".to_owned(), "b".to_owned())].into(),
            network: Network::Bridge,
            no_cache: false,
            scratch_tag: "envforge-scratch:1".to_owned(),
        }
    }

    #[test]
    fn the_request_says_what_was_asked() {
        let solve = solve_request(&request(), "ref", "session");
        assert_eq!(solve.frontend_attrs["build-arg:HTTPS_PROXY"], "p");
        assert_eq!(solve.frontend_attrs["label:a"], "b");
        assert_eq!(solve.exporter_attrs_deprecated["name"], "envforge-scratch:1");
        assert!(solve.entitlements.is_empty() && !solve.frontend_attrs.contains_key("no-cache"));
        assert!(!solve.frontend_attrs.contains_key("force-network-mode"));
        let host = BuildRequest { network: Network::Host, no_cache: true, ..request() };
        let solve = solve_request(&host, "ref", "session");
        assert_eq!(solve.entitlements, ["network.host"]);
        assert_eq!(solve.frontend_attrs["force-network-mode"], "host");
        assert!(solve.frontend_attrs.contains_key("no-cache"));
    }

    #[test]
    fn a_failed_step_keeps_the_exit_code_and_its_output() {
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
    fn a_full_disk_shows_in_the_status_or_in_the_output() {
        let status = Status::unknown("failed to copy files: write /a: no space left on device");
        assert!(matches!(failure(&status, Vec::new()), EngineError::DiskFull { .. }));
        let status = Status::unknown("executor failed running [apt]: exit code: 100");
        let line = "E: You don't have enough: No space left on device".to_owned();
        assert!(matches!(failure(&status, vec![line, "after".to_owned()]), EngineError::DiskFull { .. }));
    }

    #[test]
    fn a_connection_that_ends_is_a_loss() {
        let reset = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset by peer");
        let error = failure(&Status::from_error(Box::new(reset)), Vec::new());
        assert_eq!(error.to_string(), "the engine went away during a build: reset by peer");
        assert!(matches!(failure(&Status::unavailable("closing"), Vec::new()), EngineError::Lost { .. }));
    }
}
