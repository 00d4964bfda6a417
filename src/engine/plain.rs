//! Builds an image on an engine without BuildKit sessions, as Podman's: the context is sent to `/build` as an archive.
//!
//! Same Dockerfile, same content. What `RUN --mount` and secrets are worth there is tried once, at the greeting, with a
//! build that fails before it makes anything.

use std::io;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::build::ScratchTag;
use super::connect::Daemon;
use super::context_tar::stream;
use super::fault::{refused, step_failure};
use super::plain_output::{Message, PlainOutput, plain_error};
use super::stream::Lines;
use super::{BuildRequest, Builds, EngineError, EngineInfo, ImageInfo, Network};
use crate::context::{ContextContent, ContextEntry};
use crate::report::{Event, Reporter, Silent};

/// Where Podman's own client puts secrets; Podman moves them out of the context before it builds.
const PODMAN_SECRET: &str = "podman-build-secret-";
/// Where they lie in the context of an engine that has none.
const CONTEXT_SECRET: &str = ".envforge-secrets/";
/// A step that needs a secret and then fails: there is no such program.
const PROBE: &str = "FROM scratch\nRUN --mount=type=secret,id=probe,required=true [\"/envforge-probe\"]\n";

/// What an engine says that does not build this way at all.
const NO_MOUNTS: &str = "it has neither BuildKit nor `RUN --mount`, and a build needs one of them";

type Query = Vec<(&'static str, String)>;

impl Daemon {
    /// Finds out what a plain build can do here.
    pub(super) async fn probe_plain_builds(&self) -> Result<Builds, EngineError> {
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
        let mut output = PlainOutput::new(&Silent, &exporting);
        let answer = match self.send_build(&query, stream(&context), &mut output).await {
            Err(EngineError::BuildFailed { text, .. } | EngineError::Refused { text, .. }) => text,
            Err(other) => return Err(other),
            Ok(()) => String::new(),
        };
        tracing::debug!(%answer, "tried a plain build");
        Ok(builds_of(&answer))
    }

    /// Builds an image and gives it.
    pub(super) async fn build_plain(
        &self,
        request: &BuildRequest,
        info: &EngineInfo,
        reporter: &dyn Reporter,
    ) -> Result<ImageInfo, EngineError> {
        if !info.supports_mounts() {
            return Err(refused("a build", NO_MOUNTS));
        }
        let context = if info.supports_secrets() {
            with_secrets(request, PODMAN_SECRET)
        } else {
            if !request.secrets.is_empty() {
                let text = "this engine has no build secrets: certificates and index addresses are sent with the \
                            build's context; they are in no layer, but its build cache knows them";
                reporter.report(Event::Note { text: text.to_owned() });
            }
            with_bound_secrets(request)
        };
        let mut guard = ScratchTag::new(self, &request.scratch_tag);
        let sent = {
            let mut output = PlainOutput::new(reporter, &guard.exporting);
            let sent = self.send_build(&query(request, info), stream(&context), &mut output).await;
            let lines = output.finish(sent.as_ref().err().map(ToString::to_string).as_deref());
            sent.map_err(|error| match error {
                EngineError::BuildFailed { text, .. } => step_failure(text, lines),
                other => other,
            })
        };
        // A build whose end nobody saw may still make its tag.
        guard.done = !matches!(sent, Err(EngineError::Lost { .. }));
        sent?;
        self.made_image(&request.scratch_tag).await
    }

    /// Sends a build and reads its answer to the end.
    async fn send_build(
        &self,
        query: &Query,
        context: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        output: &mut PlainOutput<'_>,
    ) -> Result<(), EngineError> {
        let during = "a build";
        let url = Url::parse_with_params("http://engine/build", query).expect("the address is a constant");
        let path = format!("/build?{}", url.query().unwrap_or_default());
        let answer = self.http.post(&path, "application/x-tar", context).await;
        let (status, mut body) = answer.map_err(|error| self.fault(during, error))?;
        let mut lines = Lines::default();
        let mut refusal = String::new();
        while let Some(chunk) = body.next().await {
            for line in lines.push(&chunk.map_err(|error| self.fault(during, error))?) {
                if status.is_success() { take(&line, output)? } else { refusal += &line }
            }
        }
        let last = lines.finish().unwrap_or_default();
        if !status.is_success() {
            refusal += &last;
            let refusal =
                serde_json::from_str::<Refusal>(&refusal).map_or(refusal, |refusal| refusal.message);
            return Err(refused(during, &refusal));
        }
        if !last.is_empty() {
            take(&last, output)?;
        }
        if output.made {
            return Ok(());
        }
        Err(EngineError::Lost { during: during.to_owned(), cause: "the engine named no image".to_owned() })
    }
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// Takes one line of an answer; an error inside it is an error, whatever the status said.
fn take(line: &str, output: &mut PlainOutput<'_>) -> Result<(), EngineError> {
    let message: Message =
        serde_json::from_str(line).map_err(|error| refused("a build", &format!("`{line}`: {error}")))?;
    output.apply(&message);
    if message.error.is_empty() {
        return Ok(());
    }
    Err(EngineError::BuildFailed { text: plain_error(&message.error), output: Vec::new() })
}

/// What the end of the probe means. Docker's old builder knows no mounts; an engine without secrets misses the one the
/// step needs; with both the step is begun, and its program is not there.
fn builds_of(answer: &str) -> Builds {
    let mounts = !answer.contains("requires BuildKit") && !answer.contains("nknown flag: mount");
    let secrets = mounts && answer.contains("runtime");
    Builds::Plain { mounts, secrets }
}

fn query(request: &BuildRequest, info: &EngineInfo) -> Query {
    // Podman's words, and where a namespace of its own is not asked for, it takes the engine's own network.
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
        let words = request.secrets.iter().map(|secret| format!("id={0},src={PODMAN_SECRET}{0}", secret.id));
        query.push(("secrets", json!(words.collect::<Vec<_>>()).to_string()));
    }
    query
}

/// Podman takes what a step mounts into account since 5.4 (buildah 1.39, pull request 5691); an older one would take a
/// layer of other packages for this one.
fn caches_mounts(info: &EngineInfo) -> bool {
    let mut numbers = info.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    info.is_podman() && version >= (5, 4)
}

/// The context with the secrets as files of that prefix.
fn with_secrets(request: &BuildRequest, prefix: &str) -> Vec<ContextEntry> {
    let secrets = request.secrets.iter();
    let secrets =
        secrets.map(|secret| ContextEntry::text(&format!("{prefix}{}", secret.id), secret.bytes.clone()));
    request.context.iter().cloned().chain(secrets).collect()
}

/// The context with the secrets as files that the same steps mount from there.
fn with_bound_secrets(request: &BuildRequest) -> Vec<ContextEntry> {
    let mut context = with_secrets(request, CONTEXT_SECRET);
    for entry in context.iter_mut().filter(|entry| entry.path == "Dockerfile") {
        if let ContextContent::Bytes(bytes) = &entry.content {
            let text = bound(&String::from_utf8_lossy(bytes), request);
            entry.content = ContextContent::Bytes(text.into());
        }
    }
    context
}

/// The Dockerfile with a bind for each secret there is, and without the mounts of those there are not.
fn bound(dockerfile: &str, request: &BuildRequest) -> String {
    const MOUNT: &str = "--mount=type=secret,id=";
    let mut parts = dockerfile.split(MOUNT);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| letter.is_whitespace()).unwrap_or(part.len());
        let (id, rest) = part.split_at(end);
        if request.secrets.iter().any(|secret| secret.id == id) {
            text.extend(["--mount=type=bind,source=", CONTEXT_SECRET, id, ",target=/run/secrets/", id, rest]);
        } else {
            text += rest.strip_prefix(' ').unwrap_or(rest);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Secret;
    use crate::versions::Machine;

    fn request(secrets: &[&str]) -> BuildRequest {
        let secret = |id: &&str| Secret { id: (*id).to_owned(), bytes: Bytes::from_static(b"s") };
        BuildRequest {
            context: vec![ContextEntry::text("Dockerfile", "FROM x")],
            secrets: secrets.iter().map(secret).collect(),
            build_args: [("HTTPS_PROXY".to_owned(), "p q".to_owned())].into(),
            labels: [].into(),
            network: Network::Host,
            no_cache: false,
            scratch_tag: "envforge-scratch:1".to_owned(),
        }
    }

    fn podman(version: &str, secrets: bool) -> EngineInfo {
        EngineInfo {
            name: "Podman".to_owned(),
            version: version.to_owned(),
            api: "1.41".to_owned(),
            machine: Machine::X86_64,
            builds: Builds::Plain { mounts: true, secrets },
            runtimes: Vec::new(),
            cdi_devices: Vec::new(),
            rootless: false,
            unkept_limits: Vec::new(),
            local: true,
            data_root: None,
            cgroup_driver: None,
            storage_driver: None,
        }
    }

    #[test]
    fn the_probe_tells_three_kinds_of_engines_apart() {
        // Docker 20.10.24, Podman 5.4.2 without and with the secret.
        let docker = "the --mount option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/";
        assert_eq!(builds_of(docker), Builds::Plain { mounts: false, secrets: false });
        let without = "RUN [\"/x\"]: resolving mountpoints for container \"ace5\": secret required but no secret with id \"probe\" found";
        assert_eq!(builds_of(without), Builds::Plain { mounts: true, secrets: false });
        let with = "RUN /envforge-probe: while running runtime: exit status 1";
        assert_eq!(builds_of(with), Builds::Plain { mounts: true, secrets: true });
    }

    #[test]
    fn the_query_says_what_was_asked() {
        let query = query(&request(&["ca"]), &podman("5.4.2", true));
        let value = |name: &str| query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        assert_eq!(value("networkmode"), Some("NetworkDefault"));
        assert_eq!(value("nsoptions"), Some(r#"[{"Host":true,"Name":"network"}]"#));
        assert_eq!(value("buildargs"), Some(r#"{"HTTPS_PROXY":"p q"}"#));
        assert_eq!(value("secrets"), Some(r#"["id=ca,src=podman-build-secret-ca"]"#));
        assert_eq!(value("nocache"), None);
    }

    #[test]
    fn an_engine_that_would_take_a_stale_layer_gets_no_cache() {
        for version in ["4.3.1", "5.3.2", "unknown"] {
            let query = query(&request(&[]), &podman(version, true));
            assert!(query.contains(&("nocache", "1".to_owned())), "{version}");
        }
    }

    #[test]
    fn secrets_become_binds_where_there_are_none() {
        let dockerfile = "RUN --mount=type=cache,id=a,target=/c \\\n    --mount=type=secret,id=ca --mount=type=secret,id=netrc \\\n    sh x";
        let text = bound(dockerfile, &request(&["ca"]));
        assert_eq!(
            text,
            "RUN --mount=type=cache,id=a,target=/c \\\n    \
             --mount=type=bind,source=.envforge-secrets/ca,target=/run/secrets/ca \\\n    sh x"
        );
        let context = with_bound_secrets(&request(&["ca"]));
        assert!(context.iter().any(|entry| entry.path == ".envforge-secrets/ca"));
    }
}
