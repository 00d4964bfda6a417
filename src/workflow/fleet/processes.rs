//! The processes of a call that asks nodes, and their jobs: whatever ends the call, none of them stays.
#![expect(clippy::disallowed_methods, reason = "edge: ends processes and jobs, and waits for them")]

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use tokio::process::Child;

/// How long a process has to end by itself, since its input has ended, and then again after the first signal. Nodes remove their containers
/// when their input ends; a signal to `srun` would kill them on the way.
const GRACE: Duration = Duration::from_secs(10);

/// Ends all that still runs when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Processes {
    running: Mutex<BTreeSet<u32>>,
    jobs: Mutex<BTreeSet<u64>>,
}

impl Processes {
    /// Remembers a job of the scheduler.
    pub(super) fn add_job(&self, job: &str) {
        if let Ok(job) = job.parse() {
            self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        }
    }

    /// Leaves the jobs to the scheduler.
    pub(super) fn keep_jobs(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Cancels the jobs, which ended or not.
    pub(super) fn cancel_jobs(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        if jobs.is_empty() {
            return;
        }
        // Their numbers come from nodes: only the caller's own are meant. The controller may be gone.
        let mut command = std::process::Command::new("timeout");
        command.args(["20", "scancel", "--quiet", "--me"]).args(jobs.iter().map(ToString::to_string));
        let silent = || std::process::Stdio::null();
        drop(command.stdin(silent()).stdout(silent()).stderr(silent()).status());
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        let mut left: Vec<Pid> = running.into_iter().filter_map(pid).collect();
        wait_for(&mut left);
        for signal in [Signal::TERM, Signal::KILL] {
            for process in &left {
                let _ = kill_process(*process, signal);
            }
            wait_for(&mut left);
        }
        self.cancel_jobs();
    }
}

/// Waits until none is left, not longer than their time.
fn wait_for(left: &mut Vec<Pid>) {
    let end = Instant::now() + GRACE;
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
        }
    }
}
