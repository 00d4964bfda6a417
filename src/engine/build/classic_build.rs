//! Builds an image on an engine without BuildKit sessions, such as Podman: the context is sent to `/build` as an archive.
//!
//! Same Dockerfile, same content. `builder_kind` detects support of `RUN --mount` and secrets once.

use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::classic_output::PlainOutput;
use super::classic_request::{Query, send_build};
use super::classic_secrets::{PODMAN_SECRET, with_bound_secrets, with_secrets};
use super::context_tar::stream;
use super::types::ImageBuildRequest;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::info::EngineInfo;
use crate::engine::sent_file::Refusal;
use crate::engine::transport::classify_error::{refused, step_failure};
use crate::model::program_version::PODMAN_CACHED_MOUNTS;
use crate::model::request::network::Network;
use crate::report::{Event, Reporter};

/// The message for an engine without a usable builder.
const NO_MOUNTS: &str = "the engine has neither BuildKit nor `RUN --mount`; a build requires one of them";
/// The note for an engine without build secrets.
const NO_SECRETS: &str = "this engine has no build secrets: certificates and index addresses are sent with the build's \
                          context; no layer contains them, but its build cache does";

/// Builds an image under its scratch tag; sets `exporting` once the engine may be writing the tag.
pub(super) async fn build_classic(
    docker: &Docker,
    request: &ImageBuildRequest,
    reporter: &dyn Reporter,
    exporting: &AtomicBool,
) -> Result<(), EngineError> {
    let info = &docker.info;
    if !info.supports_mounts() {
        return Err(refused("a build", NO_MOUNTS));
    }
    let context = if info.supports_secrets() {
        with_secrets(request, PODMAN_SECRET)
    } else {
        if !request.secrets.is_empty() {
            reporter.report(Event::Note { text: NO_SECRETS.to_owned() });
        }
        with_bound_secrets(request)
    };
    let refusal = Refusal::default();
    let mut output = PlainOutput::new(reporter, exporting);
    let sent =
        send_build(&docker.daemon, &query(request, info), stream(&context, &refusal), &mut output).await;
    let lines = output.finish(sent.as_ref().err().map(ToString::to_string).as_deref());
    sent.map_err(|error| match error {
        EngineError::BuildFailed { text, .. } => refusal.or(step_failure(text, lines)),
        other => refusal.or(other),
    })
}

fn query(request: &ImageBuildRequest, info: &EngineInfo) -> Query {
    // Podman's option names; without its own namespace a build uses the engine's own network.
    let (network, host) = match request.network {
        Network::Bridge => ("NetworkEnabled", false),
        Network::Host => ("NetworkDefault", true),
        Network::None => ("NetworkDisabled", false),
    };
    let mut query = vec![
        ("t", request.scratch_tag.clone()),
        ("rm", "1".to_owned()),
        ("forcerm", "1".to_owned()),
        ("networkmode", network.to_owned()),
        ("nsoptions", json!([{ "Name": "network", "Host": host }]).to_string()),
        ("buildargs", json!(request.build_args).to_string()),
        ("labels", json!(request.labels).to_string()),
    ];
    if request.no_cache || !caches_mounts(info) {
        query.push(("nocache", "1".to_owned()));
    }
    if info.supports_secrets() {
        let secrets =
            request.secrets.iter().map(|secret| format!("id={0},src={PODMAN_SECRET}{0}", secret.id));
        query.push(("secrets", json!(secrets.collect::<Vec<_>>()).to_string()));
    }
    query
}

/// Returns whether the cache considers a step's mounts; an older Podman would reuse a layer of other packages.
fn caches_mounts(info: &EngineInfo) -> bool {
    info.is_podman() && PODMAN_CACHED_MOUNTS.is_met_by(&info.version) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::info::BuilderKind;

    fn podman(version: &str, secrets: bool) -> EngineInfo {
        let builds = BuilderKind::Plain { mounts: true, secrets };
        let (name, version) = ("Podman".to_owned(), version.to_owned());
        EngineInfo { name, version, builds, ..EngineInfo::sample() }
    }

    #[test]
    fn query_contains_every_option() {
        let query = query(&ImageBuildRequest::sample(&["ca"]), &podman("5.4.2", true));
        let value = |name: &str| query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        assert_eq!(value("networkmode"), Some("NetworkDefault"));
        assert_eq!(value("nsoptions"), Some(r#"[{"Host":true,"Name":"network"}]"#));
        assert_eq!(value("buildargs"), Some(r#"{"HTTPS_PROXY":"p q"}"#));
        assert_eq!(value("secrets"), Some(r#"["id=ca,src=podman-build-secret-ca"]"#));
        assert_eq!(value("nocache"), None);
    }

    #[test]
    fn query_disables_the_cache_of_an_older_podman() {
        for version in ["4.3.1", "5.3.2", "unknown"] {
            let query = query(&ImageBuildRequest::sample(&[]), &podman(version, true));
            assert!(query.contains(&("nocache", "1".to_owned())), "{version}");
        }
    }
}
