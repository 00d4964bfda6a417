//! Why the engine did not do what was asked, with what to do about it.

/// Why the engine did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No engine answered.
    #[error("no container engine answers at `{address}`: {cause}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What the connection said.
        cause: String,
    },
    /// The socket is there but closed to this user.
    #[error("no permission on the engine's socket `{address}`")]
    NoPermission {
        /// The socket.
        address: String,
    },
    /// The address has a form that is not spoken.
    #[error("the engine address `{address}` cannot be used: {reason}")]
    BadAddress {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A certificate or key for the connection cannot be used.
    #[error("the certificate file `{path}` cannot be used: {cause}")]
    BadCertificate {
        /// The file.
        path: camino::Utf8PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A Docker context was named that is not there or cannot be read.
    #[error("no usable docker context `{name}`: {cause}")]
    BadContext {
        /// Its name.
        name: String,
        /// What went wrong.
        cause: String,
    },
    /// The engine works on a processor that envforge has no images for.
    #[error("the engine at `{address}` runs on `{machine}`, which is not supported")]
    Machine {
        /// Where it is.
        address: String,
        /// What it said.
        machine: String,
    },
    /// A secret is larger than the engine takes.
    #[error("secret `{id}` has {size} bytes; the engine takes {limit}")]
    SecretTooLarge {
        /// Its id.
        id: String,
        /// Its size.
        size: usize,
        /// The most the engine takes.
        limit: usize,
    },
    /// The image is not there.
    #[error("the engine has no image `{reference}`")]
    NoSuchImage {
        /// What was asked for.
        reference: String,
    },
    /// A build step failed.
    #[error("build step failed: {text}")]
    BuildFailed {
        /// The engine's words.
        text: String,
        /// The last lines the step printed.
        output: Vec<String>,
    },
    /// The disk of the engine is full.
    #[error("the engine's disk is full: {text}")]
    DiskFull {
        /// The engine's words.
        text: String,
    },
    /// The connection ended in the middle.
    #[error("the engine went away during {during}: {cause}")]
    Lost {
        /// What was going on.
        during: String,
        /// What the connection said.
        cause: String,
    },
    /// The engine answered with an error.
    #[error("the engine refused {during}: {text}")]
    Refused {
        /// What was asked.
        during: String,
        /// The engine's words.
        text: String,
    },
    /// A registry did not let the engine pull or push.
    #[error("{during} failed: {text}")]
    Registry {
        /// What was asked: `the pull of …`.
        during: String,
        /// The engine's words.
        text: String,
    },
    /// A local file could not be read or written.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

impl EngineError {
    /// What the user can do about it.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreachable { address, .. } if address.starts_with("unix://") => {
                "start it with `systemctl start docker`, or name another with DOCKER_HOST or `docker context use`"
            }
            Self::Unreachable { address, .. } if address.starts_with("ssh://") => {
                "check that `ssh` gets there without a question (key in the agent, host known) and that `docker` runs there"
            }
            Self::Unreachable { cause, .. } if cause.contains("certificate") || cause.contains("alert") => {
                "check ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH: ca.pem must have signed the engine's certificate, which must name this host"
            }
            Self::Unreachable { .. } => {
                "check that the engine listens there, or name another with DOCKER_HOST or `docker context use`"
            }
            Self::NoPermission { .. } => {
                "join the group of the socket (`sudo usermod -aG docker $USER`, then log in again), or use a rootless engine through DOCKER_HOST"
            }
            Self::BadAddress { .. } => {
                "give DOCKER_HOST as `unix:///path/to.sock`, `tcp://host:port` or `ssh://user@host`"
            }
            Self::BadCertificate { .. } => {
                "name the folder that holds ca.pem, cert.pem and key.pem with DOCKER_CERT_PATH"
            }
            Self::BadContext { .. } => "list the contexts with `docker context ls`, or unset DOCKER_CONTEXT",
            Self::Machine { .. } => "use an engine on x86_64 or aarch64",
            Self::SecretTooLarge { .. } => "give a smaller certificate bundle or credential",
            Self::NoSuchImage { .. } => "pull or build it first",
            Self::DiskFull { .. } => {
                "free space on the engine's disk (`docker system df` shows what takes it), then run the same command again"
            }
            Self::Lost { .. } => {
                "see the engine's log (`journalctl -u docker`), then run the same command again"
            }
            Self::Registry { text, .. } => {
                return registry_hint(text).map(str::to_owned).into_iter().collect();
            }
            Self::BuildFailed { .. } | Self::Refused { .. } => {
                return self
                    .finding()
                    .map(|finding| vec![finding.why.to_owned(), finding.cure.to_owned()])
                    .unwrap_or_default();
            }
            Self::File(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }

    /// The program's exit code: 2 for a wrong address, context, certificate or secret, 3 for all that failed outside.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BadAddress { .. }
            | Self::BadContext { .. }
            | Self::BadCertificate { .. }
            | Self::SecretTooLarge { .. } => 2,
            _ => 3,
        }
    }
}

/// What helps against the engine's commonest words about a registry.
fn registry_hint(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["server gave http response to https client"]) {
        Some("that registry speaks no TLS: name it in `insecure-registries` of the engine's daemon.json")
    } else if says(&["x509", "certificate"]) {
        Some(
            "the engine does not trust that registry: put its CA into /etc/docker/certs.d/HOST/ca.crt on the engine's machine",
        )
    } else if says(&["unauthorized", "denied", "authentication required", "no basic auth"]) {
        Some("log in with `docker login HOST`, or ask the registry's owner for the right to this repository")
    } else if says(&["toomanyrequests", "429"]) {
        Some(
            "the registry limits requests: wait, log in for a higher limit, or name a mirror: `[mirrors] images`",
        )
    } else if says(&["manifest unknown", "not found"]) {
        Some("check name and tag; a locked digest that was deleted needs `envforge lock --upgrade`")
    } else if says(&[
        "unexpected eof",
        "connection reset",
        "timeout",
        "no such host",
        "connection refused",
        "no route",
    ]) {
        Some(
            "the engine's way to the registry is broken: check its proxy and network, then run the same command again",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_words_about_a_registry_lead_to_what_helps() {
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
            assert_eq!(error.exit_code(), 3);
        }
    }
}
