//! Errors of registry requests, with exit codes and hints.

use camino::Utf8PathBuf;

use crate::failure::{Exit, Failure};
use crate::fetch::{FetchError, is_transient};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ReferenceError;
use crate::store::StoreError;

/// The longest wait that a busy registry is granted, seconds.
const LONGEST_WAIT: u64 = 20;

/// Why a registry request failed. Errors show registries by host, and no address with a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The image reference is invalid.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// No complete response in time.
    #[error("cannot reach registry `{registry}`")]
    Unreachable {
        /// The registry.
        registry: String,
        /// The network error.
        source: FetchError,
    },
    /// The registry denies access.
    #[error("registry `{registry}`: access denied to `{repository}` {}", login_text(login.as_deref()))]
    Unauthorized {
        /// The registry.
        registry: String,
        /// The repository.
        repository: String,
        /// The rejected login; `None` without a login.
        login: Option<String>,
        /// Why the stored login could not be read, if so.
        trouble: Option<String>,
    },
    /// The image does not exist.
    #[error("image `{reference}` not found in registry `{registry}`")]
    NotFound {
        /// The registry.
        registry: String,
        /// The image.
        reference: String,
    },
    /// The rate limit is reached.
    #[error("registry `{registry}`: rate limit reached (429){}", wait_text(*seconds))]
    Busy {
        /// The registry.
        registry: String,
        /// Seconds to wait, if the registry reports them.
        seconds: Option<u64>,
    },
    /// An unexpected status.
    #[error("registry `{registry}`: {status}{}", detail_text(detail))]
    Status {
        /// The registry.
        registry: String,
        /// `500 Internal Server Error`.
        status: String,
        /// Its message, shortened; may be empty.
        detail: String,
    },
    /// The registry has no such repository and makes none.
    #[error("repository `{repository}` not found in registry `{registry}`")]
    NoRepository {
        /// The registry.
        registry: String,
        /// The repository.
        repository: String,
    },
    /// An upload was interrupted as often as it may be.
    #[error("cannot upload `{title}` to registry `{registry}`")]
    Interrupted {
        /// The registry.
        registry: String,
        /// What was uploaded.
        title: String,
        /// The last interruption.
        source: Box<FetchError>,
    },
    /// The registry wants the upload where it must not go.
    #[error("registry `{registry}`: cannot use the location of an upload: {why}")]
    Location {
        /// The registry.
        registry: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The bytes of a blob cannot be made.
    #[error("cannot read `{title}`: {cause}")]
    Content {
        /// What it holds.
        title: String,
        /// Why.
        cause: std::io::Error,
    },
    /// A blob has other bytes than before.
    #[error("digest mismatch for `{title}`: expected `{wanted}`, made `{found}`")]
    OtherBlob {
        /// What it holds.
        title: String,
        /// Its digest of before.
        wanted: Digest,
        /// The digest of its bytes.
        found: Digest,
    },
    /// The host is not a registry, or a failing one.
    #[error("`{registry}` is not an image registry: {what}")]
    NotARegistry {
        /// The host.
        registry: String,
        /// The problem with its response.
        what: String,
    },
    /// The document does not match its digest.
    #[error(
        "digest mismatch for `{reference}` from registry `{registry}`: expected `{wanted}`, got `{found}`"
    )]
    WrongDigest {
        /// The registry.
        registry: String,
        /// The image.
        reference: String,
        /// The expected digest.
        wanted: Digest,
        /// The digest of the received document.
        found: Digest,
    },
    /// The image is not available for this processor.
    #[error("platform mismatch for image `{reference}`: expected {platform}, found {}", published.join(", "))]
    NoPlatform {
        /// The image.
        reference: String,
        /// The requested platform.
        platform: String,
        /// The available platforms.
        published: Vec<String>,
    },
    /// An unsupported kind of document.
    #[error("unsupported document {kind} of image `{reference}`")]
    Kind {
        /// The image.
        reference: String,
        /// The kind.
        kind: String,
    },
    /// No mirror and no registry has the image.
    #[error("cannot find `{reference}` in any registry{}", list_text(tried))]
    NoneOf {
        /// The image.
        reference: String,
        /// The error of each source.
        tried: Vec<(String, RegistryError)>,
    },
    /// A certificate of a registry cannot be read.
    #[error("cannot read certificate `{file}`: {cause}")]
    Certificate {
        /// The file, or the registry's directory if the file is unknown.
        file: Utf8PathBuf,
        /// Why.
        cause: String,
    },
    /// The cache failed while it took a blob.
    #[error(transparent)]
    Cache(#[from] StoreError),
    /// Docker's configuration cannot be read.
    #[error("cannot read `{file}`: {cause}")]
    DockerConfig {
        /// The file or variable.
        file: Utf8PathBuf,
        /// The reason, without any content of the file.
        cause: String,
    },
}

impl Failure for RegistryError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoPlatform { .. } => Exit::No,
            Self::Reference(_) | Self::Certificate { .. } | Self::DockerConfig { .. } => Exit::Usage,
            Self::NoneOf { tried, .. } => tried.last().map_or(Exit::Outside, |(_, error)| error.exit()),
            Self::Unreachable { .. }
            | Self::Unauthorized { .. }
            | Self::NotFound { .. }
            | Self::Busy { .. }
            | Self::Status { .. }
            | Self::NoRepository { .. }
            | Self::Interrupted { .. }
            | Self::Location { .. }
            | Self::Content { .. }
            | Self::OtherBlob { .. }
            | Self::NotARegistry { .. }
            | Self::WrongDigest { .. }
            | Self::Kind { .. } => Exit::Outside,
            Self::Cache(error) => error.exit(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Reference(_) => vec!["write an image as `name:tag`, `host/name:tag` or `name@sha256:…`".to_owned()],
            Self::Unreachable { registry, source } if source.is_of_unknown_issuer() => vec![
                format!("put the certificate authority of the registry into `/etc/docker/certs.d/{registry}/ca.crt` (also read by the engine), or set `[network] ca-bundle`"),
            ],
            Self::Unreachable { registry, .. } => vec![
                format!("check the name `{registry}` and the network settings (HTTPS_PROXY, `[network] ca-bundle`), or set a mirror: `[mirrors] images`"),
            ],
            Self::Unauthorized { registry, login, trouble, .. } => {
                let mut hints = vec![match login {
                    None => format!("log in with `docker login {registry}`, or check the name (many registries deny access to missing images)"),
                    Some(_) => format!("log in again with `docker login {registry}`, or request access to this repository"),
                }];
                hints.extend(trouble.iter().map(|trouble| format!("check the stored login: {trouble}")));
                hints
            }
            Self::NotFound { .. } => vec!["check name and tag; run `envforge lock --upgrade` if the locked digest was deleted".to_owned()],
            Self::Busy { registry, .. } => vec![
                format!("wait, log in with `docker login {registry}` for a higher limit, or set a mirror: `[mirrors] images`"),
            ],
            Self::Status { .. } => vec!["registry failure: try again later, or set a mirror: `[mirrors] images`".to_owned()],
            Self::NoRepository { repository, .. } => {
                vec![format!("check the name, or create `{repository}` in the registry first (some make none on a push)")]
            }
            Self::Interrupted { .. } => vec![
                "run the same command again: what the registry has is not sent again".to_owned(),
            ],
            Self::Location { registry, .. } => vec![
                format!("set the public address of `{registry}` in its own configuration (behind a proxy: `X-Forwarded-Proto`)"),
            ],
            Self::Content { cause, .. } => cause.hints(),
            Self::Cache(error) => error.hints(),
            Self::OtherBlob { .. } => vec!["delete `layers` in the cache directory, then build the image again".to_owned()],
            Self::NotARegistry { .. } => vec![
                "check the name, HTTPS_PROXY and `[mirrors] images` (a proxy's login page or another host responds)".to_owned(),
            ],
            Self::WrongDigest { .. } => vec![
                "use another mirror: the document was changed by the registry or in transit and was discarded".to_owned(),
            ],
            Self::NoPlatform { .. } => vec!["choose another image, or build on one of these platforms".to_owned()],
            Self::Kind { .. } => vec!["push the image again with a current engine".to_owned()],
            Self::NoneOf { tried, .. } => {
                let mut hints: Vec<String> = tried.iter().flat_map(|(_, error)| error.hints()).collect();
                hints.sort();
                hints.dedup();
                hints
            }
            Self::Certificate { .. } => vec!["replace it with a PEM certificate, or remove the file".to_owned()],
            Self::DockerConfig { .. } => vec!["fix the file, or set DOCKER_CONFIG to another directory".to_owned()],
        }
    }
}

fn login_text(login: Option<&str>) -> String {
    login.map_or_else(|| "without a login".to_owned(), |login| format!("with {login}"))
}

fn wait_text(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(", retry after {seconds} s")).unwrap_or_default()
}

fn detail_text(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

fn list_text(tried: &[(String, RegistryError)]) -> String {
    let line = |(source, error): &(String, RegistryError)| format!("\n  - {source}: {}", one_line(error));
    tried.iter().map(line).collect::<Vec<_>>().concat()
}

/// Returns an error with its causes on one line.
fn one_line(error: &RegistryError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

impl RegistryError {
    /// Returns the complete reason on one line.
    pub fn reason(&self) -> String {
        match self {
            Self::Unreachable { source: FetchError::Transfer { cause, .. }, .. } => {
                // The innermost cause is the reason; the outer ones only list layers of the client.
                format!("{self}: {}", cause.rsplit(": ").next().unwrap_or(cause))
            }
            Self::NoneOf { tried, .. } => {
                tried.iter().map(|(_, error)| error.reason()).collect::<Vec<_>>().join("; ")
            }
            error => one_line(error),
        }
    }

    /// Whether the same request may succeed later: the registry is busy, restarts, or cannot be reached for now.
    pub(super) fn is_transient(&self) -> bool {
        let may_pass = |error: &FetchError| match error {
            FetchError::Upload { cause, .. } | FetchError::Transfer { cause, .. } => {
                !cause.contains("invalid peer certificate")
            }
            _ => false,
        };
        match self {
            Self::Unreachable { source, .. } => may_pass(source),
            Self::Interrupted { source, .. } => may_pass(source),
            Self::Busy { seconds, .. } => seconds.is_none_or(|seconds| seconds <= LONGEST_WAIT),
            Self::Status { status, .. } => is_transient(status),
            _ => false,
        }
    }

    /// Seconds that the registry asks to wait.
    pub(super) fn requested_wait(&self) -> u64 {
        match self {
            Self::Busy { seconds, .. } => seconds.unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether the registry is unreachable from here: the engine may still reach it.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NoneOf { tried, .. } => tried.iter().all(|(_, error)| error.is_unreachable()),
            _ => false,
        }
    }
}
