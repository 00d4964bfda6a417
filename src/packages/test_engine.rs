//! A test engine that runs one container: returns a known outcome and records the request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use camino::Utf8PathBuf;

use crate::engine::{
    Builder, Engine, EngineError, EngineInfo, ImageBuildRequest, ImageInfo, Images, LayeredImage,
    PullRequest, RunOutcome, RunRequest, Runner,
};
use crate::model::image_digest::Digest;
use crate::registry::Credential;
use crate::report::Reporter;

/// Runs give `outcome`; everything else fails the test.
#[derive(Default)]
pub(super) struct FakeEngine {
    pub(super) outcome: RunOutcome,
    pub(super) asked: Mutex<Vec<RunRequest>>,
}

impl Engine for FakeEngine {
    fn info(&self) -> &EngineInfo {
        unreachable!("nothing but runs is asked")
    }
}

#[async_trait]
impl Images for FakeEngine {
    async fn image(&self, _: &str) -> Result<Option<ImageInfo>, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn images(&self, _: &str) -> Result<Vec<ImageInfo>, EngineError> {
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
    async fn push(
        &self,
        _: &str,
        _: Option<&Credential>,
        _: Arc<dyn Reporter>,
    ) -> Result<Digest, EngineError> {
        unreachable!("packages are not pushed")
    }
    async fn pull(&self, _: PullRequest, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn import(
        &self,
        _: Utf8PathBuf,
        _: &str,
        _: &str,
        _: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        unreachable!("nothing but runs is asked")
    }
    async fn save(&self, _: &str, _: Utf8PathBuf) -> Result<(), EngineError> {
        unreachable!("no image is saved")
    }
    async fn load_layers(&self, _: LayeredImage, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        unreachable!("no image is assembled")
    }
    async fn read_files(
        &self,
        _: &str,
        _: &[&str],
        _: u64,
    ) -> Result<BTreeMap<String, Vec<u8>>, EngineError> {
        unreachable!("nothing but runs is asked")
    }
}

#[async_trait]
impl Builder for FakeEngine {
    async fn build(&self, _: ImageBuildRequest, _: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        unreachable!("nothing but runs is asked")
    }
}

#[async_trait]
impl Runner for FakeEngine {
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
