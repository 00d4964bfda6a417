//! What is known of this machine, as plain values that can be printed as JSON.

use serde::Serialize;

use super::topology::GpuPair;
use crate::versions::{ComputeCapability, CudaApiVersion, DriverVersion};

/// A GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostGpu {
    /// The name NVML prints.
    pub name: String,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// Its memory in bytes.
    pub memory: Option<u64>,
    /// Whether it is cut into MIG instances; `None`: it cannot be, or does not say.
    pub mig: Option<bool>,
    /// Whether the driver stays loaded without a client.
    pub persistence: Option<bool>,
    /// Whether its memory corrects errors.
    pub ecc: Option<bool>,
    /// `NVLink` connections that are up.
    pub nvlinks: usize,
}

impl HostGpu {
    /// A GPU of which only name, capability and memory are known.
    pub(super) fn plain(name: String, compute_capability: ComputeCapability, memory: Option<u64>) -> Self {
        Self { name, compute_capability, memory, mig: None, persistence: None, ecc: None, nvlinks: 0 }
    }
}

/// What the driver of this machine says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// The kernel driver's version.
    pub driver: DriverVersion,
    /// The newest CUDA it supports.
    pub cuda: Option<CudaApiVersion>,
    /// Its GPUs, in NVML's order, without those in `troubled`.
    pub gpus: Vec<HostGpu>,
    /// GPUs it lists and that do not answer: index and NVML's words.
    pub troubled: Vec<(u32, String)>,
    /// How each two of `gpus` reach each other.
    pub pairs: Vec<GpuPair>,
}

/// Why this machine's GPUs are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// There is no driver: an ordinary machine without NVIDIA GPU.
    #[error("no NVIDIA driver on this machine")]
    NoDriver,
    /// There is a driver, and asking it failed.
    #[error("the NVIDIA driver does not answer: {cause}")]
    Driver {
        /// NVML's words.
        cause: String,
    },
    /// It took longer than a driver that works takes.
    #[error("the NVIDIA driver does not answer: NVML said nothing for {seconds} s")]
    Silent {
        /// The limit.
        seconds: u64,
    },
}

/// What the files of this machine say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SystemFacts {
    /// The version of the kernel module, if one is loaded.
    pub kernel_module: Option<String>,
    /// True if nouveau is loaded, which takes the GPU from the driver.
    pub nouveau: bool,
    /// True if this is the Windows subsystem for Linux.
    pub wsl: bool,
    /// Device descriptions of the container device interface.
    pub cdi_specs: Vec<String>,
    /// The version of the container toolkit, if it is installed.
    pub container_toolkit: Option<String>,
    /// Size of /dev/shm in bytes.
    pub shm: Option<u64>,
    /// The version of the C library.
    pub glibc: Option<String>,
    /// Whether /dev/nvidia-uvm is there; `None`: no driver device is.
    pub uvm: Option<bool>,
}

/// What the container engine said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineFacts {
    /// `Docker` or `Podman`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The way it hands out GPUs, in words; `None`: it lists none.
    pub gpus: Option<String>,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: Option<String>,
    /// What keeps its layers: `overlay2`, `fuse-overlayfs`, …
    pub storage_driver: Option<String>,
    /// True if it works without root.
    pub rootless: bool,
    /// Limits of a container that it does not keep, by their options.
    pub unkept_limits: Vec<&'static str>,
    /// True if it is on this machine.
    pub local: bool,
    /// Free bytes of its disk, where that is known.
    pub free: Option<u64>,
}

/// Everything `doctor` looks at.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// What the driver said.
    pub gpus: Result<HostFacts, GpuError>,
    /// What the files say.
    pub system: SystemFacts,
    /// What the engine said, or its error and hints.
    pub engine: Result<EngineFacts, (String, Vec<String>)>,
    /// Names of the variables that name another machine.
    pub overrides: Vec<&'static str>,
}
