//! Secrets of a classic build, sent with its context. Pure.

use super::types::ImageBuildRequest;
use crate::model::image::context::{ContextContent, ContextEntry};

/// The prefix of secrets in Podman's own client; Podman moves them out of the context before it builds.
pub(super) const PODMAN_SECRET: &str = "podman-build-secret-";
/// The directory of secrets in the context of an engine without build secrets.
const CONTEXT_SECRET: &str = ".envforge-secrets/";

/// Returns the context with the secrets as files with that prefix.
pub(super) fn with_secrets(request: &ImageBuildRequest, prefix: &str) -> Vec<ContextEntry> {
    let secrets = request.secrets.iter();
    let secrets =
        secrets.map(|secret| ContextEntry::text(&format!("{prefix}{}", secret.id), secret.bytes.clone()));
    request.context.iter().cloned().chain(secrets).collect()
}

/// Returns the context with the secrets as files, mounted from there by the same steps.
pub(super) fn with_bound_secrets(request: &ImageBuildRequest) -> Vec<ContextEntry> {
    let mut context = with_secrets(request, CONTEXT_SECRET);
    for entry in context.iter_mut().filter(|entry| entry.path == "Dockerfile") {
        if let ContextContent::Bytes(bytes) = &entry.content {
            let text = bound(&String::from_utf8_lossy(bytes), request);
            entry.content = ContextContent::Bytes(text.into());
        }
    }
    context
}

/// Returns the Dockerfile with a bind for each given secret and without the mounts of missing ones.
fn bound(dockerfile: &str, request: &ImageBuildRequest) -> String {
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

    #[test]
    fn bound_replaces_secret_mounts_with_binds() {
        let dockerfile = "RUN --mount=type=cache,id=a,target=/c \\\n    --mount=type=secret,id=ca --mount=type=secret,id=netrc \\\n    sh x";
        let text = bound(dockerfile, &ImageBuildRequest::sample(&["ca"]));
        assert_eq!(
            text,
            "RUN --mount=type=cache,id=a,target=/c \\\n    \
             --mount=type=bind,source=.envforge-secrets/ca,target=/run/secrets/ca \\\n    sh x"
        );
        let context = with_bound_secrets(&ImageBuildRequest::sample(&["ca"]));
        assert!(context.iter().any(|entry| entry.path == ".envforge-secrets/ca"));
    }
}
