//! Jobs that wait for their nodes: one of low priority for each, whose report is a file that `verify --merge` reads.
#![expect(clippy::disallowed_methods, reason = "edge: makes the directory and the empty files of reports")]

use std::io::ErrorKind;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8Path;
use futures_util::{StreamExt as _, stream};
use tokio::process::Command;

use super::error::FleetError;
use super::limits::Limits;
use super::processes::Processes;
use super::slurm::{JOB, output_of, outside_of_a_job, selection};
use crate::fleet::{Heard, Outcome, Selection, SlurmNode};

/// How much later than others each job is started: users may lower the priority of their own.
const NICE: u32 = 100_000;
/// Jobs that are submitted at one time.
const AT_ONCE: usize = 8;

/// A job that waits for its node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Job {
    /// The node.
    pub(crate) node: String,
    /// Slurm's number.
    pub(crate) job: u64,
}

/// Submits a job for each node, also for those in use. Returns the jobs, what is known of nodes that get none, and whether nodes were
/// named one by one. The report of a node is written to `NODE.log` in the directory; until then the file is empty, so that the node
/// counts as one that gave none. If it ends early no job stays.
pub(crate) async fn submit_jobs(
    wanted: Option<&str>,
    needs_gpu: bool,
    (script, limits): (Bytes, Limits),
    (folder, words): (&Utf8Path, &[String]),
) -> Result<(Vec<Job>, Vec<Heard>, bool), FleetError> {
    let Selection { idle, mut others, is_named } = selection(wanted, needs_gpu, (words, true)).await?;
    let unwritable = |cause| FleetError::Folder { folder: folder.to_string(), cause };
    fs_err::create_dir_all(folder).map_err(unwritable)?;
    let processes = Arc::new(Processes::default());
    let submitted = stream::iter(idle).map(async |node| {
        let log = folder.join(format!("{}.log", node.name));
        let answer = match new_file(&log) {
            Ok(()) => output_of(("sbatch", command(&node, limits, &log, words)), script.clone()).await,
            Err(cause) => Err(unwritable(cause)),
        };
        (node.name, answer)
    });
    let mut submitted = std::pin::pin!(submitted.buffered(AT_ONCE));
    let mut jobs = Vec::new();
    while let Some((node, answer)) = submitted.next().await {
        match answer {
            Ok(text) => match number(&text) {
                Some(job) => {
                    processes.add_job(&job.to_string());
                    jobs.push(Job { node, job });
                }
                None => others.push(refused(node, "sbatch printed no job".to_owned())),
            },
            Err(FleetError::Scheduler { text, .. }) => others.push(refused(node, text)),
            Err(error) => return Err(error),
        }
    }
    processes.keep_jobs();
    Ok((jobs, others, is_named))
}

fn refused(node: String, text: String) -> Heard {
    let text = text.strip_prefix("sbatch: error: ").map(str::to_owned).unwrap_or(text);
    Heard { asked: Some(node), source: String::new(), gpus: None, outcome: Outcome::NotRun { why: text } }
}

/// The number of `1234` or `1234;cluster`.
fn number(text: &str) -> Option<u64> {
    text.trim().split(';').next()?.parse().ok()
}

/// An earlier report stays until the job begins.
fn new_file(path: &Utf8Path) -> std::io::Result<()> {
    match fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn command(node: &SlurmNode, limits: Limits, log: &Utf8Path, words: &[String]) -> Command {
    let mut command = Command::new("sbatch");
    // Slurm replaces `%n` and the like in the name of a file.
    let log = log.as_str().replace('%', "%%");
    command.args([
        format!("--job-name={JOB}"),
        format!("--nodelist={}", node.name),
        format!("--partition={}", node.partition),
        format!("--time={}", limits.minutes()),
        format!("--nice={NICE}"),
        format!("--output={log}"),
        "--open-mode=truncate".to_owned(),
    ]);
    if node.gpus > 0 {
        command.arg(format!("--gpus-per-node={}", node.gpus));
    }
    command.args([
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        "--mem=0",
        "--chdir=/",
        "--no-requeue",
        "--parsable",
    ]);
    // What a site needs comes last and counts.
    command.args(words).stdin(Stdio::piped());
    outside_of_a_job(&mut command);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_job_is_read_with_and_without_its_cluster() {
        for (text, job) in
            [("12\n", Some(12)), ("12;west\n", Some(12)), ("Submitted batch job 12", None), ("", None)]
        {
            assert_eq!(number(text), job, "{text}");
        }
    }

    #[test]
    fn earlier_report_stays_until_its_job_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8Path::from_path(folder.path()).expect("UTF-8").join("node1.log");
        new_file(&path).expect("made");
        fs_err::write(&path, "a report").expect("written");
        new_file(&path).expect("left");
        assert_eq!(fs_err::read_to_string(&path).expect("read"), "a report");
        assert!(new_file(&path.join("below")).is_err());
    }
}
