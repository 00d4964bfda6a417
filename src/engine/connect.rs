//! Connects to the daemon and asks it once what it is.

use std::time::Duration;

use bollard::models::{SystemInfo, SystemVersion};

use super::address::Address;
use super::build::serves_buildkit;
use super::dial::Dialer;
use super::fault::fault;
use super::find::{EngineSettings, chosen, usual};
use super::http::Http;
use super::registry::url_safe_login;
use super::{Builds, EngineError, EngineInfo};
use crate::versions::Machine;

/// How long the daemon may take to say what it is.
const GREETING: Duration = Duration::from_secs(30);

/// A daemon that can be spoken to. Cheap to clone; every request opens its own connection.
#[derive(Debug, Clone)]
pub(super) struct Daemon {
    pub(super) client: bollard::Docker,
    pub(super) http: Http,
    pub(super) dialer: Dialer,
}

impl Daemon {
    /// Prepares the client; nothing is sent yet.
    fn open(address: Address) -> Result<Self, EngineError> {
        let dialer = Dialer::new(address)?;
        let http = Http::new(&dialer);
        let client = http.bollard().map_err(|error| fault(&dialer.address, "connecting", error))?;
        let client = client.with_request_modifier(url_safe_login);
        Ok(Self { client, http, dialer })
    }

    /// Translates an error of the daemon.
    pub(super) fn fault(&self, during: &str, error: bollard::errors::Error) -> EngineError {
        fault(&self.dialer.address, during, error)
    }

    /// Opens the daemon the settings lead to and asks it what it is. Where nothing leads to one, the first that is there
    /// of the usual places.
    pub(super) async fn connect(settings: &EngineSettings) -> Result<(Self, EngineInfo), EngineError> {
        if let Some(address) = chosen(settings)? {
            return Self::greet(address).await;
        }
        let mut first = None;
        for address in usual(settings) {
            match Self::greet(address).await {
                Err(error @ EngineError::Unreachable { .. }) => first = first.or(Some(error)),
                answer => return answer,
            }
        }
        Err(first.expect("there is a usual place"))
    }

    async fn greet(address: Address) -> Result<(Self, EngineInfo), EngineError> {
        let daemon = Self::open(address)?;
        let greeting = async {
            let client = daemon.client.clone().negotiate_version().await?;
            let (version, info) = (client.version().await?, client.info().await?);
            Ok::<_, bollard::errors::Error>((client, version, info))
        };
        let Ok(answer) = tokio::time::timeout(GREETING, greeting).await else {
            let cause = format!("no answer within {} s", GREETING.as_secs());
            return Err(EngineError::Unreachable { address: daemon.dialer.address.to_string(), cause });
        };
        let (client, version, info) = answer.map_err(|error| daemon.fault("its greeting", error))?;
        let daemon = Self { client, ..daemon };
        let info = daemon.info(version, info).await?;
        tracing::debug!(address = %daemon.dialer.address, ?info, "engine connected");
        Ok((daemon, info))
    }

    async fn info(&self, version: SystemVersion, info: SystemInfo) -> Result<EngineInfo, EngineError> {
        let address = &self.dialer.address;
        let builds = if serves_buildkit(&self.dialer).await {
            Builds::BuildKit
        } else {
            self.probe_plain_builds().await?
        };
        let podman = version.components.iter().flatten().any(|part| part.name.contains("Podman"));
        Ok(EngineInfo {
            name: if podman { "Podman" } else { "Docker" }.to_owned(),
            version: version.version.unwrap_or_default(),
            api: self.client.client_version().to_string(),
            machine: machine(address, &info)?,
            builds,
            runtimes: runtimes(&info),
            cdi_devices: cdi_devices(&info),
            unkept_limits: if podman { Vec::new() } else { unkept_limits(&info) },
            rootless: info.security_options.iter().flatten().any(|option| option.contains("name=rootless")),
            local: address.is_local(),
            cgroup_driver: info.cgroup_driver.map(|driver| driver.to_string()),
            data_root: info.docker_root_dir,
            storage_driver: info.driver,
        })
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

/// Docker without root keeps limits by cgroups v2 alone; it takes the others without a word.
fn unkept_limits(info: &SystemInfo) -> Vec<&'static str> {
    let all =
        [("--memory", info.memory_limit), ("--cpus", info.cpu_cfs_quota), ("--pids-limit", info.pids_limit)];
    all.into_iter().filter(|(_, kept)| *kept == Some(false)).map(|(option, _)| option).collect()
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
    fn limits_that_the_engine_does_not_keep_are_known() {
        let kept = SystemInfo { memory_limit: Some(true), ..SystemInfo::default() };
        assert_eq!(unkept_limits(&kept), [""; 0], "what it does not say is not held against it");
        let none = SystemInfo { cpu_cfs_quota: Some(false), pids_limit: Some(false), ..kept };
        assert_eq!(unkept_limits(&none), ["--cpus", "--pids-limit"]);
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
