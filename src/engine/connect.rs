//! Connects to the daemon and reads its features once.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::{SystemInfo, SystemVersion};

use crate::engine::build::builder_kind::builder_kind;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::info::EngineInfo;
use crate::engine::orphans::remove_orphans;
use crate::engine::transport::address::Address;
use crate::engine::transport::daemon::Daemon;
use crate::engine::transport::discovery::{chosen, usual};
use crate::model::versions::Machine;
use crate::settings::EngineSettings;

/// The time limit of the first answer.
const GREETING: Duration = Duration::from_secs(30);

impl Docker {
    /// Finds the daemon of the settings, reads its features, and removes orphans of killed runs. Without settings,
    /// connects to the first usual address with an engine.
    pub async fn connect(settings: &EngineSettings) -> Result<Self, EngineError> {
        let docker = find(settings).await?;
        if let Err(error) = remove_orphans(&docker).await {
            // The next run tries again.
            tracing::warn!(%error, "cannot remove the containers and images of a killed run");
        }
        Ok(docker)
    }
}

async fn find(settings: &EngineSettings) -> Result<Docker, EngineError> {
    if let Some(address) = chosen(settings)? {
        return greet(address).await;
    }
    let mut first = None;
    for address in usual(settings) {
        match greet(address).await {
            Err(error @ EngineError::Unreachable { .. }) => first = first.or(Some(error)),
            answer => return answer,
        }
    }
    Err(first.expect("there is a usual address"))
}

async fn greet(address: Address) -> Result<Docker, EngineError> {
    let daemon = Daemon::open(address)?;
    let name = daemon.dialer.address.to_string();
    let greeting = async {
        let refused = |daemon: &Daemon, error| daemon.fault("the first request", error);
        let version = daemon.client.version().await.map_err(|error| refused(&daemon, error))?;
        let daemon = daemon.negotiated(version.api_version.as_deref())?;
        let info = daemon.client.info().await.map_err(|error| refused(&daemon, error))?;
        Ok::<_, EngineError>((daemon, version, info))
    };
    let Ok(answer) = tokio::time::timeout(GREETING, greeting).await else {
        let cause = format!("no response within {} s", GREETING.as_secs());
        return Err(EngineError::Unreachable { address: name, cause });
    };
    let (daemon, version, info) = answer?;
    let info = features(&daemon, version, info).await?;
    tracing::debug!("connected to {} at {}", info.summary(), daemon.dialer.address);
    Ok(Docker { daemon, info: Arc::new(info) })
}

async fn features(
    daemon: &Daemon,
    version: SystemVersion,
    info: SystemInfo,
) -> Result<EngineInfo, EngineError> {
    let address = &daemon.dialer.address;
    let podman = version.components.iter().flatten().any(|part| part.name.contains("Podman"));
    Ok(EngineInfo {
        name: if podman { "Podman" } else { "Docker" }.to_owned(),
        version: version.version.unwrap_or_default(),
        id: info.id.clone(),
        api: daemon.client.client_version().to_string(),
        machine: machine(address, &info)?,
        builds: builder_kind(daemon).await?,
        runtimes: runtimes(&info),
        cdi_devices: cdi_devices(&info),
        unkept_limits: if podman { Vec::new() } else { unkept_limits(&info) },
        keeps_blobs: keeps_blobs(&info),
        rootless: info.security_options.iter().flatten().any(|option| option.contains("name=rootless")),
        memory: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes > 0),
        local: address.is_local(),
        host: info.name,
        kernel: info.kernel_version,
        cgroup_driver: info.cgroup_driver.map(|driver| driver.to_string()),
        data_root: info.docker_root_dir,
        storage_driver: info.driver,
    })
}

fn machine(address: &Address, info: &SystemInfo) -> Result<Machine, EngineError> {
    match info.architecture.as_deref() {
        Some("x86_64" | "amd64") => Ok(Machine::X86_64),
        Some("aarch64" | "arm64") => Ok(Machine::Aarch64),
        other => Err(EngineError::Machine {
            address: address.to_string(),
            machine: other.unwrap_or("an unknown architecture").to_owned(),
        }),
    }
}

/// Whether the image store is containerd's: Docker then lists its snapshotter as the driver's type.
fn keeps_blobs(info: &SystemInfo) -> bool {
    let status = info.driver_status.iter().flatten();
    status.flatten().any(|value| value.starts_with("io.containerd.snapshotter"))
}

fn runtimes(info: &SystemInfo) -> Vec<String> {
    let mut names: Vec<_> = info.runtimes.iter().flat_map(|runtimes| runtimes.keys().cloned()).collect();
    names.sort();
    names
}

/// Returns the limits that the engine accepts but does not enforce: rootless Docker enforces limits of cgroups v2 only.
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
    use crate::failure::{Exit, Failure as _};

    #[test]
    fn unkept_limits_lists_unenforced_options() {
        let kept = SystemInfo { memory_limit: Some(true), ..SystemInfo::default() };
        assert_eq!(unkept_limits(&kept), [""; 0], "an unreported limit counts as enforced");
        let none = SystemInfo { cpu_cfs_quota: Some(false), pids_limit: Some(false), ..kept };
        assert_eq!(unkept_limits(&none), ["--cpus", "--pids-limit"]);
    }

    #[tokio::test]
    async fn missing_socket_is_unreachable() {
        let settings = EngineSettings {
            docker_host: Some("unix:///nonexistent/d.sock".to_owned()),
            ..EngineSettings::default()
        };
        let error = Docker::connect(&settings).await.unwrap_err();
        assert!(matches!(&error, EngineError::Unreachable { .. }), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
    }
}
