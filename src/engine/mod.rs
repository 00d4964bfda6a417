//! What envforge needs of a container engine, in its own words. No bollard type crosses this boundary.
//!
//! Owns the [`Engine`] trait and its values. `docker.rs` is the one real implementation: `connect` finds the daemon,
//! `images`, `registry`, `container`, `run` and `export` speak HTTP with it, `fault` translates what it refuses.

mod address;
mod attach;
mod build;
mod connect;
mod container;
mod containers;
mod context_tar;
mod dial;
mod docker;
mod error;
mod export;
mod fault;
mod find;
mod gpu;
mod http;
mod images;
mod lasting;
mod passing;
mod plain;
mod plain_output;
mod preparing;
mod progress;
mod registry;
mod remains;
mod run;
mod session;
mod ssh;
mod stream;
mod sync;
mod tls;
mod upgrade;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use camino::Utf8PathBuf;

use crate::context::ContextEntry;
use crate::registry::{Credential, Digest, ImageRef};
use crate::report::Reporter;
use crate::versions::Machine;

pub use containers::{
    Attached, ContainerInfo, ContainerRequest, Containers, ExecRequest, Fill, FreshVolume, Limits, Mount,
    MountSource, Output, OwnedFile, Port, Preparation, Program, Tars,
};
pub use docker::Docker;
pub use error::EngineError;
pub use find::EngineSettings;
pub use gpu::{GpuAccess, GpuChoice, GpuRequest, shm_size};
pub use lasting::{OWNER_LABEL, SHELL_LABEL};
pub use passing::PassingTag;

/// What the engine said of itself, asked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// `Docker` or `Podman`.
    pub name: String,
    /// Its version: `20.10.24`.
    pub version: String,
    /// The API version spoken: `1.41`.
    pub api: String,
    /// The processor it runs containers for.
    pub machine: Machine,
    /// How it builds.
    pub builds: Builds,
    /// Names of the OCI runtimes it offers.
    pub runtimes: Vec<String>,
    /// CDI devices it lists.
    pub cdi_devices: Vec<String>,
    /// True if it works without root.
    pub rootless: bool,
    /// Limits of a container that it does not keep, by their options: `--memory`, `--cpus`, `--pids-limit`.
    pub unkept_limits: Vec<&'static str>,
    /// True if the daemon runs on this machine (unix socket), so that its disk is ours.
    pub local: bool,
    /// The daemon's data folder.
    pub data_root: Option<String>,
    /// What keeps containers' device rules: `systemd` or `cgroupfs`.
    pub cgroup_driver: Option<String>,
    /// What keeps its layers: `overlay2`, `fuse-overlayfs`, …
    pub storage_driver: Option<String>,
}

/// How an engine builds: found out once, at the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builds {
    /// With BuildKit, in a session.
    BuildKit,
    /// From an archive sent to `/build`.
    Plain {
        /// `RUN --mount` works.
        mounts: bool,
        /// Secrets can be sent beside the archive.
        secrets: bool,
    },
}

impl EngineInfo {
    /// True if it is Podman, which keeps volumes its own way.
    pub fn is_podman(&self) -> bool {
        self.name == "Podman"
    }

    /// True if BuildKit is served.
    pub fn supports_buildkit(&self) -> bool {
        self.builds == Builds::BuildKit
    }

    /// True if `RUN --mount` works, without which nothing of ours can be built.
    pub fn supports_mounts(&self) -> bool {
        matches!(self.builds, Builds::BuildKit | Builds::Plain { mounts: true, .. })
    }

    /// True if a build may read secrets.
    pub fn supports_secrets(&self) -> bool {
        matches!(self.builds, Builds::BuildKit | Builds::Plain { secrets: true, .. })
    }

    /// True if the engine lists devices of the container device interface.
    pub fn supports_cdi(&self) -> bool {
        !self.cdi_devices.is_empty()
    }

    /// True if that OCI runtime is offered.
    pub fn supports_runtime(&self, name: &str) -> bool {
        self.runtimes.iter().any(|runtime| runtime == name)
    }
}

/// An image as the engine knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageInfo {
    /// `sha256:…` of the configuration.
    pub id: String,
    /// Tags it carries.
    pub tags: Vec<String>,
    /// Registry digests it carries (`name@sha256:…`).
    pub digests: Vec<String>,
    /// Size in bytes, all layers.
    pub size: u64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Environment, as `NAME=value`.
    pub env: Vec<String>,
    /// The configured user.
    pub user: String,
    /// Layer diff ids, lowest first.
    pub layers: Vec<String>,
    /// `created_by` lines of the history, oldest first.
    pub history: Vec<String>,
    /// What each of them added, bytes.
    pub sizes: Vec<u64>,
    /// The processor.
    pub architecture: String,
}

impl ImageInfo {
    /// The digest under which the image's own registry has it, as the engine remembers from a pull or push.
    pub fn digest_in(&self, name: &ImageRef) -> Option<Digest> {
        let of = |text: &String| {
            let known: ImageRef = text.parse().ok()?;
            (known.name() == name.name()).then(|| known.digest().cloned()).flatten()
        };
        self.digests.iter().find_map(of)
    }
}

/// Where containers and builds get their network from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// The engine's bridge.
    #[default]
    Bridge,
    /// The engine host's own network.
    Host,
    /// None at all.
    None,
}

/// A secret a build or container may read but never keep.
#[derive(Clone)]
pub struct Secret {
    /// Its id in `RUN --mount=type=secret,id=…`.
    pub id: String,
    /// Its bytes (at most 500 KB).
    pub bytes: Bytes,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({}, {} bytes)", self.id, self.bytes.len())
    }
}

/// An image to build.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The context; must hold `Dockerfile`.
    pub context: Vec<ContextEntry>,
    /// Secrets served to the build.
    pub secrets: Vec<Secret>,
    /// Docker's predefined proxy arguments only (`HTTPS_PROXY`…).
    pub build_args: BTreeMap<String, String>,
    /// Labels put on the image beside those of the Dockerfile.
    pub labels: BTreeMap<String, String>,
    /// Network of RUN steps.
    pub network: Network,
    /// Do not use cached layers.
    pub no_cache: bool,
    /// A private tag the result gets, so that it can be found: the caller removes it.
    pub scratch_tag: String,
}

/// A file put into a container before it starts.
#[derive(Debug, Clone)]
pub struct ContainerFile {
    /// Absolute path inside.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A throwaway container: created, fed with files, started, waited for, removed on every path.
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
    /// Files put in before the start. Secrets are given this way too: the container is removed.
    pub files: Vec<ContainerFile>,
    /// Binds of the engine's host, `source:target:ro`; named volumes too (`name:target`).
    pub binds: Vec<String>,
    /// Network.
    pub network: Network,
    /// GPUs; `None`: none.
    pub gpus: Option<GpuRequest>,
    /// Size of /dev/shm in bytes; `None`: the engine's 64 MB.
    pub shm_size: Option<u64>,
    /// Read-only root with a tmpfs at /tmp, no capabilities but those it keeps, no new privileges.
    pub sandbox: bool,
    /// Capabilities a sandbox keeps, as the engine names them: `DAC_OVERRIDE`.
    pub keeps: Vec<String>,
    /// Step id under which stderr lines are reported; `None`: not reported.
    pub report_as: Option<String>,
    /// Paths whose content is wanted after the exit (each a file or folder, as a tar).
    pub collect: Vec<String>,
}

/// What came out of a throwaway container.
#[derive(Debug, Clone, Default)]
pub struct RunOutcome {
    /// The exit code.
    pub code: i64,
    /// All of stdout.
    pub stdout: Vec<u8>,
    /// All of stderr.
    pub stderr: Vec<u8>,
    /// For each path of `collect` that exists: its tar.
    pub collected: BTreeMap<String, Vec<u8>>,
}

/// An image to pull.
#[derive(Debug, Clone)]
pub struct PullRequest {
    /// Its name with tag or digest.
    pub reference: String,
    /// The processor it is wanted for.
    pub machine: Machine,
    /// The login for its registry, if one is known.
    pub credential: Option<Credential>,
}

/// A container engine.
#[async_trait]
pub trait Engine: Send + Sync {
    /// What the engine said of itself when it was connected.
    fn info(&self) -> &EngineInfo;
    /// The image of that tag or id, if the engine has it.
    async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError>;
    /// The images that carry a label of that name, in the engine's order.
    async fn images(&self, label: &str) -> Result<Vec<ImageInfo>, EngineError>;
    /// Builds an image and gives it; dropping the future cancels the build in the daemon.
    async fn build(
        &self,
        request: BuildRequest,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError>;
    /// Puts a tag on an image.
    async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError>;
    /// Takes a tag off, or removes an untagged image; absent is fine.
    async fn remove_image(&self, reference: &str) -> Result<(), EngineError>;
    /// As [`Engine::remove_image`], but for guards that run while a future is dropped: waits, and fails silently.
    fn discard_image(&self, reference: &str);
    /// Pulls an image by reference, with a login if its registry wants one.
    async fn pull(&self, pull: PullRequest, reporter: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError>;
    /// Pushes a tag to the registry it names and gives the digest under which it is there.
    async fn push(
        &self,
        reference: &str,
        credential: Option<&Credential>,
        reporter: Arc<dyn Reporter>,
    ) -> Result<Digest, EngineError>;
    /// Makes an image of one layer from a tar file, under a tag.
    async fn import(
        &self,
        archive: Utf8PathBuf,
        tag: &str,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError>;
    /// Writes an image with its layers to a file, as `docker save` does.
    async fn save(&self, image: &str, archive: Utf8PathBuf) -> Result<(), EngineError>;
    /// Takes in what such a file holds, under the tags it names.
    async fn load(&self, archive: Utf8PathBuf, reporter: Arc<dyn Reporter>) -> Result<(), EngineError>;
    /// Reads files of an image without running anything of it: for each path that exists its tar.
    async fn read_files(&self, image: &str, paths: &[&str])
    -> Result<BTreeMap<String, Vec<u8>>, EngineError>;
    /// Runs a throwaway container to its end.
    async fn run(&self, request: RunRequest, reporter: Arc<dyn Reporter>) -> Result<RunOutcome, EngineError>;
    /// Runs a throwaway container to its end, then writes the tar of its whole file system to `archive`.
    async fn run_and_export(
        &self,
        request: RunRequest,
        archive: Utf8PathBuf,
        reporter: Arc<dyn Reporter>,
    ) -> Result<RunOutcome, EngineError>;
}
