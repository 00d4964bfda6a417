//! `ps`: the containers of ours, as the engine and the driver know them now.
#![expect(clippy::disallowed_methods, reason = "says how long they have been up")]

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::engine::{Containers as _, Docker, Engine as _};
use crate::failure::Exit;
use crate::host::{GpuUse, usage};
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::session::connect;
use crate::workflow::shell::{Shell, shells};

/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(1);

/// What `ps --json` prints.
#[derive(Debug, Serialize)]
struct Listing {
    schema: u32,
    containers: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    spec: String,
    image: String,
    /// `running`, `exited`…
    state: String,
    /// The engine's words.
    status: String,
    folder: String,
    user: String,
    ports: Vec<PortRow>,
    /// What it was given: `all`, `none` or names.
    gpus: String,
    /// `None`: it has none, or they are on another machine.
    gpu: Option<GpuRow>,
    started: String,
    uptime_seconds: i64,
}

#[derive(Debug, Serialize)]
struct PortRow {
    address: String,
    host: u16,
    container: u16,
}

/// Of its GPUs together.
#[derive(Debug, Serialize)]
struct GpuRow {
    /// Bytes its own processes hold; `None`: the driver does not say.
    memory: Option<u64>,
    /// Percent of the last moment in which the busiest of them worked, for whomever.
    utilisation: Option<u32>,
}

pub(super) async fn ps(args: &request::Ps, settings: &Settings) -> Result<Exit, CommandError> {
    let docker = connect(settings).await?;
    loop {
        let listing = listing(&docker).await?;
        if settings.output.json {
            Printer.json(&listing);
        } else {
            // Home, and what is below it cleared: nothing flickers.
            Printer.bytes(if args.watch { b"\x1b[H\x1b[J" } else { b"" });
            Printer.text(&text(&listing));
        }
        if !args.watch {
            return Ok(Exit::Done);
        }
        tokio::time::sleep(WATCH).await;
    }
}

async fn listing(docker: &Docker) -> Result<Listing, CommandError> {
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
        let port = |port: &crate::engine::Port| PortRow {
            address: port.address.to_string(),
            host: port.host,
            container: port.container,
        };
        containers.push(Row {
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
    Ok(Listing { schema: 1, containers })
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

fn text(listing: &Listing) -> String {
    if listing.containers.is_empty() {
        return "nothing runs\n".to_owned();
    }
    let mut rows = vec![["NAME", "SPEC", "PORTS", "GPU", "STATUS"].map(str::to_owned)];
    rows.extend(listing.containers.iter().map(|row| {
        let ports: Vec<_> = row
            .ports
            .iter()
            .map(|port| format!("{}:{}->{}", port.address, port.host, port.container))
            .collect();
        [
            row.name.clone(),
            row.spec.clone(),
            or_dash(ports.join(" ")),
            or_dash(gpu_text(row)),
            row.status.clone(),
        ]
    }));
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let _ = if column + 1 < row.len() {
                write!(text, "{cell:<width$}  ")
            } else {
                writeln!(text, "{cell}")
            };
        }
    }
    text
}

fn gpu_text(row: &Row) -> String {
    let Some(gpu) = &row.gpu else { return String::new() };
    let memory = gpu.memory.map(|bytes| format!("{} MiB", bytes >> 20));
    let use_of = gpu.utilisation.map(|percent| format!("{percent} %"));
    memory.into_iter().chain(use_of).collect::<Vec<_>>().join(" ")
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
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

    #[test]
    fn a_listing_is_aligned() {
        let row = Row {
            name: "llm-1f2e".into(),
            spec: "pytorch-cuda:2.8".into(),
            image: "sha256:1".into(),
            state: "running".into(),
            status: "Up 3 minutes".into(),
            folder: "/w/llm".into(),
            user: "1:1".into(),
            ports: vec![PortRow { address: "127.0.0.1".into(), host: 8888, container: 8888 }],
            gpus: "all".into(),
            gpu: Some(GpuRow { memory: Some(3 << 30), utilisation: Some(97) }),
            started: String::new(),
            uptime_seconds: 180,
        };
        let shown = text(&Listing { schema: 1, containers: vec![row] });
        assert_eq!(
            shown,
            "NAME      SPEC              PORTS                 GPU            STATUS\n\
             llm-1f2e  pytorch-cuda:2.8  127.0.0.1:8888->8888  3072 MiB 97 %  Up 3 minutes\n"
        );
    }
}
