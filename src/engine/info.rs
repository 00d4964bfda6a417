//! The features of an engine.

use crate::model::versions::Machine;

/// The features of an engine, read once on connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// `Docker` or `Podman`.
    pub name: String,
    /// The engine's version: `20.10.24`.
    pub version: String,
    /// The engine's own id, made when it was installed.
    pub id: Option<String>,
    /// The negotiated API version: `1.41`.
    pub api: String,
    /// The architecture of its containers.
    pub machine: Machine,
    /// The builder.
    pub builds: BuilderKind,
    /// Names of the available OCI runtimes.
    pub runtimes: Vec<String>,
    /// CDI devices.
    pub cdi_devices: Vec<String>,
    /// Whether the engine runs without root.
    pub rootless: bool,
    /// Options of container limits that the engine accepts but does not enforce: `--memory`, `--cpus`, `--pids-limit`.
    pub unkept_limits: Vec<&'static str>,
    /// Bytes of memory of its machine.
    pub memory: Option<u64>,
    /// Whether the daemon runs on this machine (unix socket) and uses its disk.
    pub local: bool,
    /// The name of its machine: another one's, if its socket leads there.
    pub host: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// The daemon's data directory.
    pub data_root: Option<String>,
    /// The cgroup driver: `systemd` or `cgroupfs`.
    pub cgroup_driver: Option<String>,
    /// The storage driver: `overlay2`, `fuse-overlayfs`, …
    pub storage_driver: Option<String>,
    /// Whether an image is complete only with the blobs that its manifest names, as in containerd's image store. A graph driver
    /// knows a layer by its content, wherever it came from.
    pub keeps_blobs: bool,
}

/// The builder of an engine, detected once on connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuilderKind {
    /// BuildKit in a session.
    BuildKit,
    /// The classic builder API: an archive sent to `/build`.
    Plain {
        /// Whether `RUN --mount` works.
        mounts: bool,
        /// Whether secrets can be sent next to the archive.
        secrets: bool,
    },
}

#[cfg(test)]
impl EngineInfo {
    /// A Docker Engine with BuildKit on this machine, without GPU.
    pub(crate) fn sample() -> Self {
        Self {
            name: "Docker".to_owned(),
            version: "28.0".to_owned(),
            id: None,
            api: "1.48".to_owned(),
            machine: Machine::X86_64,
            builds: BuilderKind::BuildKit,
            runtimes: Vec::new(),
            cdi_devices: Vec::new(),
            rootless: false,
            unkept_limits: Vec::new(),
            memory: None,
            local: true,
            host: None,
            kernel: None,
            data_root: None,
            cgroup_driver: None,
            storage_driver: None,
            keeps_blobs: false,
        }
    }
}

impl EngineInfo {
    /// Returns the features in a line of words.
    pub(crate) fn summary(&self) -> String {
        let Self { name, version, api, machine, builds, runtimes, cdi_devices, .. } = self;
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(" ") };
        let builder = match builds {
            BuilderKind::BuildKit => "BuildKit",
            BuilderKind::Plain { mounts: true, .. } => "a builder with mounts",
            BuilderKind::Plain { mounts: false, .. } => "the classic builder",
        };
        let mut text = format!(
            "{name} {version} (API {api}, {machine}): {builder}, runtimes {}, CDI devices {}",
            list(runtimes),
            list(cdi_devices)
        );
        let facts = [
            ("storage driver", self.storage_driver.clone()),
            ("cgroup driver", self.cgroup_driver.clone()),
            ("data in", self.data_root.clone()),
            ("memory", self.memory.map(|bytes| format!("{} MiB", bytes >> 20))),
            ("does not enforce", (!self.unkept_limits.is_empty()).then(|| self.unkept_limits.join(" "))),
        ];
        for (what, fact) in facts {
            text.extend(fact.map(|fact| format!(", {what} {fact}")));
        }
        for (holds, words) in [
            (self.keeps_blobs, "keeps blobs of images"),
            (self.rootless, "rootless"),
            (!self.local, "on another machine"),
        ] {
            text.extend(holds.then(|| format!(", {words}")));
        }
        text
    }

    /// Returns whether the engine is Podman, which treats volumes in its own way.
    pub fn is_podman(&self) -> bool {
        self.name == "Podman"
    }

    /// Returns whether the engine serves BuildKit.
    pub fn supports_buildkit(&self) -> bool {
        self.builds == BuilderKind::BuildKit
    }

    /// Returns whether `RUN --mount` works, which every envforge build requires.
    pub fn supports_mounts(&self) -> bool {
        matches!(self.builds, BuilderKind::BuildKit | BuilderKind::Plain { mounts: true, .. })
    }

    /// Returns whether a build may read secrets.
    pub fn supports_secrets(&self) -> bool {
        matches!(self.builds, BuilderKind::BuildKit | BuilderKind::Plain { secrets: true, .. })
    }

    /// Returns whether the engine lists CDI devices.
    pub fn supports_cdi(&self) -> bool {
        !self.cdi_devices.is_empty()
    }

    /// Returns whether the engine offers an OCI runtime of that name.
    pub fn supports_runtime(&self, name: &str) -> bool {
        self.runtimes.iter().any(|runtime| runtime == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_words() {
        let info = EngineInfo {
            runtimes: vec!["runc".to_owned(), "nvidia".to_owned()],
            memory: Some(24 << 30),
            storage_driver: Some("overlay2".to_owned()),
            unkept_limits: vec!["--memory", "--cpus"],
            rootless: true,
            local: false,
            ..EngineInfo::sample()
        };
        assert_eq!(
            info.summary(),
            "Docker 28.0 (API 1.48, x86_64): BuildKit, runtimes runc nvidia, CDI devices none, storage driver overlay2, \
             memory 24576 MiB, does not enforce --memory --cpus, rootless, on another machine"
        );
        let plain = EngineInfo {
            builds: BuilderKind::Plain { mounts: false, secrets: false },
            cdi_devices: vec!["nvidia.com/gpu=0".to_owned()],
            ..EngineInfo::sample()
        };
        let text = plain.summary();
        assert!(
            text.contains("the classic builder") && text.ends_with("CDI devices nvidia.com/gpu=0"),
            "{text}"
        );
    }
}
