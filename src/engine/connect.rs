//! Finds the daemon and asks it once what it is.
//!
//! Owns the address. Reads only Docker's own configuration folder, and only where the settings name it.
#![expect(clippy::disallowed_methods, reason = "reads the docker context from its file")]

use std::fmt;
use std::time::Duration;

use bollard::ClientVersion;
use bollard::models::SystemInfo;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use super::build::serves_buildkit;
use super::fault::fault;
use super::{EngineError, EngineInfo};
use crate::sha256::sha256_hex;
use crate::versions::Machine;

/// Where the daemon listens if nothing else is said.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// How long the daemon may take to say what it is.
const GREETING: Duration = Duration::from_secs(30);
/// bollard's limit for the head of an answer. An import answers only at its end, so this must not be short.
const ANSWER: u64 = 24 * 60 * 60;

/// What decides which engine is used; read from the environment by the settings, not here.
#[derive(Debug, Clone, Default)]
pub struct EngineSettings {
    /// `DOCKER_HOST`; wins over a context.
    pub docker_host: Option<String>,
    /// `DOCKER_CONTEXT`; wins over the context chosen in the configuration.
    pub docker_context: Option<String>,
    /// `DOCKER_CONFIG` or `~/.docker`.
    pub docker_config: Option<Utf8PathBuf>,
}

/// Where the daemon listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// A socket file of this machine.
    Unix(Utf8PathBuf),
    /// `host:port`, unencrypted.
    Tcp(String),
}

impl Default for Address {
    fn default() -> Self {
        Self::Unix(DEFAULT_SOCKET.into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{path}"),
            Self::Tcp(host) => write!(f, "tcp://{host}"),
        }
    }
}

impl Address {
    fn parse(text: &str) -> Result<Self, EngineError> {
        let bad = |reason| EngineError::BadAddress { address: text.to_owned(), reason };
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err(bad("the path of a unix socket must be absolute")),
            Some(("tcp" | "http", host)) => {
                let host = host.trim_end_matches('/');
                if host.contains('@') || host.contains('/') || host.is_empty() {
                    return Err(bad("a tcp address is `tcp://host:port` and nothing more"));
                }
                let port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                Ok(Self::Tcp(if port { host.to_owned() } else { format!("{host}:2375") }))
            }
            Some(("ssh", _)) => {
                Err(bad("ssh is not spoken yet; forward the socket with `ssh -L` and use unix://"))
            }
            Some(("https", _)) => Err(bad("TLS is not spoken yet")),
            _ => Err(bad("only unix:// and tcp:// are spoken")),
        }
    }
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct ContextFile {
    #[serde(rename = "Endpoints")]
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Host")]
    host: Option<String>,
}

/// The address that the settings lead to, as the docker client would find it.
pub(super) fn address(settings: &EngineSettings) -> Result<Address, EngineError> {
    if let Some(host) = settings.docker_host.as_deref().filter(|host| !host.is_empty()) {
        return Address::parse(host);
    }
    let Some(folder) = settings.docker_config.as_deref() else {
        return match settings.docker_context.as_deref() {
            None | Some("" | "default") => Ok(Address::default()),
            Some(name) => Err(bad_context(name, "no docker configuration folder is known")),
        };
    };
    let name = match settings.docker_context.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => Some(name.to_owned()),
        None => current_context(folder)?,
    };
    match name.as_deref() {
        None | Some("" | "default") => Ok(Address::default()),
        Some(name) => Address::parse(&context_host(folder, name)?),
    }
}

fn bad_context(name: &str, cause: impl fmt::Display) -> EngineError {
    EngineError::BadContext { name: name.to_owned(), cause: cause.to_string() }
}

/// An absent or unreadable configuration means the default, as it does for the docker client.
fn current_context(folder: &Utf8Path) -> Result<Option<String>, EngineError> {
    let path = folder.join("config.json");
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EngineError::File(error)),
    };
    let file: ConfigFile = serde_json::from_str(&text)
        .map_err(|error| bad_context("(current)", format!("`{path}` is not readable: {error}")))?;
    Ok(file.current_context)
}

fn context_host(folder: &Utf8Path, name: &str) -> Result<String, EngineError> {
    // Docker names a context's folder by the SHA-256 of its name.
    let path = folder.join("contexts/meta").join(sha256_hex(name.as_bytes())).join("meta.json");
    let text = fs_err::read_to_string(&path).map_err(|error| bad_context(name, error))?;
    let file: ContextFile =
        serde_json::from_str(&text).map_err(|error| bad_context(name, format!("`{path}`: {error}")))?;
    let host = file.endpoints.docker.and_then(|endpoint| endpoint.host);
    host.filter(|host| !host.is_empty())
        .ok_or_else(|| bad_context(name, format!("`{path}` names no docker endpoint")))
}

/// A daemon that can be spoken to. Cheap to clone; every request opens its own connection.
#[derive(Debug, Clone)]
pub(super) struct Daemon {
    pub(super) client: bollard::Docker,
    pub(super) address: Address,
}

impl Daemon {
    /// Prepares the client; nothing is sent yet.
    fn open(address: Address) -> Result<Self, EngineError> {
        let version: &ClientVersion = bollard::API_DEFAULT_VERSION;
        let client = match &address {
            Address::Unix(path) => bollard::Docker::connect_with_unix(path.as_str(), ANSWER, version),
            Address::Tcp(host) => bollard::Docker::connect_with_http(host, ANSWER, version),
        };
        let client = client.map_err(|error| fault(&address, "connecting", error))?;
        Ok(Self { client, address })
    }

    /// Translates an error of the daemon.
    pub(super) fn fault(&self, during: &str, error: bollard::errors::Error) -> EngineError {
        fault(&self.address, during, error)
    }

    /// Opens the daemon the settings lead to and asks it what it is.
    pub(super) async fn connect(settings: &EngineSettings) -> Result<(Self, EngineInfo), EngineError> {
        let address = address(settings)?;
        let daemon = Self::open(address.clone())?;
        let greeting = async {
            let client = daemon.client.clone().negotiate_version().await?;
            let (version, info) = (client.version().await?, client.info().await?);
            Ok::<_, bollard::errors::Error>((client, version, info))
        };
        let Ok(answer) = tokio::time::timeout(GREETING, greeting).await else {
            let cause = format!("no answer within {} s", GREETING.as_secs());
            return Err(EngineError::Unreachable { address: address.to_string(), cause });
        };
        let (client, version, info) = answer.map_err(|error| daemon.fault("its greeting", error))?;
        let buildkit = serves_buildkit(&address).await;
        let podman = version.components.iter().flatten().any(|part| part.name.contains("Podman"));
        let info = EngineInfo {
            name: if podman { "Podman" } else { "Docker" }.to_owned(),
            version: version.version.unwrap_or_default(),
            api: client.client_version().to_string(),
            machine: machine(&address, &info)?,
            buildkit,
            runtimes: runtimes(&info),
            cdi_devices: cdi_devices(&info),
            local: matches!(address, Address::Unix(_)),
            data_root: info.docker_root_dir,
        };
        tracing::debug!(address = %daemon.address, version = %info.version, api = %info.api, "engine connected");
        Ok((Self { client, address }, info))
    }
}

fn machine(address: &Address, info: &SystemInfo) -> Result<Machine, EngineError> {
    match info.architecture.as_deref() {
        Some("x86_64" | "amd64") => Ok(Machine::X86_64),
        Some("aarch64" | "arm64") => Ok(Machine::Aarch64),
        other => Err(EngineError::Machine {
            address: address.to_string(),
            machine: other.unwrap_or("an unnamed processor").to_owned(),
        }),
    }
}

fn runtimes(info: &SystemInfo) -> Vec<String> {
    let mut names: Vec<_> = info.runtimes.iter().flat_map(|runtimes| runtimes.keys().cloned()).collect();
    names.sort();
    names
}

fn cdi_devices(info: &SystemInfo) -> Vec<String> {
    let devices = info.discovered_devices.iter().flatten();
    devices
        .filter(|device| device.source.as_deref() == Some("cdi"))
        .filter_map(|device| device.id.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_docker_writes_them() {
        assert_eq!(Address::parse("unix:///run/a.sock").unwrap().to_string(), "unix:///run/a.sock");
        assert_eq!(Address::parse("tcp://10.0.0.1:2376").unwrap().to_string(), "tcp://10.0.0.1:2376");
        assert_eq!(Address::parse("tcp://box").unwrap().to_string(), "tcp://box:2375");
    }

    #[test]
    fn addresses_not_spoken_say_so_and_are_the_callers_fault() {
        for text in ["ssh://me@box", "https://box", "npipe:////x", "unix://relative", "box:2375", "tcp://"] {
            let error = Address::parse(text).unwrap_err();
            assert!(matches!(&error, EngineError::BadAddress { address, .. } if address == text), "{error}");
            assert_eq!(error.exit_code(), 2);
            assert_eq!(error.hints().len(), 1);
        }
    }

    fn folder_with(context: &str, host: &str, current: Option<&str>) -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        let meta = folder.join("contexts/meta").join(sha256_hex(context.as_bytes()));
        fs_err::create_dir_all(&meta).unwrap();
        let text =
            format!(r#"{{"Name":"{context}","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
        fs_err::write(meta.join("meta.json"), text).unwrap();
        if let Some(current) = current {
            fs_err::write(folder.join("config.json"), format!(r#"{{"currentContext":"{current}"}}"#))
                .unwrap();
        }
        (guard, folder)
    }

    #[test]
    fn the_current_context_gives_the_address_and_docker_host_wins() {
        let (_guard, folder) = folder_with("lab", "unix:///lab.sock", Some("lab"));
        let mut settings = EngineSettings { docker_config: Some(folder), ..EngineSettings::default() };
        assert_eq!(address(&settings).unwrap().to_string(), "unix:///lab.sock");
        settings.docker_context = Some("default".to_owned());
        assert_eq!(address(&settings).unwrap(), Address::default());
        settings.docker_host = Some("tcp://box:1".to_owned());
        assert_eq!(address(&settings).unwrap().to_string(), "tcp://box:1");
    }

    #[test]
    fn a_context_that_is_not_there_is_named() {
        let (_guard, folder) = folder_with("lab", "unix:///lab.sock", None);
        let settings = EngineSettings {
            docker_config: Some(folder),
            docker_context: Some("other".to_owned()),
            ..EngineSettings::default()
        };
        let error = address(&settings).unwrap_err();
        assert!(matches!(&error, EngineError::BadContext { name, .. } if name == "other"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn without_any_configuration_the_default_socket_is_used() {
        assert_eq!(address(&EngineSettings::default()).unwrap(), Address::default());
    }

    #[tokio::test]
    async fn a_socket_that_is_not_there_is_unreachable() {
        let settings = EngineSettings {
            docker_host: Some("unix:///nonexistent/d.sock".to_owned()),
            ..EngineSettings::default()
        };
        let error = Daemon::connect(&settings).await.unwrap_err();
        assert!(matches!(&error, EngineError::Unreachable { .. }), "{error}");
        assert_eq!(error.exit_code(), 3);
    }
}
