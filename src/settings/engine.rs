//! `[engine]` and Docker's variables: which engine is used.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Deserialize;

use super::environment::Environment;
use super::variables;

/// `[engine]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineConfig {
    /// Its address, as in `DOCKER_HOST`: `unix:///run/user/1000/docker.sock`, `ssh://user@host`, `tcp://host:2376`.
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
        Self {
            docker_host: variables::DOCKER_HOST.of(environment).or(config.host),
            tls_verify: variables::DOCKER_TLS_VERIFY.of(environment).is_some(),
            cert_path: variables::DOCKER_CERT_PATH.of(environment).map(Utf8PathBuf::from),
            docker_context: variables::DOCKER_CONTEXT.of(environment),
            docker_config: Some(variables::DOCKER_CONFIG.of(environment).map_or(docker, Utf8PathBuf::from)),
            runtime_dir: variables::RUNTIME_DIR.of(environment).map(Utf8PathBuf::from),
        }
    }
}
