//! `[engine]` and Docker's variables: which engine is used.

use camino::Utf8PathBuf;
use serde::Deserialize;

use super::environment::{Environment, set};

/// `[engine]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineConfig {
    /// Address of the engine, as in `DOCKER_HOST`.
    pub host: Option<String>,
}

/// The selection of an engine.
#[derive(Debug, Clone, Default)]
pub struct EngineSettings {
    /// `DOCKER_HOST` or the configured address; wins over a context.
    pub docker_host: Option<String>,
    /// `DOCKER_TLS_VERIFY`: a tcp address of `DOCKER_HOST` uses TLS.
    pub tls_verify: bool,
    /// `DOCKER_CERT_PATH`: the directory of `ca.pem`, `cert.pem` and `key.pem`; `None`: the configuration directory.
    pub cert_path: Option<Utf8PathBuf>,
    /// `DOCKER_CONTEXT`; wins over the context of the configuration.
    pub docker_context: Option<String>,
    /// `DOCKER_CONFIG` or `~/.docker`.
    pub docker_config: Option<Utf8PathBuf>,
    /// `XDG_RUNTIME_DIR`, the directory of rootless engines' sockets.
    pub runtime_dir: Option<Utf8PathBuf>,
}

impl EngineSettings {
    /// Joins environment and configuration; `docker` is the user's Docker configuration directory.
    pub(super) fn of(environment: &Environment, config: EngineConfig, docker: Utf8PathBuf) -> Self {
        let set = |name| set(environment, name);
        Self {
            docker_host: set("DOCKER_HOST").or(config.host),
            tls_verify: set("DOCKER_TLS_VERIFY").is_some(),
            cert_path: set("DOCKER_CERT_PATH").map(Utf8PathBuf::from),
            docker_context: set("DOCKER_CONTEXT"),
            docker_config: Some(set("DOCKER_CONFIG").map_or(docker, Utf8PathBuf::from)),
            runtime_dir: set("XDG_RUNTIME_DIR").map(Utf8PathBuf::from),
        }
    }
}
