//! Attaches this terminal, or pipes, to a program in a container until the program ends.

use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::ShellError;
use super::terminal::{Raw, size, typed};
use crate::engine::{Attached, Containers, EngineError, ExecRequest, Output, Program};
use crate::report::Printer;

/// A program to attach to.
pub(crate) struct AttachTarget<'a> {
    pub(crate) containers: &'a dyn Containers,
    /// Its container.
    pub(crate) container: &'a str,
    pub(crate) program: Program,
    /// Whether both the program and this process have a terminal.
    pub(crate) terminal: bool,
    /// The process id file of a command next to the container's own.
    pub(crate) pid_file: Option<String>,
}

/// How a program ended.
pub(crate) struct ProgramEnd {
    /// Its exit code.
    pub(crate) code: u8,
    /// The end of its standard error; nothing where it has a terminal, which is not read.
    pub(crate) errors: Vec<u8>,
}

/// As much of a program's standard error is kept, bytes.
const KEPT: usize = 64 << 10;

/// Adds to the end of an output, of which no more than twice [`KEPT`] is held.
fn keep(errors: &mut Vec<u8>, part: &[u8]) {
    errors.extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
    if errors.len() > 2 * KEPT {
        errors.drain(..errors.len() - KEPT);
    }
}

/// Signals passed to the program that end this process otherwise, by name.
const ENDING: [(SignalKind, &str); 3] =
    [(SignalKind::interrupt(), "INT"), (SignalKind::terminate(), "TERM"), (SignalKind::hangup(), "HUP")];

/// Further signals passed to the program.
const FURTHER: [(SignalKind, &str); 3] = [
    (SignalKind::quit(), "QUIT"),
    (SignalKind::user_defined1(), "USR1"),
    (SignalKind::user_defined2(), "USR2"),
];

/// The signals that go to the program: those that end a process from before the program starts, so that none is lost between its start
/// and [`attach_terminal`].
pub(crate) struct PassedSignals {
    sender: mpsc::Sender<&'static str>,
    receiver: mpsc::Receiver<&'static str>,
}

impl PassedSignals {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self, ShellError> {
        let (sender, receiver) = mpsc::channel(8);
        let signals = Self { sender, receiver };
        signals.add(ENDING)?;
        Ok(signals)
    }

    fn add(&self, kinds: impl IntoIterator<Item = (SignalKind, &'static str)>) -> Result<(), ShellError> {
        for (kind, name) in kinds {
            let mut signal: Signal = signal(kind).map_err(|cause| ShellError::Terminal { cause })?;
            let sender = self.sender.clone();
            tokio::spawn(async move {
                while signal.recv().await.is_some() {
                    if sender.send(name).await.is_err() {
                        return;
                    }
                }
            });
        }
        Ok(())
    }
}

/// Attaches to the program and returns how it ended.
pub(crate) async fn attach_terminal(
    driven: &AttachTarget<'_>,
    attached: Attached,
    mut signals: PassedSignals,
) -> Result<ProgramEnd, ShellError> {
    let Attached { input, mut output } = attached;
    let mut errors = Vec::new();
    let raw = if driven.terminal { Some(Raw::enter()?) } else { None };
    signals.add(FURTHER)?;
    let mut resized = signal(SignalKind::window_change()).map_err(|cause| ShellError::Terminal { cause })?;
    let _feeding = feed(input);
    driven.resize().await;
    let mut deaf = false;
    let mut hung_up = false;
    loop {
        tokio::select! {
            part = output.next() => match part {
                Some(Ok(part)) if !deaf => {
                    if let (Output::Err(bytes), false) = (&part, driven.terminal) {
                        keep(&mut errors, bytes);
                    }
                    deaf = driven.show(&part).await;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    return Err(ShellError::EngineGone { cause: error.to_string() });
                }
                None => break,
            },
            _ = resized.recv() => driven.resize().await,
            Some(name) = signals.receiver.recv() => {
                driven.pass(name).await;
                // The terminal is closed: a command next to the container's own has no reader.
                hung_up = name == "HUP" && driven.terminal && matches!(driven.program, Program::Exec(_));
                if hung_up {
                    break;
                }
            }
        }
    }
    drop(raw);
    if hung_up {
        return Ok(ProgramEnd { code: 129, errors });
    }
    let code = driven.containers.exit_code(&driven.program).await.map_err(|error| match error {
        EngineError::Unreachable { .. } | EngineError::Lost { .. } => {
            ShellError::EngineGone { cause: error.to_string() }
        }
        other => other.into(),
    })?;
    Ok(ProgramEnd { code: u8::try_from(code & 0xff).expect("masked"), errors })
}

impl AttachTarget<'_> {
    /// Prints output; returns true if its reader is gone.
    async fn show(&self, part: &Output) -> bool {
        let written = match part {
            Output::Out(bytes) => Printer.pass_out(bytes),
            Output::Err(bytes) => Printer.pass_err(bytes),
        };
        if written.is_err() {
            self.pass("PIPE").await;
        }
        written.is_err()
    }

    async fn resize(&self) {
        if let Some(size) = size().filter(|_| self.terminal)
            && let Err(error) = self.containers.resize(&self.program, size).await
        {
            tracing::debug!(%error, "cannot set the terminal size");
        }
    }

    /// Sends a signal to the program.
    async fn pass(&self, name: &str) {
        let sent = match (&self.program, &self.pid_file) {
            (Program::Command(id), _) => self.containers.signal(id, name).await,
            (Program::Exec(_), Some(file)) => {
                let script = format!("kill -s {name} \"$(cat {file})\"");
                let command = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
                let request = ExecRequest { command, ..ExecRequest::default() };
                self.containers.exec(self.container, &request).await.map(drop)
            }
            (Program::Exec(_), None) => Ok(()),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, name, "a signal was not passed on");
        }
    }
}

/// Sends what is typed to the program, then the end of it.
fn feed(mut input: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>) -> AbortOnDropHandle<()> {
    let mut typed: mpsc::Receiver<Bytes> = typed();
    AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(bytes) = typed.recv().await {
            // A program that reads no more is no error of ours.
            if input.write_all(&bytes).await.and(input.flush().await).is_err() {
                return;
            }
        }
        let _ = input.shutdown().await;
        // Kept: dropping it would end the connection, and the output with it.
        std::future::pending::<()>().await;
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_an_output_is_kept_and_no_more() {
        let mut errors = Vec::new();
        for _ in 0..10 {
            keep(&mut errors, &vec![b'x'; KEPT / 2]);
        }
        keep(&mut errors, b"the last line\n");
        assert!(errors.ends_with(b"the last line\n") && errors.len() <= 2 * KEPT, "{}", errors.len());
        keep(&mut errors, &vec![b'y'; 5 * KEPT]);
        assert!(errors.ends_with(b"yy") && errors.len() <= 2 * KEPT, "{}", errors.len());
    }
}
