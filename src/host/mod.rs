//! This machine: facts of its NVIDIA driver, kernel and files, and findings about them.
//!
//! Edges: `nvml` queries the driver, `smi` runs nvidia-smi, `system` and `engine_files` read files, `kernel_log` the kernel's messages, `desktop` opens the user's programs; they return facts or the reason for their
//! absence. `child_process` starts every program, here and elsewhere. Pure: `findings` and `topology`. `resolve` decides what to build.

mod child_process;
mod desktop;
mod engine_files;
mod exposure;
mod facts;
mod findings;
mod kernel_log;
mod nvml;
pub(crate) mod process_owner;
mod rdma;
mod smi;
mod system;
mod topology;
mod usage;

pub(crate) use child_process::{Bounds, async_child, child, run_within};
pub(crate) use desktop::{open_page, open_program};
pub(crate) use engine_files::{engine_files, program_file};
pub use exposure::{open_port, open_socket, readable_credentials, readable_secret, writable_folder};
pub use facts::{EngineFacts, GpuError, HostFacts, HostGpu, HostReport, SystemFacts};
pub use findings::{HostFinding, Severity, findings};
pub use kernel_log::XidErrors;
pub use nvml::{GpuIdentities, detect, gpu_identities};
pub use rdma::{RdmaDevices, rdma_devices};
pub use system::{Boot, boot, container_toolkit, system};
pub use topology::{GpuPair, PciePath};
pub use usage::{GpuUse, usage};
