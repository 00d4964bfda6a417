//! Why a registry did not give what was asked, and what to do about it.

use camino::Utf8PathBuf;

use super::digest::Digest;
use super::reference::ReferenceError;
use crate::fetch::FetchError;

/// Why a registry did not give what was asked. Registries are named by host; no address with a query is repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name cannot be read.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// Nothing answered, or not in time, or the answer was cut.
    #[error("registry `{registry}` cannot be reached")]
    Unreachable {
        /// The registry.
        registry: String,
        /// What the network said.
        source: FetchError,
    },
    /// The registry does not let us in.
    #[error("registry `{registry}` refuses access to `{repository}` {}", login_text(login.as_deref()))]
    Unauthorized {
        /// The registry.
        registry: String,
        /// The repository.
        repository: String,
        /// Whose login was refused; `None`: none was known.
        login: Option<String>,
        /// Why no login was known, if something failed on the way to one.
        trouble: Option<String>,
    },
    /// There is no such image.
    #[error("registry `{registry}` has no image `{reference}`")]
    NotFound {
        /// The registry.
        registry: String,
        /// The image.
        reference: String,
    },
    /// The registry wants fewer requests.
    #[error("registry `{registry}` refuses more requests for now (429){}", wait_text(*seconds))]
    Busy {
        /// The registry.
        registry: String,
        /// After how many seconds it will answer again, if it said so.
        seconds: Option<u64>,
    },
    /// The registry answered something unexpected.
    #[error("registry `{registry}` answered {status}{}", detail_text(detail))]
    Status {
        /// The registry.
        registry: String,
        /// `500 Internal Server Error`.
        status: String,
        /// Its words, shortened; may be empty.
        detail: String,
    },
    /// What answers is something else than a registry, or a registry that is out of order.
    #[error("`{registry}` does not answer like an image registry: {what}")]
    NotARegistry {
        /// The host.
        registry: String,
        /// What it answered.
        what: String,
    },
    /// The document is not the one its digest promises.
    #[error("registry `{registry}` sent `{found}` where `{wanted}` was promised for `{reference}`")]
    WrongDigest {
        /// The registry.
        registry: String,
        /// The image.
        reference: String,
        /// The promised digest.
        wanted: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// The image exists, but not for this processor.
    #[error("image `{reference}` is not published for {platform}, only for {}", published.join(", "))]
    NoPlatform {
        /// The image.
        reference: String,
        /// The wanted platform.
        platform: String,
        /// The platforms there are.
        published: Vec<String>,
    },
    /// A kind of document that is not read.
    #[error("image `{reference}` is stored as {kind}, which is not read")]
    Kind {
        /// The image.
        reference: String,
        /// The kind.
        kind: String,
    },
    /// Neither a mirror nor the registry itself has it.
    #[error("no registry gives `{reference}`{}", list_text(tried))]
    NoneOf {
        /// The image.
        reference: String,
        /// What each of them said.
        tried: Vec<(String, RegistryError)>,
    },
    /// A certificate kept for a registry cannot be used.
    #[error("`{file}` cannot be used as a certificate: {cause}")]
    Certificate {
        /// The file, or the registry's folder if it is not known which.
        file: Utf8PathBuf,
        /// Why.
        cause: String,
    },
    /// Docker's configuration cannot be read.
    #[error("`{file}` cannot be used: {cause}")]
    DockerConfig {
        /// The file or variable.
        file: Utf8PathBuf,
        /// Why; never repeats the file.
        cause: String,
    },
}

fn login_text(login: Option<&str>) -> String {
    login.map_or_else(|| "without a login".to_owned(), |login| format!("with {login}"))
}

fn wait_text(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(" and answers again in {seconds} s")).unwrap_or_default()
}

fn detail_text(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

fn list_text(tried: &[(String, RegistryError)]) -> String {
    let line = |(source, error): &(String, RegistryError)| format!("\n  - {source}: {}", one_line(error));
    tried.iter().map(line).collect::<Vec<_>>().concat()
}

/// An error with its causes, for a line of a list.
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
    /// The whole reason on one line, for a note.
    pub fn reason(&self) -> String {
        match self {
            Self::Unreachable { source: FetchError::Transfer { cause, .. }, .. } => {
                // The innermost cause says what happened; the outer ones only name layers of the client.
                format!("{self}: {}", cause.rsplit(": ").next().unwrap_or(cause))
            }
            Self::NoneOf { tried, .. } => {
                tried.iter().map(|(_, error)| error.reason()).collect::<Vec<_>>().join("; ")
            }
            error => one_line(error),
        }
    }

    /// True if the registry could not be asked: another one who asks may have more luck.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NoneOf { tried, .. } => tried.iter().all(|(_, error)| error.is_unreachable()),
            _ => false,
        }
    }

    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Reference(_) => vec!["an image is `name:tag`, `host/name:tag` or `name@sha256:…`".to_owned()],
            Self::Unreachable { registry, source } if source.is_of_unknown_issuer() => vec![
                format!("its certificate is not trusted here: put the authority that signed it into `/etc/docker/certs.d/{registry}/ca.crt`, where the engine looks too, or name a bundle: `[network] ca-bundle`"),
            ],
            Self::Unreachable { registry, .. } => vec![
                format!("check that `{registry}` is right and can be reached from here (HTTPS_PROXY, `[network] ca-bundle`), or name a mirror: `[mirrors] images`"),
            ],
            Self::Unauthorized { registry, login, trouble, .. } => {
                let mut hints = vec![match login {
                    None => format!("log in with `docker login {registry}`, or check the name: many registries answer so for what they do not have"),
                    Some(_) => format!("log in anew with `docker login {registry}`, or ask its owner for the right to this repository"),
                }];
                hints.extend(trouble.iter().map(|trouble| format!("a login could not be read: {trouble}")));
                hints
            }
            Self::NotFound { .. } => vec!["check name and tag; a locked digest that was deleted needs `envforge lock --upgrade`".to_owned()],
            Self::Busy { registry, .. } => vec![
                format!("wait, log in with `docker login {registry}` for a higher limit, or name a mirror: `[mirrors] images`"),
            ],
            Self::Status { .. } => vec!["the registry is out of order: run it again later, or name a mirror: `[mirrors] images`".to_owned()],
            Self::NotARegistry { .. } => vec![
                "a proxy's login page or a wrong host answers so: check the name, HTTPS_PROXY and `[mirrors] images`".to_owned(),
            ],
            Self::WrongDigest { .. } => vec![
                "the registry or something on the way changed the document: use another mirror; nothing of it was used".to_owned(),
            ],
            Self::NoPlatform { .. } => vec!["choose another image, or build on a machine of one of those platforms".to_owned()],
            Self::Kind { .. } => vec!["push it again with a present engine".to_owned()],
            Self::NoneOf { tried, .. } => {
                let mut hints: Vec<String> = tried.iter().flat_map(|(_, error)| error.hints()).collect();
                hints.sort();
                hints.dedup();
                hints
            }
            Self::Certificate { .. } => vec!["put a certificate in PEM form there, or remove the file".to_owned()],
            Self::DockerConfig { .. } => vec!["mend the file, or name another folder with DOCKER_CONFIG".to_owned()],
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoPlatform { .. } => 1,
            Self::Reference(_) | Self::Certificate { .. } | Self::DockerConfig { .. } => 2,
            Self::NoneOf { tried, .. } => tried.last().map_or(3, |(_, error)| error.exit_code()),
            _ => 3,
        }
    }
}
