//! The trait [`Containers`] and its values: containers that outlive the process.

use std::collections::BTreeMap;
use std::net::IpAddr;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::engine::container::program::{Output, Programs};
use crate::engine::container::volume::Volumes;
use crate::engine::error::EngineError;
use crate::engine::gpu::GpuRequest;

/// The label of a container of `shell`: its name in `ps`.
pub const SHELL_LABEL: &str = "io.envforge.shell";
/// The label of a container that ends with its owner process.
pub const OWNER_LABEL: &str = "io.envforge.shell.owner";

/// The source of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSource {
    /// A directory or file of the engine's host.
    Folder(String),
    /// A named volume.
    Volume(String),
}

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The source.
    pub source: MountSource,
    /// The path in the container.
    pub target: String,
    /// Whether the mount is read-only.
    pub read_only: bool,
}

/// A symbolic link in a container: it leads to a path of the container, whatever lies there on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The path in the container.
    pub path: String,
    /// Where it leads, absolute.
    pub to: String,
}

/// A published port of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// The listening address.
    pub address: IpAddr,
    /// The port of the host; 0: the engine selects one.
    pub host: u16,
    /// The port of the container.
    pub container: u16,
}

/// Resource limits of a container; `None`: unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<i64>,
    /// Billionths of a processor.
    pub nano_cpus: Option<i64>,
    /// Bytes of /dev/shm.
    pub shm_size: Option<i64>,
    /// Processes.
    pub pids: Option<i64>,
    /// Unlimited locked memory and stack, which NCCL requires; an engine may refuse it.
    pub unlocked: bool,
}

/// A container to create, with a read-only root, without capabilities and without new privileges.
#[derive(Debug, Clone)]
pub struct ContainerRequest {
    /// Its name.
    pub name: String,
    /// The image's id.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    /// Whether the image's entrypoint is process 1; otherwise the engine's init.
    pub own_entrypoint: bool,
    /// Environment, as `NAME=value`.
    pub env: Vec<String>,
    /// `uid:gid`.
    pub user: String,
    /// The user namespace mode (`keep-id`), if any.
    pub user_namespace: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the command gets a terminal.
    pub terminal: bool,
    /// The working directory.
    pub workdir: String,
    /// Mounts.
    pub mounts: Vec<Mount>,
    /// Links. With one the root is not read-only, since the engine writes it there; only root could change something of it.
    pub links: Vec<Link>,
    /// Ports.
    pub ports: Vec<Port>,
    /// The network's name.
    pub network: String,
    /// GPUs, if any.
    pub gpus: Option<GpuRequest>,
    /// Other devices: files of the engine's host, or directories of such, each under its own path.
    pub devices: Vec<String>,
    /// Whether an SSH server runs there as root. It handles who is not yet logged in as another user without files, which needs a
    /// few capabilities and an empty directory; without it the container has neither.
    pub has_sshd_of_root: bool,
    /// Limits.
    pub limits: Limits,
}

/// A container of the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerInfo {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The image's id.
    pub image: String,
    /// `created`, `running`, `exited`…
    pub state: String,
    /// The engine's text: `Up 3 minutes`, `Exited (1) 2 hours ago`.
    pub status: String,
    /// Creation time, seconds since 1970.
    pub created: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Published ports.
    pub ports: Vec<Port>,
}

/// The containers of an engine that outlive the process, with their programs and volumes.
#[async_trait]
pub trait Containers: Programs + Volumes {
    /// Creates a stopped container and returns its id.
    async fn create(&self, request: &ContainerRequest) -> Result<String, EngineError>;
    /// Starts a container.
    async fn start(&self, container: &str) -> Result<(), EngineError>;
    /// Sends a signal by name to a container's command.
    async fn signal(&self, container: &str, name: &str) -> Result<(), EngineError>;
    /// Lists containers with the label, running or not, newest first.
    async fn containers(&self, label: &str) -> Result<Vec<ContainerInfo>, EngineError>;
    /// Stops a container, kills it after that many seconds, and removes it. Succeeds if absent.
    async fn stop(&self, container: &str, seconds: i32) -> Result<(), EngineError>;
    /// Removes a container from `Drop`: blocks until done and logs a failure.
    fn discard_container(&self, container: &str);
    /// Returns the output of a container's command so far, and with `follow` its further output.
    fn logs(
        &self,
        container: &str,
        follow: bool,
        tail: Option<u32>,
    ) -> BoxStream<'static, Result<Output, EngineError>>;
    /// Returns the process ids of a container on the engine's host.
    async fn processes(&self, container: &str) -> Result<Vec<u32>, EngineError>;
}
