//! An engine for tests that need one run of a container only: gives a known outcome and remembers what was asked.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use camino::Utf8PathBuf;

use crate::engine::{BuildRequest, Engine, EngineError, EngineInfo, ImageInfo, RunOutcome, RunRequest};
use crate::report::Reporter;

/// Runs give `outcome`; everything else fails the test.
#[derive(Default)]
pub(super) struct OneRun {
    pub(super) outcome: RunOutcome,
    pub(super) asked: Mutex<Vec<RunRequest>>,
}

#[async_trait]
impl Engine for OneRun {
    fn info(&self) -> &EngineInfo {
        unreachable!("nothing but runs is asked")
    }
    async fn image(&self, _: &str) -> Result<Option<ImageInfo>, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn build(&self, _: BuildRequest, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn tag(&self, _: &str, _: &str) -> Result<(), EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn remove_image(&self, _: &str) -> Result<(), EngineError> {
        unreachable!("nothing but runs is asked")
    }
    fn discard_image(&self, _: &str) {
        unreachable!("nothing but runs is asked")
    }
    async fn pull(&self, _: &str, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn import(&self, _: Utf8PathBuf, _: &str, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn run(&self, request: RunRequest, _: Arc<dyn Reporter>) -> Result<RunOutcome, EngineError> {
        self.asked.lock().expect("no test panics while it holds this").push(request);
        Ok(self.outcome.clone())
    }
    async fn run_and_export(
        &self,
        _: RunRequest,
        _: Utf8PathBuf,
        _: Arc<dyn Reporter>,
    ) -> Result<RunOutcome, EngineError> {
        unreachable!("nothing but runs is asked")
    }
}
