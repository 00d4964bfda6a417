//! One process that asks nodes: its lines as they arrive, its end, its deadline.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::error::FleetError;
use super::launcher::Launcher;
use super::limits::Limits;
use super::processes::{Processes, Started};
use crate::fleet::{Board, Progress};
use crate::report::{Event, Reporter, rows};

/// How often a deadline is looked at: it may have moved.
const TICK: Duration = Duration::from_millis(500);
/// How often the table of nodes is shown.
const SHOWN: Duration = Duration::from_secs(1);
/// Rows of the screen that the table leaves to others.
const AROUND: usize = 4;
/// How long pipes may stay open after the process has ended.
const LEFT_OPEN: Duration = Duration::from_secs(2);
/// Pieces of a line that is longer.
const PIECE: usize = 64 << 10;
/// How much of standard error is kept.
const KEPT: usize = 64 << 10;

/// When this machine waits no longer; it moves with what is heard.
pub(super) struct Deadline(Mutex<Instant>);

impl Deadline {
    pub(super) fn after(limit: Duration) -> Self {
        Self(Mutex::new(Instant::now() + limit))
    }

    pub(super) fn move_to(&self, until: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Returns when it has come.
    async fn come(&self) {
        loop {
            let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until.min(Instant::now() + TICK)).await;
        }
    }
}

/// What every way to nodes needs.
pub(crate) struct Asked<'a> {
    /// What nodes run.
    pub(crate) launcher: &'a Launcher,
    /// How long they may take.
    pub(crate) limits: Limits,
    /// Words of the site for `srun` or `ssh`.
    pub(crate) words: &'a [String],
    /// The most nodes at one time.
    pub(crate) parallel: Option<usize>,
    /// Who sees the progress.
    pub(crate) reporter: &'a Arc<dyn Reporter>,
    /// How far the nodes are.
    pub(crate) screen: Screen,
}

/// How far the nodes are, since when.
#[derive(Debug)]
pub(crate) struct Screen {
    began: Instant,
    board: Mutex<Board>,
}

impl Default for Screen {
    fn default() -> Self {
        Self { began: Instant::now(), board: Mutex::default() }
    }
}

/// The step that shows the progress.
pub(crate) const STEP: &str = "nodes";

impl Asked<'_> {
    /// Notes how far a node is.
    pub(super) fn note(&self, node: &str, progress: Progress) {
        let now = self.screen.began.elapsed().as_secs();
        let mut board = self.screen.board.lock().unwrap_or_else(PoisonError::into_inner);
        if board.set(node, progress, now) && !matches!(progress, Progress::Waits | Progress::Asked) {
            let line = format!("{node}: {}", progress.text());
            self.reporter.report(Event::StepOutput { id: STEP.to_owned(), line });
        }
    }

    /// Does what asks the nodes, and shows how far they are as long as it takes.
    pub(crate) async fn shown<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut tick = tokio::time::interval(SHOWN);
        loop {
            tokio::select! {
                result = &mut work => return result,
                _ = tick.tick() => self.show(),
            }
        }
    }

    fn show(&self) {
        let now = self.screen.began.elapsed().as_secs();
        let board = self.screen.board.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = board.lines(rows().saturating_sub(AROUND), now);
        if !lines.is_empty() {
            self.reporter.report(Event::StepTable { id: STEP.to_owned(), summary: board.summary(), lines });
        }
    }
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; `None`: a signal.
    pub(super) code: Option<i32>,
    /// The end of what it printed on standard error.
    pub(super) errors: String,
    /// Whether it was ended at the deadline.
    pub(super) is_late: bool,
}

impl Ended {
    /// The last line on standard error that is not empty.
    pub(super) fn last_error(&self) -> &str {
        self.errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim()
    }
}

/// Runs a program with that input, which stays open until it ends; lines of its output go to `lines`.
pub(super) async fn run(
    (program, mut command): (&'static str, Command),
    input: bytes::Bytes,
    deadline: &Deadline,
    processes: &Arc<Processes>,
    lines: mpsc::Sender<String>,
) -> Result<Ended, FleetError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: Ctrl-C in the terminal reaches this program alone, which ends the others in order.
    command.process_group(0);
    let mut child = command.spawn().map_err(|cause| FleetError::Program { program, cause })?;
    let started = Started::new(processes, child.id());
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (ended, mut wait) = mpsc::channel::<()>(1);
    let write = async {
        if let Some(mut stdin) = stdin {
            // One that does not read ends with an error of its own.
            drop(stdin.write_all(&input).await);
            drop(stdin.flush().await);
            wait.recv().await;
        }
    };
    let errors = Mutex::new(Vec::new());
    let (over, mut is_over) = mpsc::channel::<()>(1);
    let streams = async {
        let out = async {
            if let Some(stdout) = stdout {
                pieces(stdout, &lines).await;
            }
        };
        let err = async {
            if let Some(stderr) = stderr {
                keep_last(stderr, &errors).await;
            }
        };
        // A process that stays behind may hold the pipes open: ssh does with a connection that it shares.
        let stays = async {
            is_over.recv().await;
            tokio::time::sleep(LEFT_OPEN).await;
        };
        tokio::select! {
            _ = async { tokio::join!(out, err) } => {}
            () = stays => {}
        }
        drop(lines);
    };
    let end = async {
        let in_time = tokio::select! {
            status = child.wait() => Some(status),
            () = deadline.come() => None,
        };
        let (status, is_late) = match in_time {
            Some(status) => (status, false),
            None => (started.end(&mut child).await, true),
        };
        drop((ended, over));
        (status, is_late)
    };
    let ((status, is_late), (), ()) = tokio::join!(end, streams, write);
    started.over();
    let status = status.map_err(|cause| FleetError::Program { program, cause })?;
    let errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    let errors = String::from_utf8_lossy(&errors).into_owned();
    Ok(Ended { code: status.code(), errors, is_late })
}

/// Sends the lines of a stream, in pieces where they are long.
async fn pieces(mut stream: impl AsyncRead + Unpin, lines: &mpsc::Sender<String>) {
    let (mut line, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let count = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            let is_whole = line.ends_with(b"\n");
            if is_whole || line.len() >= PIECE {
                let text = String::from_utf8_lossy(&line[..line.len() - usize::from(is_whole)]).into_owned();
                drop(lines.send(text).await);
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        drop(lines.send(String::from_utf8_lossy(&line).into_owned()).await);
    }
}

/// Reads a stream to its end and keeps its end.
async fn keep_last(mut stream: impl AsyncRead + Unpin, kept: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * KEPT {
            let first = kept.len() - KEPT;
            kept.drain(..first);
        }
    }
}
