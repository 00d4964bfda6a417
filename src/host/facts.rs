//! Facts of this machine, as plain values for JSON.

use serde::Serialize;

use super::kernel_log::XidErrors;
use super::topology::GpuPair;
use crate::model::versions::{ComputeCapability, CudaApiVersion, DriverVersion};

/// A GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostGpu {
    /// The name in NVML.
    pub name: String,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// Its memory in bytes.
    pub memory: Option<u64>,
    /// Whether MIG is enabled; `None`: unsupported or unknown.
    pub mig: Option<bool>,
    /// Whether the driver stays loaded without a client.
    pub persistence: Option<bool>,
    /// Whether ECC is enabled.
    pub ecc: Option<bool>,
    /// The number of active `NVLink` connections.
    pub nvlinks: usize,
}

impl HostGpu {
    /// Returns a GPU with only name, capability and memory known.
    pub(super) fn plain(name: String, compute_capability: ComputeCapability, memory: Option<u64>) -> Self {
        Self { name, compute_capability, memory, mig: None, persistence: None, ecc: None, nvlinks: 0 }
    }
}

/// Facts of the NVIDIA driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// The kernel driver's version.
    pub driver: DriverVersion,
    /// The newest CUDA it supports.
    pub cuda: Option<CudaApiVersion>,
    /// Its GPUs, in NVML's order, without those in `troubled`.
    pub gpus: Vec<HostGpu>,
    /// Listed GPUs that do not respond: index and NVML's message.
    pub troubled: Vec<(u32, String)>,
    /// The connection of each pair of `gpus`.
    pub pairs: Vec<GpuPair>,
}

/// The reason for unknown GPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No driver: an ordinary machine without an NVIDIA GPU.
    #[error("no NVIDIA driver on this machine")]
    NoDriver,
    /// A failed query of the driver.
    #[error("cannot query the NVIDIA driver: {cause}")]
    Driver {
        /// NVML's message.
        cause: String,
    },
    /// A query beyond the time limit.
    #[error("NVIDIA driver timed out after {seconds} s")]
    Silent {
        /// The limit.
        seconds: u64,
    },
}

/// Facts of this machine's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SystemFacts {
    /// The version of the kernel module, if one is loaded.
    pub kernel_module: Option<String>,
    /// Whether nouveau is loaded, which blocks the NVIDIA driver.
    pub nouveau: bool,
    /// Whether this is the Windows Subsystem for Linux.
    pub wsl: bool,
    /// CDI specification files.
    pub cdi_specs: Vec<String>,
    /// The version of the container toolkit, if it is installed.
    pub container_toolkit: Option<String>,
    /// Size of /dev/shm in bytes.
    pub shm: Option<u64>,
    /// The version of the C library.
    pub glibc: Option<String>,
    /// Whether /dev/nvidia-uvm exists; `None`: no driver device exists.
    pub uvm: Option<bool>,
    /// Errors of GPUs in the kernel's log; `None`: the log cannot be read.
    pub xid_errors: Option<Vec<XidErrors>>,
}

/// Facts of the container engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineFacts {
    /// `Docker` or `Podman`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The mechanism that gives containers GPUs; `None`: none listed.
    pub gpus: Option<String>,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: Option<String>,
    /// The storage driver: `overlay2`, `fuse-overlayfs`, …
    pub storage_driver: Option<String>,
    /// Whether the image store keeps the blobs it received in addition to the unpacked layers, as containerd's does.
    pub keeps_blobs: bool,
    /// Whether it runs without root.
    pub rootless: bool,
    /// Options of container limits that it does not enforce.
    pub unkept_limits: Vec<&'static str>,
    /// Whether it runs on this machine.
    pub local: bool,
    /// Free bytes of its disk, if known.
    pub free: Option<u64>,
}

/// The input of `doctor`.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// Facts of the driver.
    pub gpus: Result<HostFacts, GpuError>,
    /// Facts of the files.
    pub system: SystemFacts,
    /// Facts of the engine, or its error and hints.
    pub engine: Result<EngineFacts, (String, Vec<String>)>,
    /// Variables that override the detected target.
    pub overrides: Vec<&'static str>,
}
