//! The trait [`Runner`] and its values: throwaway containers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use camino::Utf8PathBuf;

use crate::engine::error::EngineError;
use crate::engine::gpu::GpuRequest;
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
    /// Capabilities of a sandbox by the engine's names: `DAC_OVERRIDE`.
    pub keeps: Vec<String>,
    /// Step id of reported stderr lines; `None`: not reported.
    pub report_as: Option<String>,
    /// Paths to collect after the exit (each a file or directory, as a tar).
    pub collect: Vec<String>,
}

/// The result of a throwaway container.
#[derive(Debug, Clone, Default)]
pub struct RunOutcome {
    /// The exit code.
    pub code: i64,
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
