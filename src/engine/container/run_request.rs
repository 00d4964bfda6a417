//! The trait [`Runner`] and its values: throwaway containers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use camino::Utf8PathBuf;

use crate::engine::error::EngineError;
use crate::engine::gpu::GpuRequest;
use crate::engine::info::EngineInfo;
use crate::model::request::network::Network;
use crate::report::Reporter;

/// A file copied into a container before its start.
#[derive(Debug, Clone)]
pub struct ContainerFile {
    /// Absolute path in the container.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A throwaway container: created, filled with files, started, awaited, and removed on every path.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The image, by tag or id.
    pub image: String,
    /// The command; replaces the image's entrypoint.
    pub command: Vec<String>,
    /// Environment, as `NAME=value`.
    pub env: Vec<String>,
    /// `uid:gid`; `None`: the image's.
    pub user: Option<String>,
    /// Files copied before the start, including secrets: the container is removed.
    pub files: Vec<ContainerFile>,
    /// Binds of the engine's host, `source:target:ro`, or named volumes (`name:target`).
    pub binds: Vec<String>,
    /// Network.
    pub network: Network,
    /// GPUs, if any.
    pub gpus: Option<GpuRequest>,
    /// Size of /dev/shm in bytes; `None`: the engine's 64 MB.
    pub shm_size: Option<u64>,
    /// Read-only root with a tmpfs at /tmp, only the capabilities of `keeps`, no new privileges.
    pub sandbox: bool,
    /// Capabilities of a container with a sandbox or limits, by the engine's names: `DAC_OVERRIDE`.
    pub keeps: Vec<String>,
    /// The bounds of a container whose code is not trusted; `None`: none. Nothing it prints enters the engine's log then.
    pub limits: Option<RunLimits>,
    /// Step id of reported stderr lines; `None`: not reported.
    pub report_as: Option<String>,
    /// Bytes of stdout and stderr together, where `limits` has none; `None`: 64 MiB. More is an error.
    pub most_output: Option<usize>,
    /// Paths to collect after the exit (each a file or directory, as a tar).
    pub collect: Vec<String>,
    /// Bytes of the collected tars together; `None`: 64 MiB. More is an error.
    pub most_collected: Option<u64>,
}

/// Why the root of a container with code that is not ours is not read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritableRoot {
    /// What the image's user may write is to be seen: only the agent from outside runs.
    SeenByTheAgent,
}

impl RunRequest {
    /// A container with code that is not ours: without network, new privileges and capabilities, with a read-only root and bounds of
    /// processes, memory, time and output. The one way to start such a container.
    pub fn bounded(image: &str, command: Vec<String>, limits: RunLimits) -> Self {
        Self {
            image: image.to_owned(),
            command,
            network: Network::None,
            sandbox: true,
            limits: Some(limits),
            ..Self::default()
        }
    }

    /// The same with a writable root, for that reason.
    #[must_use]
    pub fn with_writable_root(self, _: WritableRoot) -> Self {
        Self { sandbox: false, ..self }
    }
}

/// Processes and threads: eight GPUs with a process each, and OpenMP threads for every core of a large host.
const PROCESSES: i64 = 16_384;
/// Bytes of /tmp where the engine does not report its memory, and the least.
const TMP: u64 = 2 << 30;

impl RunLimits {
    /// The bounds on an engine: most of its memory, and what is given of time and output.
    pub fn on(engine: &EngineInfo, time: Duration, output: usize) -> Self {
        let memory = engine.memory.filter(|_| !engine.unkept_limits.contains(&"--memory"));
        Self {
            processes: PROCESSES,
            memory: memory.and_then(|bytes| i64::try_from(bytes / 8 * 7).ok()),
            tmp: engine.memory.map_or(TMP, |bytes| (bytes / 4).max(TMP)),
            time,
            output,
        }
    }
}

/// The bounds of a container whose code is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Processes and threads at one moment.
    pub processes: i64,
    /// Bytes of memory, /tmp included; `None`: as much as the engine has.
    pub memory: Option<i64>,
    /// Bytes of /tmp.
    pub tmp: u64,
    /// Time from the start to the end.
    pub time: Duration,
    /// Bytes of stdout and stderr together.
    pub output: usize,
}

/// The bound that ended a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedLimit {
    /// It ran longer.
    Time(Duration),
    /// It printed more bytes.
    Output(usize),
    /// It required more bytes of memory.
    Memory(i64),
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        match self {
            Self::Time(time) if time.as_secs() < 120 => write!(f, "ran for more than {} s", time.as_secs()),
            Self::Time(time) => write!(f, "ran for more than {} min", time.as_secs() / 60),
            Self::Output(bytes) => write!(f, "printed more than {} MiB", mib(*bytes as u64)),
            Self::Memory(bytes) => {
                write!(f, "required more than {} MiB of memory", mib(bytes.unsigned_abs()))
            }
        }
    }
}

/// The result of a throwaway container.
#[derive(Debug, Clone, Default)]
pub struct RunOutcome {
    /// The exit code; 137 if a limit ended it.
    pub code: i64,
    /// The limit that ended it.
    pub reached: Option<ReachedLimit>,
    /// Complete stdout.
    pub stdout: Vec<u8>,
    /// Complete stderr.
    pub stderr: Vec<u8>,
    /// The tar of each existing path of `collect`.
    pub collected: BTreeMap<String, Vec<u8>>,
}

/// Runs of throwaway containers.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Runs a throwaway container to its end.
    async fn run(&self, request: RunRequest, reporter: Arc<dyn Reporter>) -> Result<RunOutcome, EngineError>;
    /// Runs a throwaway container to its end, then writes its file system as a tar to `archive` if it exited with 0.
    async fn run_and_export(
        &self,
        request: RunRequest,
        archive: Utf8PathBuf,
        reporter: Arc<dyn Reporter>,
    ) -> Result<RunOutcome, EngineError>;
}
