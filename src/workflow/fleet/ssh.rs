//! Hosts through the system's ssh: one connection for each, with the user's own configuration.

use std::sync::Arc;

use camino::Utf8Path;
use tokio::process::Command;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::error::FleetError;
use super::node_job::{Asked, Deadline, Ended, run};
use super::processes::Processes;
use super::slurm::Answer;
use crate::fleet::{NodeLine, NodeLog, NodeReport, Outcome, Progress, Stage, unfold_logins};
use crate::model::request::SshHosts;
use crate::report::Event;
use crate::store::read_typed_text;

/// Hosts at one time, where nothing else is given.
const PARALLEL: usize = 32;
/// The largest file of hosts.
const LARGEST: u64 = 4 << 20;
/// A prompt has no reader; a host that is frozen or gone is noticed within ten seconds.
const OPTIONS: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=3",
    "-o",
    "ServerAliveCountMax=3",
];
/// What ssh ends with where it failed itself.
const FAILED: i32 = 255;

/// The hosts that were typed, or those of a file: one a line, or lists; `#` begins a comment.
pub(crate) async fn hosts_of(hosts: &SshHosts, folder: &Utf8Path) -> Result<Vec<String>, FleetError> {
    let (list, within) = match hosts {
        SshHosts::List(list) => (list.clone(), None),
        SshHosts::File(file) => {
            let error = |cause| FleetError::File { file: file.to_string(), cause };
            let text = read_typed_text(&folder.join(file), LARGEST).await.map_err(error)?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
            (lines.join(","), Some(file.to_string()))
        }
    };
    if list.is_empty() {
        return Err(FleetError::NoNode { within });
    }
    Ok(unfold_logins(&list)?)
}

/// Asks hosts, as many at one time as allowed.
pub(crate) async fn ask_ssh(hosts: &[String], asked: &Asked<'_>) -> Result<Vec<Answer>, FleetError> {
    asked.reporter.report(Event::Note { text: format!("asking {} hosts by ssh", hosts.len()) });
    for host in hosts {
        asked.note(host, Progress::Waits);
    }
    let processes = Arc::new(Processes::default());
    let gate = Semaphore::new(asked.parallel.unwrap_or(PARALLEL).max(1));
    let all = hosts.iter().map(async |host| {
        let _turn = gate.acquire().await;
        asked.note(host, Progress::Asked);
        let report = one_host(host, asked, &processes).await?;
        asked.note(host, if report.is_ok() { Progress::Reported } else { Progress::Silent });
        Ok::<_, FleetError>(Answer { node: host.clone(), gpus: None, report })
    });
    futures_util::future::join_all(all).await.into_iter().collect()
}

async fn one_host(
    host: &str,
    asked: &Asked<'_>,
    processes: &Arc<Processes>,
) -> Result<Result<Box<NodeReport>, Outcome>, FleetError> {
    let mut command = Command::new("ssh");
    command.args(OPTIONS).args(asked.words).args(["--", host, "exec bash -s"]);
    let (sender, mut lines) = mpsc::channel(100);
    let input = asked.launcher.input.clone();
    let deadline = Deadline::after(asked.limits.whole());
    let process = run(("ssh", command), input, &deadline, processes, sender);
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
        // Of all hosts the others still answer, unless there is no ssh at all.
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
