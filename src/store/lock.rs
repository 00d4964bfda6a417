//! Locks between processes: files that are flock'ed while held and contain the process id of the holder.

use std::fmt;
use std::fs::TryLockError;
use std::io::{Read as _, Seek as _, Write as _};
use std::time::Duration;

use camino::Utf8Path;

use super::error::StoreError;

/// The interval between attempts to take a held lock.
const POLL: Duration = Duration::from_millis(50);
/// The number of attempts after which the holder is reported: a second.
const ATTEMPTS_BEFORE_REPORT: u32 = 20;
/// A process id has no more bytes.
const PID_LENGTH: u64 = 20;

/// The process that holds a lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pid: Option<u32>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) if pid == std::process::id() => f.write_str("another task of this command"),
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

/// A held lock, released when dropped.
#[derive(Debug)]
pub struct StoreLock {
    _file: fs_err::File,
}

impl StoreLock {
    /// Waits for the lock file at that path; `report` is called once with the holder if that takes more than a second.
    pub(super) async fn acquire(
        path: &Utf8Path,
        mut report: impl FnMut(&Holder),
    ) -> Result<Self, StoreError> {
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .map_err(StoreError::file("cannot create a lock file"))?;
        let waited = wait(file.file(), || report(&holder_of(file.file()))).await;
        waited.map_err(StoreError::file("cannot lock a file"))?;
        if let Err(error) = write_pid(&mut file) {
            // The lock works without it; a waiting process only reports less.
            tracing::debug!(%path, %error, "cannot record the holder of a lock");
        }
        Ok(Self { _file: file })
    }
}

/// Waits for an exclusive lock on a file; a warning is shown if that takes more than a second.
pub(crate) async fn wait_for_lock(file: &std::fs::File) -> std::io::Result<()> {
    wait(file, || tracing::warn!("waiting for another process, which downloads the same file")).await
}

/// Polls for an exclusive lock: a blocked thread could not be ended by Ctrl-C.
async fn wait(file: &std::fs::File, mut report: impl FnMut()) -> std::io::Result<()> {
    let mut attempts = 0;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {
                if attempts == ATTEMPTS_BEFORE_REPORT {
                    report();
                }
                attempts = attempts.saturating_add(1).min(ATTEMPTS_BEFORE_REPORT + 1);
                tokio::time::sleep(POLL).await;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn write_pid(file: &mut fs_err::File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// Reads the process id that the holder wrote.
fn holder_of(mut file: &std::fs::File) -> Holder {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(PID_LENGTH).read_to_string(&mut text));
    Holder { pid: read.ok().and_then(|_| text.trim().parse().ok()) }
}
