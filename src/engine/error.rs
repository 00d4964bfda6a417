//! Errors of the engine, with their exit codes and hints.

use crate::failure::{Exit, Failure};
use crate::model::diagnosis::{Diagnosis, diagnose};

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A failed connection to the engine.
    #[error("cannot connect to the container engine at `{address}`: {cause}")]
    Unreachable {
        /// The engine's address.
        address: String,
        /// The cause.
        cause: String,
    },
    /// A socket without permission for this user.
    #[error("permission denied on engine socket `{address}`")]
    NoPermission {
        /// The socket.
        address: String,
    },
    /// An unsupported engine address.
    #[error("invalid engine address `{address}`: {reason}")]
    BadAddress {
        /// The given address.
        address: String,
        /// The problem.
        reason: &'static str,
    },
    /// An unusable certificate or key of the connection.
    #[error("cannot use certificate file `{path}`: {cause}")]
    BadCertificate {
        /// The file.
        path: camino::Utf8PathBuf,
        /// The cause.
        cause: String,
    },
    /// A missing or unreadable Docker context.
    #[error("cannot use docker context `{name}`: {cause}")]
    BadContext {
        /// Its name.
        name: String,
        /// The cause.
        cause: String,
    },
    /// An engine on an architecture without envforge images.
    #[error("unsupported architecture `{machine}` of the engine at `{address}`")]
    Machine {
        /// The engine's address.
        address: String,
        /// The reported architecture.
        machine: String,
    },
    /// A secret above the engine's limit.
    #[error("secret `{id}` is too large: {size} bytes, limit {limit}")]
    SecretTooLarge {
        /// Its id.
        id: String,
        /// Its size.
        size: usize,
        /// The engine's limit.
        limit: usize,
    },
    /// A missing image.
    #[error("image `{reference}` not found in the engine")]
    NoSuchImage {
        /// The requested image.
        reference: String,
    },
    /// A failed build step.
    #[error("build step failed: {text}")]
    BuildFailed {
        /// The engine's message.
        text: String,
        /// The last lines of the step's output.
        output: Vec<String>,
    },
    /// A full disk of the engine.
    #[error("the engine's disk is full: {text}")]
    DiskFull {
        /// The engine's message.
        text: String,
    },
    /// A lost connection.
    #[error("lost connection to the engine during {during}: {cause}")]
    Lost {
        /// The request.
        during: String,
        /// The cause.
        cause: String,
    },
    /// A request refused by the engine.
    #[error("the engine refused {during}: {text}")]
    Refused {
        /// The request.
        during: String,
        /// The engine's message.
        text: String,
    },
    /// A pull or push refused by a registry.
    #[error("{during} failed: {text}")]
    Registry {
        /// The request: `the pull of …`.
        during: String,
        /// The engine's message.
        text: String,
    },
    /// More than the bound of what is read into memory.
    #[error("{what} is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// Output or files of a container.
        what: String,
        /// The bound, bytes.
        limit: u64,
    },
    /// A file that was to be sent has other bytes than those it is known by.
    #[error("`{path}` has other content than expected: SHA-256 {found}, not {wanted}")]
    OtherContent {
        /// The file.
        path: camino::Utf8PathBuf,
        /// The expected hash.
        wanted: String,
        /// The hash of its bytes.
        found: String,
    },
    /// A failed read or write of a local file.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

impl EngineError {
    /// Returns the diagnosis of the engine's message, if known.
    pub fn finding(&self) -> Option<Diagnosis> {
        match self {
            Self::Refused { text, .. } | Self::BuildFailed { text, .. } => diagnose(text),
            _ => None,
        }
    }
}

impl Failure for EngineError {
    fn exit(&self) -> Exit {
        match self {
            Self::BadAddress { .. }
            | Self::BadContext { .. }
            | Self::BadCertificate { .. }
            | Self::SecretTooLarge { .. } => Exit::Usage,
            Self::Unreachable { .. }
            | Self::NoPermission { .. }
            | Self::Machine { .. }
            | Self::NoSuchImage { .. }
            | Self::BuildFailed { .. }
            | Self::DiskFull { .. }
            | Self::Lost { .. }
            | Self::Refused { .. }
            | Self::Registry { .. }
            | Self::TooLarge { .. }
            | Self::OtherContent { .. }
            | Self::File(..) => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreachable { address, .. } if address.starts_with("unix://") => {
                "start the engine with `systemctl start docker`, or select another one with DOCKER_HOST or `docker context use`"
            }
            Self::Unreachable { address, .. } if address.starts_with("ssh://") => {
                "check that `ssh` connects without a prompt (key in the agent, known host) and that `docker` runs on that host"
            }
            Self::Unreachable { cause, .. } if cause.contains("certificate") || cause.contains("alert") => {
                "check ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH: ca.pem must sign the engine's certificate, which must contain this host name"
            }
            Self::Unreachable { .. } => {
                "check that the engine listens on that address, or select another one with DOCKER_HOST or `docker context use`"
            }
            Self::NoPermission { .. } => {
                "join the socket's group (`sudo usermod -aG docker $USER`, then log in again), or select a rootless engine with DOCKER_HOST"
            }
            Self::BadAddress { .. } => {
                "set DOCKER_HOST to `unix:///path/to.sock`, `tcp://host:port` or `ssh://user@host`"
            }
            Self::BadCertificate { .. } => {
                "set DOCKER_CERT_PATH to the directory of ca.pem, cert.pem and key.pem"
            }
            Self::BadContext { .. } => "list the contexts with `docker context ls`, or unset DOCKER_CONTEXT",
            Self::Machine { .. } => "use an engine on x86_64 or aarch64",
            Self::SecretTooLarge { .. } => "use a smaller certificate bundle or credential",
            Self::NoSuchImage { .. } => "pull or build the image first",
            Self::DiskFull { .. } => {
                "free space on the engine's disk (`docker system df` shows its usage), then run the same command again"
            }
            Self::Lost { .. } => {
                "check the engine's log (`journalctl -u docker`), then run the same command again"
            }
            Self::TooLarge { .. } => {
                "use another base image or image: this one prints or holds more than any of envforge's steps needs"
            }
            Self::Registry { text, .. } => {
                return registry_hint(text).map(str::to_owned).into_iter().collect();
            }
            Self::BuildFailed { .. } | Self::Refused { .. } => {
                return self
                    .finding()
                    .map(|finding| vec![finding.why.clone(), finding.cure.clone()])
                    .unwrap_or_default();
            }
            Self::OtherContent { .. } => {
                "run the same command again: a damaged file of the cache is fetched again"
            }
            Self::File(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

/// Returns the hint for a common registry error.
fn registry_hint(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["server gave http response to https client"]) {
        Some("add the registry to `insecure-registries` in the engine's daemon.json: it does not support TLS")
    } else if says(&["x509", "certificate"]) {
        Some(
            "copy the registry's CA to /etc/docker/certs.d/HOST/ca.crt on the engine's machine: the engine does not trust it",
        )
    } else if says(&["unauthorized", "denied", "authentication required", "no basic auth"]) {
        Some(
            "log in with `docker login HOST`, or request access to this repository from the registry's owner",
        )
    } else if says(&["toomanyrequests", "429"]) {
        Some("wait, log in for a higher rate limit, or set a mirror: `[mirrors] images`")
    } else if says(&["manifest unknown", "not found"]) {
        Some("check name and tag; if a locked digest was deleted, run `envforge lock --upgrade`")
    } else if says(&[
        "unexpected eof",
        "connection reset",
        "timeout",
        "no such host",
        "connection refused",
        "no route",
    ]) {
        Some("check the engine's proxy and network, then run the same command again")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_error_has_a_hint() {
        let table = [
            (
                "Get https://box:5000/v2/: http: server gave HTTP response to HTTPS client",
                "insecure-registries",
            ),
            ("x509: certificate signed by unknown authority", "certs.d"),
            ("unauthorized: authentication required", "docker login"),
            ("toomanyrequests: You have reached your pull rate limit", "mirror"),
            ("manifest unknown", "--upgrade"),
            ("unexpected EOF", "run the same command again"),
        ];
        for (text, hint) in table {
            let error = EngineError::Registry { during: "the pull of `a`".to_owned(), text: text.to_owned() };
            assert!(error.hints()[0].contains(hint), "{text}: {:?}", error.hints());
            assert_eq!(error.exit(), Exit::Outside);
        }
    }
}
