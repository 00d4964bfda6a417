//! This machine: facts of its NVIDIA driver, kernel and files, and findings about them.
//!
//! Edges: `nvml` queries the driver, `smi` runs nvidia-smi, `system` reads files, `kernel_log` the kernel's messages, `desktop` opens the user's programs; they return facts or the reason for their
//! absence. Pure: `findings` and `topology`. `resolve` decides what to build.

mod desktop;
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

pub(crate) use desktop::{open_page, open_program};
pub use exposure::{open_port, open_socket, readable_credentials, readable_secret, writable_folder};
pub use facts::{EngineFacts, GpuError, HostFacts, HostGpu, HostReport, SystemFacts};
pub use findings::{HostFinding, Severity, findings};
pub use kernel_log::XidErrors;
pub use nvml::detect;
pub use rdma::{RdmaDevices, rdma_devices};
pub use system::system;
pub use topology::{GpuPair, PciePath};
pub use usage::{GpuUse, usage};
