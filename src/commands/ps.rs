//! `ps`: the containers of ours, as the engine and the driver know them now.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Exit;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::session::connect;
use crate::workflow::shell::{ShellRow, shell_rows};

/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(1);

/// What `ps --json` prints.
#[derive(Debug, Serialize)]
struct Listing {
    schema: u32,
    containers: Vec<ShellRow>,
}

pub(super) async fn ps(args: &request::Ps, settings: &Settings) -> Result<Exit, CommandError> {
    let docker = connect(settings).await?;
    loop {
        let listing = Listing { schema: 1, containers: shell_rows(&docker).await? };
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

fn gpu_text(row: &ShellRow) -> String {
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
    use crate::workflow::shell::{GpuRow, PortRow};

    #[test]
    fn a_listing_is_aligned() {
        let row = ShellRow {
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
