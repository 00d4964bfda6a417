//! Hosts through the system's ssh: one connection for each, with the user's own configuration.

use std::sync::Arc;

use camino::Utf8Path;
use tokio::sync::Semaphore;

use super::error::FleetError;
use super::launched::launched;
use super::limits::PROBE;
use super::node_job::{Asked, Screen};
use super::processes::Processes;
use super::slurm::Answer;
use crate::fleet::{NodeReport, Outcome, Progress, Stage, unfold_logins};
use crate::host::async_child;
use crate::model::request::SshHosts;
use crate::report::{Event, NullReporter, Reporter};
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
    let at_once = asked.parallel.unwrap_or(PARALLEL).max(1);
    let sorted;
    let hosts = if at_once < hosts.len() && asked.launcher.fetches {
        sorted = ready_first(hosts, asked, (&processes, at_once)).await;
        sorted.as_slice()
    } else {
        hosts
    };
    let gate = Semaphore::new(at_once);
    let all = hosts.iter().map(async |host| {
        let _turn = gate.acquire().await;
        asked.note(host, Progress::Asked);
        let report = one_host(host, asked, &processes).await?;
        asked.note(host, if report.is_ok() { Progress::Reported } else { Progress::Silent });
        Ok::<_, FleetError>(Answer { node: host.clone(), gpus: None, report })
    });
    futures_util::future::join_all(all).await.into_iter().collect()
}

/// The hosts, those first that have the image: no other waits for one that fetches it.
async fn ready_first(
    hosts: &[String],
    asked: &Asked<'_>,
    (processes, at_once): (&Arc<Processes>, usize),
) -> Vec<String> {
    let (launcher, reporter) = (asked.launcher.probe(), Arc::new(NullReporter) as Arc<dyn Reporter>);
    let (words, screen) = (asked.words, Screen::default());
    let probe =
        Asked { launcher: &launcher, limits: PROBE, words, parallel: None, reporter: &reporter, screen };
    let gate = Semaphore::new(at_once);
    let all = hosts.iter().map(async |host| {
        let _turn = gate.acquire().await;
        let found = one_host(host, &probe, processes).await;
        let is_ready = matches!(found, Ok(Err(Outcome::Silent { stage: Some(Stage::Check), .. })));
        (!is_ready, host.clone())
    });
    let mut all = futures_util::future::join_all(all).await;
    // A stable order: hosts that are alike stay as they were named.
    all.sort_by_key(|(fetches, _)| *fetches);
    all.into_iter().map(|(_, host)| host).collect()
}

async fn one_host(
    host: &str,
    asked: &Asked<'_>,
    processes: &Arc<Processes>,
) -> Result<Result<Box<NodeReport>, Outcome>, FleetError> {
    let mut command = async_child("ssh");
    command.args(OPTIONS).args(asked.words).args(["--", host, "exec bash -s"]);
    launched(host, ("ssh", command), asked, processes).await
}
