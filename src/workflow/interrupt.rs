//! Runs a command's work until it ends or a signal comes.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Exit, Failure};
use crate::report::Printer;
use crate::settings::Output;
use crate::workflow::error::CommandError;

/// Why work did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Ctrl-C, SIGTERM or SIGHUP.
    #[error("interrupted")]
    Interrupted,
    /// The async runtime or its signal handlers cannot start.
    #[error("cannot start the async runtime")]
    Runtime {
        /// The system's error.
        #[source]
        cause: std::io::Error,
    },
}

impl Failure for RunError {
    fn exit(&self) -> Exit {
        match self {
            Self::Interrupted => Exit::Interrupted,
            Self::Runtime { .. } => Exit::Outside,
        }
    }
}

/// Drives work until it ends or Ctrl-C, SIGTERM or SIGHUP comes. Dropping the work cancels it and runs its
/// guards: they return when container, tag and build are gone.
pub(crate) fn until_interrupted<T>(
    work: impl Future<Output = Result<T, CommandError>>,
    output: Output,
) -> Result<T, CommandError> {
    to_the_end(interruptible(work), output)
}

/// The work, or the error that it was interrupted.
pub(crate) async fn interruptible<T>(
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    // All of them before the work begins: a signal during its first step would kill the process.
    Signals::listen()?.interruptible(work).await
}

/// Ctrl-C, SIGTERM and SIGHUP from one moment on. Whoever does one work after the other keeps it: with a listener for each, a signal
/// between two of them would be lost, since the process has a handler from the first one on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self, RunError> {
        let listen = |kind| signal(kind).map_err(|cause| RunError::Runtime { cause });
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The work, or the error that it was interrupted; a signal since the work before interrupts it, too.
    pub(crate) async fn interruptible<T>(
        &mut self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        tokio::select! {
            result = work => result,
            () = self.received() => Err(RunError::Interrupted.into()),
        }
    }

    /// Waits for one of them, or returns at once for one that came since the last was received.
    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Drives work on a runtime of its own until it ends.
pub(crate) fn to_the_end<T>(
    work: impl Future<Output = Result<T, CommandError>>,
    output: Output,
) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|cause| RunError::Runtime { cause })?;
    let result = runtime.block_on(work);
    if result.as_ref().is_err_and(CommandError::is_interrupted) && !output.quiet {
        Printer.say("interrupted: cancelling and cleaning up");
    }
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    result
}
