//! Containers of `shell` as the engine and the driver know them now, as rows.
#![expect(clippy::disallowed_methods, reason = "computes how long they have been up")]

use jiff::Timestamp;
use serde::Serialize;

use super::{Shell, shells};
use crate::engine::{Containers as _, Docker, Engine as _, Port};
use crate::host::{GpuUse, usage};
use crate::workflow::error::CommandError;

/// A container of `shell`.
#[derive(Debug, Serialize)]
pub(crate) struct ShellRow {
    pub(crate) name: String,
    pub(crate) spec: String,
    pub(crate) image: String,
    /// `running`, `exited`…
    pub(crate) state: String,
    /// The engine's words.
    pub(crate) status: String,
    pub(crate) folder: String,
    pub(crate) user: String,
    pub(crate) ports: Vec<PortRow>,
    /// What it was given: `all`, `none` or names.
    pub(crate) gpus: String,
    /// `None`: it has none, or they are on another machine.
    pub(crate) gpu: Option<GpuRow>,
    pub(crate) started: String,
    pub(crate) uptime_seconds: i64,
}

/// A published port.
#[derive(Debug, Serialize)]
pub(crate) struct PortRow {
    pub(crate) address: String,
    pub(crate) host: u16,
    pub(crate) container: u16,
}

/// The use of its GPUs together.
#[derive(Debug, Serialize)]
pub(crate) struct GpuRow {
    /// Bytes its own processes hold; `None`: the driver does not say.
    pub(crate) memory: Option<u64>,
    /// Percent of the last moment in which the busiest of them worked, for whomever.
    pub(crate) utilisation: Option<u32>,
}

/// Lists the containers of `shell` with the GPU use of those that run on this machine.
pub(crate) async fn shell_rows(docker: &Docker) -> Result<Vec<ShellRow>, CommandError> {
    let shells = shells(docker).await?;
    let has_gpu = |shell: &Shell| shell.runs() && shell.gpus != "none";
    let gpus = if docker.info().local && shells.iter().any(has_gpu) { usage() } else { Vec::new() };
    let now = Timestamp::now().as_second();
    let mut containers = Vec::new();
    for shell in shells {
        let gpu = if has_gpu(&shell) && !gpus.is_empty() {
            Some(gpu_row(&gpus, &shell.gpus, &docker.processes(&shell.container.id).await?))
        } else {
            None
        };
        let info = shell.container;
        let started = Timestamp::from_second(info.created).unwrap_or(Timestamp::UNIX_EPOCH);
        let port = |port: &Port| PortRow {
            address: port.address.to_string(),
            host: port.host,
            container: port.container,
        };
        containers.push(ShellRow {
            uptime_seconds: if info.state == "running" { now - info.created } else { 0 },
            name: shell.name,
            spec: shell.spec,
            image: info.image,
            state: info.state,
            status: info.status,
            folder: shell.folder,
            user: shell.user,
            ports: info.ports.iter().map(port).collect(),
            gpus: shell.gpus,
            gpu,
            started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
    }
    Ok(containers)
}

/// The GPUs among `all` that were given by those names, and what those processes do there.
fn gpu_row(all: &[GpuUse], given: &str, processes: &[u32]) -> GpuRow {
    let is_given = |gpu: &&GpuUse| {
        given == "all" || given.split(',').any(|name| name == gpu.index.to_string() || name == gpu.uuid)
    };
    let gpus: Vec<_> = all.iter().filter(is_given).collect();
    let own = gpus.iter().flat_map(|gpu| &gpu.processes).filter(|(pid, _)| processes.contains(pid));
    GpuRow {
        memory: own.map(|(_, bytes)| *bytes).sum::<Option<u64>>(),
        utilisation: gpus.iter().filter_map(|gpu| gpu.utilisation).max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, processes: &[(u32, Option<u64>)], utilisation: u32) -> GpuUse {
        GpuUse {
            index,
            uuid: format!("GPU-{index}"),
            processes: processes.to_vec(),
            utilisation: Some(utilisation),
        }
    }

    #[test]
    fn memory_is_the_containers_own_and_utilisation_the_busiest_gpus() {
        let all =
            [gpu(0, &[(10, Some(5)), (11, Some(7)), (99, Some(100))], 30), gpu(1, &[(10, Some(1))], 90)];
        let of = |given: &str| {
            let row = gpu_row(&all, given, &[10, 11]);
            (row.memory, row.utilisation)
        };
        assert_eq!(of("all"), (Some(13), Some(90)));
        assert_eq!(of("0"), (Some(12), Some(30)));
        assert_eq!(of("GPU-1"), (Some(1), Some(90)));
        assert_eq!(gpu_row(&[gpu(0, &[(10, None)], 1)], "all", &[10]).memory, None, "unknown is not nothing");
    }
}
