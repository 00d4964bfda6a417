//! Containers that outlive the call that made them, in our words: what [`Containers`] takes and gives.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio::io::AsyncWrite;

use super::{ContainerFile, EngineError, GpuRequest};

/// What a mount shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountSource {
    /// A folder or file of the engine's host.
    Folder(String),
    /// A named volume.
    Volume(String),
}

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What it shows.
    pub source: MountSource,
    /// Where.
    pub target: String,
    /// True if it cannot be written to.
    pub read_only: bool,
}

/// A port of the engine's host that leads into a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// The address it listens on.
    pub address: IpAddr,
    /// The port there; 0: the engine chooses.
    pub host: u16,
    /// The port inside.
    pub container: u16,
}

/// What a container may use at most; `None`: what there is.
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
    /// Locked memory and stack without limit, which NCCL wants; an engine may refuse it.
    pub unlocked: bool,
}

/// A container to create. Its root is read-only, it has no capabilities and gains no privileges.
#[derive(Debug, Clone)]
pub struct ContainerRequest {
    /// Its name.
    pub name: String,
    /// The image's id.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    /// True if the image's entrypoint is process 1; else the engine's init is.
    pub own_entrypoint: bool,
    /// Environment, as `NAME=value`.
    pub env: Vec<String>,
    /// `uid:gid`.
    pub user: String,
    /// How user ids outside and inside relate, if the engine is to be told (`keep-id`).
    pub user_namespace: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// True if the command gets a terminal.
    pub terminal: bool,
    /// Where the command starts.
    pub workdir: String,
    /// Mounts.
    pub mounts: Vec<Mount>,
    /// Ports.
    pub ports: Vec<Port>,
    /// The network's name.
    pub network: String,
    /// GPUs; `None`: none.
    pub gpus: Option<GpuRequest>,
    /// Limits.
    pub limits: Limits,
}

/// A named volume that does not exist yet and is filled before a container uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshVolume {
    /// Its name.
    pub name: String,
    /// Where containers mount it.
    pub target: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// True if it begins with what the image has at that place, as its owner has it.
    pub copies: bool,
    /// Who owns its folder, by numbers; `None`: as the image has it.
    pub owner: Option<(u32, u32)>,
}

/// Files read from an image, each as a tar, by path.
pub type Tars = BTreeMap<String, Vec<u8>>;

/// Makes files from what was read of an image.
pub type Fill = Box<dyn Fn(&Tars) -> Vec<OwnedFile> + Send + Sync>;

/// Volumes to make and fill.
pub struct Preparation {
    /// The image's id.
    pub image: String,
    /// How user ids outside and inside relate, as in the containers that will use the volumes.
    pub user_namespace: Option<String>,
    /// The volumes.
    pub volumes: Vec<FreshVolume>,
    /// What of the image is read first.
    pub reads: Vec<String>,
    /// Makes the files put into the volumes from what was read: paths below a target, with owners.
    pub fill: Fill,
}

/// A file with its owner.
#[derive(Debug, Clone)]
pub struct OwnedFile {
    /// The file.
    pub file: ContainerFile,
    /// uid and gid.
    pub owner: (u32, u32),
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
    /// The engine's words: `Up 3 minutes`, `Exited (1) 2 hours ago`.
    pub status: String,
    /// When it was made, seconds since 1970.
    pub created: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Open ports: address, port of the host, port inside.
    pub ports: Vec<Port>,
}

/// A command to run in a running container.
#[derive(Debug, Clone, Default)]
pub struct ExecRequest {
    /// The command.
    pub command: Vec<String>,
    /// More environment, as `NAME=value`.
    pub env: Vec<String>,
    /// Where it starts; `None`: where the container does.
    pub workdir: Option<String>,
    /// True if it gets a terminal.
    pub terminal: bool,
    /// True if it is given input.
    pub stdin: bool,
}

/// What a program writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// On standard output, or on its terminal.
    Out(Bytes),
    /// On standard error.
    Err(Bytes),
}

/// A program's input and output.
pub struct Attached {
    /// Shutting it down is the end of the program's input.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Ends with the program.
    pub output: BoxStream<'static, io::Result<Output>>,
}

/// A program that has a terminal or output of its own: a container's command or one run beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The command of a container, by id or name.
    Command(String),
    /// A command run in a container: its own id.
    Exec(String),
}

/// What is done with containers that last.
#[async_trait]
pub trait Containers: Send + Sync {
    /// Makes and fills volumes; on every failure none of them stays.
    async fn prepare(&self, preparation: Preparation) -> Result<(), EngineError>;
    /// True if there is a volume of that name.
    async fn has_volume(&self, name: &str) -> Result<bool, EngineError>;
    /// The volumes with that label: each name and the label's value.
    async fn volumes(&self, label: &str) -> Result<Vec<(String, String)>, EngineError>;
    /// Removes a volume; absent is fine.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;
    /// Creates a container, which does not run yet, and gives its id.
    async fn create(&self, request: &ContainerRequest) -> Result<String, EngineError>;
    /// Starts a container.
    async fn start(&self, container: &str) -> Result<(), EngineError>;
    /// Input and output of a container's command; before the start, so that nothing is lost.
    async fn attach(&self, container: &str, terminal: bool) -> Result<Attached, EngineError>;
    /// Starts a command in a running container.
    async fn exec(&self, container: &str, request: &ExecRequest) -> Result<(Program, Attached), EngineError>;
    /// Waits for the end of a program and gives its exit code.
    async fn exit_code(&self, program: &Program) -> Result<i64, EngineError>;
    /// True if another command than that one runs beside the container's own.
    async fn others_run(&self, container: &str, but: &Program) -> Result<bool, EngineError>;
    /// Tells a program the size of its terminal: columns and rows.
    async fn resize(&self, program: &Program, size: (u16, u16)) -> Result<(), EngineError>;
    /// Sends a signal by name to a container's command.
    async fn signal(&self, container: &str, name: &str) -> Result<(), EngineError>;
    /// Containers that carry the label, running or not, newest first.
    async fn containers(&self, label: &str) -> Result<Vec<ContainerInfo>, EngineError>;
    /// Stops a container, kills it after that many seconds, and removes it. Absent is fine.
    async fn stop(&self, container: &str, seconds: i32) -> Result<(), EngineError>;
    /// As removing at once, but for guards that run while a future is dropped: waits, and fails silently.
    fn discard_container(&self, container: &str);
    /// What a container's command has written, and with `follow` what it goes on writing.
    fn logs(
        &self,
        container: &str,
        follow: bool,
        tail: Option<u32>,
    ) -> BoxStream<'static, Result<Output, EngineError>>;
    /// Process ids of a container on the engine's host.
    async fn processes(&self, container: &str) -> Result<Vec<u32>, EngineError>;
}
