//! Waits for the end of containers.

use bollard::errors::Error;
use futures_util::StreamExt as _;

use crate::engine::error::EngineError;
use crate::engine::transport::daemon::Daemon;

/// Returns the exit code of a started container. Call it after the start, when `not-running` cannot be true too early.
pub(super) async fn wait_for(daemon: &Daemon, name: &str, during: &str) -> Result<i64, EngineError> {
    // bollard sends nothing before the first poll, and returns an exit code other than 0 as an error.
    match std::pin::pin!(daemon.client.wait_container(name, None)).next().await {
        Some(Ok(answer)) => Ok(answer.status_code),
        Some(Err(Error::DockerContainerWaitError { error, code })) if error.is_empty() => Ok(code),
        Some(Err(error)) => Err(daemon.fault(during, error)),
        None => {
            Err(EngineError::Lost { during: during.to_owned(), cause: "the response ended early".to_owned() })
        }
    }
}
