//! Jobs that wait for their nodes: one of low priority for each, whose report is a file that `verify --merge` reads.
#![expect(clippy::disallowed_methods, reason = "edge: makes the directory and the empty files of reports")]

use std::io::{ErrorKind, Seek as _, SeekFrom, Write as _};
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8Path;
use futures_util::{StreamExt as _, stream};
use tokio::process::Command;

use super::error::{FleetError, RETRIES};
use super::limits::Limits;
use super::processes::{Processes, Started, job_number, whole_text};
use super::slurm::{ANSWER, JOB, cause, failed_with, outside_of_a_job, selection, without_answer};
use crate::fleet::{Heard, Outcome, Selection, SlurmNode};
use crate::host::async_child;

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
            Ok(()) => submit_one(command(&node, limits, &log, words), &script, &processes).await,
            Err(cause) => Err(unwritable(cause)),
        };
        (node.name, answer)
    });
    let mut submitted = std::pin::pin!(submitted.buffered(AT_ONCE));
    let mut jobs = Vec::new();
    while let Some((node, answer)) = submitted.next().await {
        match answer {
            Ok(text) => match job_number(&text) {
                Some(job) => jobs.push(Job { node, job }),
                None => others.push(refused(node, "sbatch printed no job".to_owned())),
            },
            Err(FleetError::Scheduler { text, .. }) => others.push(refused(node, text)),
            Err(error) => return Err(error),
        }
    }
    processes.keep_jobs(jobs.iter().map(|job| job.job));
    Ok((jobs, others, is_named))
}

fn refused(node: String, text: String) -> Heard {
    Heard { asked: Some(node), source: String::new(), gpus: None, outcome: Outcome::NotRun { why: text } }
}

/// What `sbatch` prints. Its script and its output are files: whatever becomes of this call, the number of the job can be read.
async fn submit_one(
    mut command: Command,
    script: &Bytes,
    processes: &Arc<Processes>,
) -> Result<String, FleetError> {
    let program = "sbatch";
    let failed = |cause| FleetError::Program { program, cause };
    let (mut input, output, errors) = (
        tempfile::tempfile().map_err(failed)?,
        tempfile::tempfile().map_err(failed)?,
        tempfile::tempfile().map_err(failed)?,
    );
    input.write_all(script).and_then(|()| input.seek(SeekFrom::Start(0))).map_err(failed)?;
    let of_child = |file: &std::fs::File| file.try_clone().map(Stdio::from).map_err(failed);
    command.stdin(Stdio::from(input)).stdout(of_child(&output)?).stderr(of_child(&errors)?);
    // A group of its own: Ctrl-C in the terminal does not end it between the job and its number.
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let started = Started::new(processes, child.id());
    processes.submits(child.id(), output.try_clone().map_err(failed)?);
    let status = tokio::time::timeout(ANSWER, child.wait()).await.ok().transpose().map_err(failed)?;
    if status.is_none() {
        drop(started.end(&mut child).await);
    }
    let text = whole_text(&output).map_err(failed)?;
    if let Some(job) = job_number(&text) {
        processes.add_job(&job.to_string());
    }
    started.over();
    match status {
        None => {
            let errors = whole_text(&errors).map_err(failed)?;
            let said = cause(program, &errors);
            Err(if said.contains(RETRIES) { failed_with(program, said) } else { without_answer(program) })
        }
        Some(status) if status.success() => Ok(text),
        Some(_) => Err(failed_with(program, &whole_text(&errors).map_err(failed)?)),
    }
}

/// An earlier report stays until the job begins.
fn new_file(path: &Utf8Path) -> std::io::Result<()> {
    match fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn command(node: &SlurmNode, limits: Limits, log: &Utf8Path, words: &[String]) -> Command {
    let mut command = async_child("sbatch");
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
    command.args(words);
    outside_of_a_job(&mut command);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

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
