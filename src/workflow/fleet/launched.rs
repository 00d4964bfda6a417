//! The launcher of one node: what it reports while it runs, and why it gave no report.

use std::sync::Arc;

use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::error::FleetError;
use super::node_job::{Asked, Deadline, Ended, run};
use super::processes::Processes;
use crate::fleet::{NodeLine, NodeLog, NodeReport, Outcome, Progress, Stage};

/// What ssh ends with where it failed itself.
const FAILED: i32 = 255;

/// Runs the launcher by a program that leads to a node, and returns the node's report, or why there is none.
pub(super) async fn launched(
    host: &str,
    (program, command): (&'static str, Command),
    asked: &Asked<'_>,
    processes: &Arc<Processes>,
) -> Result<Result<Box<NodeReport>, Outcome>, FleetError> {
    let (sender, mut lines) = mpsc::channel(100);
    let input = asked.launcher.input.clone();
    let deadline = Deadline::after(asked.limits.whole());
    let process = run((program, command), input, &deadline, processes, sender);
    let (mut stage, mut report, mut damaged) = (None, None, None);
    let mut hear = |line: NodeLine| match line {
        NodeLine::Stage(place, found) if place.nonce == asked.launcher.nonce && stage < Some(found) => {
            stage = Some(found);
            deadline.move_to(Instant::now() + asked.limits.of(found));
            asked.note(host, Progress::At(found));
        }
        NodeLine::Report(found) if found.place.nonce == asked.launcher.nonce => {
            asked.note(host, Progress::Reported);
            deadline.move_to(Instant::now() + asked.limits.of(Stage::End));
            report = Some(found);
        }
        NodeLine::Damaged { place, why } if place.nonce == asked.launcher.nonce => damaged = Some(why),
        NodeLine::Stage(..) | NodeLine::Report(_) | NodeLine::Damaged { .. } => {}
    };
    let listen = async {
        let mut log = NodeLog::default();
        while let Some(line) = lines.recv().await {
            log.push(&line).into_iter().for_each(|(_, line)| hear(line));
        }
        log.finish().into_iter().for_each(|(_, line)| hear(line));
    };
    let (ended, ()) = tokio::join!(process, listen);
    let ended = match ended {
        Ok(ended) => ended,
        // Of all hosts the others still answer, unless there is no such program at all.
        Err(FleetError::Program { program, cause }) if cause.kind() != std::io::ErrorKind::NotFound => {
            return Ok(Err(Outcome::NotRun { why: format!("cannot run `{program}`: {cause}") }));
        }
        Err(error) => return Err(error),
    };
    Ok(report.ok_or_else(|| silence(stage, damaged, &ended)))
}

/// Why a host gave no report.
fn silence(stage: Option<Stage>, damaged: Option<&str>, ended: &Ended) -> Outcome {
    let last = ended.last_error();
    let said = if last.is_empty() { String::new() } else { format!(": {last}") };
    match (stage, ended.code) {
        // ssh itself did not get there.
        (None, Some(FAILED)) if !ended.is_late => {
            let why = if last.is_empty() { "ssh could not connect".to_owned() } else { last.to_owned() };
            Outcome::NotRun { why }
        }
        (_, _) if ended.is_late => Outcome::Silent { stage, why: "no answer before the deadline".to_owned() },
        (_, _) if damaged.is_some() => {
            Outcome::Silent { stage, why: format!("damaged report: {}{said}", damaged.unwrap_or_default()) }
        }
        (Some(_), Some(FAILED)) => Outcome::Silent { stage, why: format!("connection lost{said}") },
        (_, code) => {
            let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
            Outcome::Silent { stage, why: format!("the launcher ended with {code}{said}") }
        }
    }
}
