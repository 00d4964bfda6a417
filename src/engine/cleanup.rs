//! Clean-up from `Drop`, where the caller's runtime may be about to end.

use std::time::Duration;

use crate::engine::error::EngineError;

/// Attempts to reach an unavailable engine, and the pause between them.
const RETRY: (u32, Duration) = (10, Duration::from_millis(500));
/// The longest delay of the program's exit by a clean-up.
const CLEAN_UP: Duration = Duration::from_secs(15);

/// Runs clean-up to its end on a thread with its own runtime. The caller's runtime may be about to end and must not be
/// blocked from inside.
pub(in crate::engine) fn finish_on_a_thread(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(move || {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let limited = async { tokio::time::timeout(CLEAN_UP, work).await };
                if runtime.block_on(limited).is_err() {
                    tracing::warn!("clean-up timed out after {} s", CLEAN_UP.as_secs());
                }
            }
            Err(error) => tracing::warn!(%error, "cannot start a clean-up"),
        }
    });
    if thread.join().is_err() {
        tracing::warn!("clean-up panicked");
    }
}

/// Retries `work` while the engine is unavailable, for example during a restart.
pub(in crate::engine) async fn retry_while_unavailable<T, F: Future<Output = Result<T, EngineError>>>(
    mut work: impl FnMut() -> F,
) -> Result<T, EngineError> {
    for _ in 0..RETRY.0 {
        match work().await {
            Err(EngineError::Lost { .. } | EngineError::Unreachable { .. }) => {
                tokio::time::sleep(RETRY.1).await;
            }
            answer => return answer,
        }
    }
    work().await
}
