//! The processes of a call that asks nodes, and their jobs: whatever ends the call, none of them stays.
#![expect(clippy::disallowed_methods, reason = "edge: ends processes and jobs, and waits for them")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use tokio::process::Child;

use crate::host::child;

/// How long a process has to end by itself, since its input has ended, and then again after the first signal. Nodes remove their containers
/// when their input ends; a signal to `srun` would kill them on the way.
const GRACE: Duration = Duration::from_secs(10);

/// How long a program that submits a job has to answer: the scheduler may have the job before it says its number.
const SUBMITS: Duration = Duration::from_secs(30);

/// Ends all that still runs when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Processes {
    running: Mutex<BTreeSet<u32>>,
    jobs: Mutex<BTreeSet<u64>>,
    /// What programs in flight that submit a job print, by their process.
    submitting: Mutex<BTreeMap<u32, File>>,
}

/// The number of a job in what `sbatch --parsable` prints: `1234` or `1234;cluster`.
pub(super) fn job_number(text: &str) -> Option<u64> {
    text.trim().split(';').next()?.parse().ok()
}

/// All that a file has, whoever wrote it last.
pub(super) fn whole_text(mut file: &File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Processes {
    /// Remembers a job of the scheduler.
    pub(super) fn add_job(&self, job: &str) {
        if let Ok(job) = job.parse() {
            self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        }
    }

    /// Remembers that a process submits a job, and the file to which it prints the number.
    pub(super) fn submits(&self, process: Option<u32>, output: File) {
        let known = process.map(|process| (process, output));
        self.submitting.lock().unwrap_or_else(PoisonError::into_inner).extend(known);
    }

    /// Remembers the jobs of those in flight, which have ended.
    fn add_submitted(&self) {
        let outputs = std::mem::take(&mut *self.submitting.lock().unwrap_or_else(PoisonError::into_inner));
        for output in outputs.values() {
            let job = whole_text(output).ok().as_deref().and_then(job_number);
            self.jobs.lock().unwrap_or_else(PoisonError::into_inner).extend(job);
        }
    }

    /// Leaves these jobs to the scheduler.
    pub(super) fn keep_jobs(&self, kept: impl Iterator<Item = u64>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        for job in kept {
            jobs.remove(&job);
        }
    }

    /// Cancels the jobs, which ended or not.
    pub(super) fn cancel_jobs(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        if jobs.is_empty() {
            return;
        }
        // Their numbers come from nodes: only the caller's own are meant. The controller may be gone.
        let mut command = child("timeout");
        command.args(["20", "scancel", "--quiet", "--me"]).args(jobs.iter().map(ToString::to_string));
        let silent = || std::process::Stdio::null();
        drop(command.stdin(silent()).stdout(silent()).stderr(silent()).status());
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        let mut left: Vec<Pid> = running.into_iter().filter_map(pid).collect();
        let is_submitting = !self.submitting.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        wait_for(&mut left, if is_submitting { SUBMITS } else { GRACE });
        for signal in [Signal::TERM, Signal::KILL] {
            for process in &left {
                let _ = kill_process(*process, signal);
            }
            wait_for(&mut left, GRACE);
        }
        self.add_submitted();
        self.cancel_jobs();
    }
}

/// Waits until none is left, not longer than their time.
fn wait_for(left: &mut Vec<Pid>, time: Duration) {
    let end = Instant::now() + time;
    left.retain(|process| !is_gone(*process));
    while !left.is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
        left.retain(|process| !is_gone(*process));
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Whether a child has ended, and takes its end if so.
fn is_gone(process: Pid) -> bool {
    matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(Some(_))) || test_kill_process(process).is_err()
}

/// A process that runs.
pub(super) struct Started {
    processes: Arc<Processes>,
    id: Option<u32>,
    is_over: bool,
}

impl Started {
    pub(super) fn new(processes: &Arc<Processes>, id: Option<u32>) -> Self {
        processes.running.lock().unwrap_or_else(PoisonError::into_inner).extend(id);
        Self { processes: Arc::clone(processes), id, is_over: false }
    }

    /// Asks it to end, ends it where it does not, and returns how it ended.
    pub(super) async fn end(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        if let Some(process) = self.id.and_then(pid) {
            let _ = kill_process(process, Signal::TERM);
        }
        if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
            return status;
        }
        child.kill().await?;
        child.wait().await
    }

    /// It has ended by itself.
    pub(super) fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that still runs is ended with all others.
        if let (true, Some(id)) = (self.is_over, self.id) {
            self.processes.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            self.processes.submitting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_a_job_is_read_with_and_without_its_cluster() {
        for (text, job) in
            [("12\n", Some(12)), ("12;west\n", Some(12)), ("Submitted batch job 12", None), ("", None)]
        {
            assert_eq!(job_number(text), job, "{text}");
        }
    }
}
