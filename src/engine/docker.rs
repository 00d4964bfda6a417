//! Docker, or an engine that speaks its API: the one real [`Engine`] and [`Containers`].
//!
//! Only hands over: the work is in `images`, `run`, `export`, `build`, `plain`, `lasting`, `attach` and `preparing`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use futures_util::stream::BoxStream;

use super::connect::Daemon;
use super::container::remove_by_name;
use super::find::EngineSettings;
use super::{
    Attached, BuildRequest, ContainerInfo, ContainerRequest, Containers, Engine, EngineError, EngineInfo,
    ExecRequest, ImageInfo, Output, Preparation, Program, PullRequest, RunOutcome, RunRequest,
};
use crate::registry::{Credential, Digest};
use crate::report::Reporter;

/// A connected Docker daemon.
#[derive(Debug)]
pub struct Docker {
    daemon: Daemon,
    info: EngineInfo,
}

impl Docker {
    /// Finds the daemon the settings lead to, asks it what it is, and removes what killed runs left in it.
    pub async fn connect(settings: &EngineSettings) -> Result<Self, EngineError> {
        let (daemon, info) = Daemon::connect(settings).await?;
        if let Err(error) = daemon.remove_remains().await {
            // A courtesy: the next run tries again.
            tracing::warn!(%error, "what a killed run left could not be removed");
        }
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
        if self.info.supports_buildkit() {
            self.daemon.build(&request, reporter.as_ref()).await
        } else {
            self.daemon.build_plain(&request, &self.info, reporter.as_ref()).await
        }
    }

    async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError> {
        self.daemon.tag(image, tag).await
    }

    async fn images(&self, label: &str) -> Result<Vec<ImageInfo>, EngineError> {
        self.daemon.images(label).await
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        self.daemon.remove_image(reference).await
    }

    fn discard_image(&self, reference: &str) {
        let (daemon, reference) = (self.daemon.clone(), reference.to_owned());
        finish_on_a_thread(async move {
            if let Err(error) = patiently(|| daemon.remove_image(&reference)).await {
                tracing::warn!(%reference, %error, "image could not be removed");
            }
        });
    }

    async fn pull(&self, pull: PullRequest, reporter: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        let foreign = pull.machine != self.info.machine;
        self.daemon.pull(&pull, foreign, reporter.as_ref()).await
    }

    async fn push(
        &self,
        reference: &str,
        credential: Option<&Credential>,
        reporter: Arc<dyn Reporter>,
    ) -> Result<Digest, EngineError> {
        self.daemon.push(reference, credential, reporter.as_ref()).await
    }

    async fn import(
        &self,
        archive: Utf8PathBuf,
        tag: &str,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        self.daemon.import(&archive, tag, reporter).await
    }

    async fn save(&self, image: &str, archive: Utf8PathBuf) -> Result<(), EngineError> {
        self.daemon.save(image, &archive).await
    }

    async fn load(&self, archive: Utf8PathBuf, reporter: Arc<dyn Reporter>) -> Result<(), EngineError> {
        self.daemon.load(&archive, reporter).await
    }

    async fn read_files(
        &self,
        image: &str,
        paths: &[&str],
    ) -> Result<BTreeMap<String, Vec<u8>>, EngineError> {
        self.daemon.read_files(image, paths).await
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

#[async_trait]
impl Containers for Docker {
    async fn prepare(&self, preparation: Preparation) -> Result<(), EngineError> {
        self.daemon.prepare(preparation, self.info.is_podman()).await
    }

    async fn has_volume(&self, name: &str) -> Result<bool, EngineError> {
        self.daemon.has_volume(name).await
    }

    async fn volumes(&self, label: &str) -> Result<Vec<(String, String)>, EngineError> {
        self.daemon.volumes(label).await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        self.daemon.remove_volume(name).await
    }

    async fn create(&self, request: &ContainerRequest) -> Result<String, EngineError> {
        self.daemon.create_lasting(request, self.info.is_podman()).await
    }

    async fn start(&self, container: &str) -> Result<(), EngineError> {
        self.daemon.start_lasting(container).await
    }

    async fn attach(&self, container: &str, terminal: bool) -> Result<Attached, EngineError> {
        self.daemon.attach(container, terminal).await
    }

    async fn exec(&self, container: &str, request: &ExecRequest) -> Result<(Program, Attached), EngineError> {
        self.daemon.exec(container, request).await
    }

    async fn exit_code(&self, program: &Program) -> Result<i64, EngineError> {
        self.daemon.exit_code(program).await
    }

    async fn others_run(&self, container: &str, but: &Program) -> Result<bool, EngineError> {
        self.daemon.others_run(container, but).await
    }

    async fn resize(&self, program: &Program, size: (u16, u16)) -> Result<(), EngineError> {
        self.daemon.resize(program, size).await
    }

    async fn signal(&self, container: &str, name: &str) -> Result<(), EngineError> {
        self.daemon.signal(container, name).await
    }

    async fn containers(&self, label: &str) -> Result<Vec<ContainerInfo>, EngineError> {
        self.daemon.lasting(label).await
    }

    async fn stop(&self, container: &str, seconds: i32) -> Result<(), EngineError> {
        self.daemon.stop_lasting(container, seconds).await
    }

    fn discard_container(&self, container: &str) {
        let (daemon, container) = (self.daemon.clone(), container.to_owned());
        finish_on_a_thread(async move {
            if let Err(error) = patiently(|| remove_by_name(&daemon, &container)).await {
                tracing::warn!(%container, %error, "container could not be removed");
            }
        });
    }

    fn logs(
        &self,
        container: &str,
        follow: bool,
        tail: Option<u32>,
    ) -> BoxStream<'static, Result<Output, EngineError>> {
        self.daemon.logs_of(container, follow, tail)
    }

    async fn processes(&self, container: &str) -> Result<Vec<u32>, EngineError> {
        self.daemon.processes(container).await
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

/// Asks again for a while if the engine is away: it may be restarting, and what it holds of ours would stay.
pub(super) async fn patiently<T, F: Future<Output = Result<T, EngineError>>>(
    mut work: impl FnMut() -> F,
) -> Result<T, EngineError> {
    for _ in 0..AWAY.0 {
        match work().await {
            Err(EngineError::Lost { .. } | EngineError::Unreachable { .. }) => {
                tokio::time::sleep(AWAY.1).await;
            }
            answer => return answer,
        }
    }
    work().await
}

/// How often and how long an engine that is away is waited for by a clean-up.
const AWAY: (u32, std::time::Duration) = (10, std::time::Duration::from_millis(500));
/// How long a clean-up may hold up the end of the program.
const CLEAN_UP: std::time::Duration = std::time::Duration::from_secs(15);
