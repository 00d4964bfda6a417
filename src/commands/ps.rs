//! `ps`: the containers of ours, as the engine and the driver know them now.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::engine::{Engine as _, ImageInfo, Images};
use crate::failure::Exit;
use crate::model::request;
use crate::model::verdict::Proven;
use crate::model::visible::visible_line;
use crate::report::{Printer, Reporter, reporter};
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::error::CommandError;
use crate::workflow::proven::proven;
use crate::workflow::required_evidence::KeptProofs;
use crate::workflow::session::connect;
use crate::workflow::shell::{ShellRow, shell_rows};

/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(1);

/// What `ps --json` prints.
#[derive(Debug, Serialize)]
struct Listing {
    schema: u32,
    containers: Vec<Row>,
}

/// A container, and what is proven of its image.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    shell: ShellRow,
    verified: bool,
    #[serde(flatten)]
    proven: Proven,
    /// Whose key proves it for this machine, by the evidence that is kept here.
    evidence: Option<String>,
}

impl Row {
    async fn of(
        shell: ShellRow,
        engine: &dyn Images,
        store: &Store,
        reporter: &dyn Reporter,
        kept: &KeptProofs<'_>,
    ) -> Result<Self, CommandError> {
        // The image may be gone while its container runs: its id still says what was proven.
        let found = engine.image(&shell.image).await?;
        let image = found.unwrap_or_else(|| ImageInfo { id: shell.image.clone(), ..ImageInfo::default() });
        let proven = proven(store, reporter, &image)?;
        let evidence = kept.text_of(&image, &proven)?;
        Ok(Self { shell, verified: proven.is_verified(), proven, evidence })
    }
}

pub(super) async fn ps(args: &request::Ps, settings: &Settings) -> Result<Exit, CommandError> {
    let docker = connect(settings).await?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let reporter = reporter(settings.output);
    let kept = KeptProofs::open(&store, settings, docker.info(), &*reporter);
    loop {
        let mut containers = Vec::new();
        for shell in shell_rows(&docker).await? {
            containers.push(Row::of(shell, &docker, &store, &*reporter, &kept).await?);
        }
        let listing = Listing { schema: 1, containers };
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
    let mut rows = vec![["NAME", "SPEC", "PORTS", "GPU", "STATUS", "IMAGE"].map(str::to_owned)];
    rows.extend(listing.containers.iter().map(|Row { shell: row, proven, evidence, .. }| {
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
            evidence.clone().unwrap_or_else(|| proven.short()),
        ]
    }));
    let mut text = String::new();
    // The labels of a container hold anything.
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| visible_line(cell))).collect();
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
    use crate::model::verdict::{ImageState, Proof};
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
        let proof = Proof {
            level: "full".into(),
            gpus: vec!["NVIDIA H200 (sm_90)".into()],
            driver: None,
            checked: "2026-11-26T10:00:00Z".into(),
        };
        let proven = Proven { state: ImageState::Verified, proven: vec![proof], failed: vec![] };
        let row = Row { shell: row, verified: true, proven, evidence: None };
        let json = serde_json::to_string(&row).expect("JSON");
        assert_eq!(json.matches("\"state\":").count(), 1, "that of the container: {json}");
        let shown = text(&Listing { schema: 1, containers: vec![row] });
        assert_eq!(
            shown,
            "NAME      SPEC              PORTS                 GPU            STATUS        IMAGE\n\
             llm-1f2e  pytorch-cuda:2.8  127.0.0.1:8888->8888  3072 MiB 97 %  Up 3 minutes  \
             verified: full, NVIDIA H200 (sm_90), 2026-11-26\n"
        );
    }
}
