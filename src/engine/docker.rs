//! Docker, or an engine that speaks its API: the one real [`Engine`].
//!
//! Only hands over: the work is in `images`, `run`, `export` and `build`.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;

use super::connect::{Daemon, EngineSettings};
use super::{BuildRequest, Engine, EngineError, EngineInfo, ImageInfo, RunOutcome, RunRequest};
use crate::report::Reporter;

/// A connected Docker daemon.
#[derive(Debug)]
pub struct Docker {
    daemon: Daemon,
    info: EngineInfo,
}

impl Docker {
    /// Finds the daemon the settings lead to and asks it what it is.
    pub async fn connect(settings: &EngineSettings) -> Result<Self, EngineError> {
        let (daemon, info) = Daemon::connect(settings).await?;
        Ok(Self { daemon, info })
    }
}

#[async_trait]
impl Engine for Docker {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError> {
        self.daemon.image(reference).await
    }

    async fn build(
        &self,
        request: BuildRequest,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        self.daemon.build(&request, reporter.as_ref()).await
    }

    async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError> {
        self.daemon.tag(image, tag).await
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        self.daemon.remove_image(reference).await
    }

    fn discard_image(&self, reference: &str) {
        let (daemon, reference) = (self.daemon.clone(), reference.to_owned());
        finish_on_a_thread(async move {
            if let Err(error) = daemon.remove_image(&reference).await {
                tracing::warn!(%reference, %error, "image could not be removed");
            }
        });
    }

    async fn pull(&self, reference: &str, reporter: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        self.daemon.pull(reference, reporter.as_ref()).await
    }

    async fn import(
        &self,
        archive: Utf8PathBuf,
        tag: &str,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        self.daemon.import(&archive, tag, reporter).await
    }

    async fn run(&self, request: RunRequest, reporter: Arc<dyn Reporter>) -> Result<RunOutcome, EngineError> {
        self.daemon.run(&request, reporter.as_ref()).await
    }

    async fn run_and_export(
        &self,
        request: RunRequest,
        archive: Utf8PathBuf,
        reporter: Arc<dyn Reporter>,
    ) -> Result<RunOutcome, EngineError> {
        self.daemon.run_and_export(&request, &archive, reporter.as_ref()).await
    }
}

/// Runs clean-up to its end on a thread with its own runtime. For `Drop`: the caller's runtime may be about to end, and
/// must not be waited on from inside.
pub(super) fn finish_on_a_thread(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(move || {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let limited = async { tokio::time::timeout(CLEAN_UP, work).await };
                if runtime.block_on(limited).is_err() {
                    tracing::warn!("the engine did not answer a clean-up in time");
                }
            }
            Err(error) => tracing::warn!(%error, "no runtime for a clean-up"),
        }
    });
    if thread.join().is_err() {
        tracing::warn!("a clean-up ended by a panic");
    }
}

/// How long a clean-up may hold up the end of the program.
const CLEAN_UP: std::time::Duration = std::time::Duration::from_secs(15);
