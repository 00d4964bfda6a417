//! This machine: what its NVIDIA driver, kernel and files say, and what follows from that.
//!
//! `nvml` asks the driver and `smi` its program, `system` reads files: edges, which return facts or the reason there are
//! none. `findings` judges and `topology` words: pure. Must not decide what is built; that is `resolve`.

mod facts;
mod findings;
mod nvml;
mod smi;
mod system;
mod topology;
mod usage;

pub use facts::{EngineFacts, GpuError, HostFacts, HostGpu, HostReport, SystemFacts};
pub use findings::{HostFinding, Severity, findings};
pub use nvml::detect;
pub use system::system;
pub use topology::{GpuPair, PcieWay};
pub use usage::{GpuUse, usage};
