//! What this machine's NVIDIA driver says: driver version and GPUs, through NVML.
//!
//! Must not decide anything: it returns facts or the reason there are none.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use crate::versions::{ComputeCapability, CudaApiVersion, DriverVersion};

/// A GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGpu {
    /// The name NVML prints.
    pub name: String,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// Its memory in bytes.
    pub memory: Option<u64>,
}

/// What the driver of this machine says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// The kernel driver's version.
    pub driver: DriverVersion,
    /// The newest CUDA it supports.
    pub cuda: Option<CudaApiVersion>,
    /// Its GPUs, in NVML's order.
    pub gpus: Vec<HostGpu>,
}

/// Why this machine's GPUs are not known.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// There is no driver: an ordinary machine without NVIDIA GPU.
    #[error("no NVIDIA driver on this machine")]
    NoDriver,
    /// There is a driver, but it did not answer.
    #[error("the NVIDIA driver does not answer: {cause}")]
    Driver {
        /// NVML's words.
        cause: String,
    },
}

/// Asks the driver of this machine.
pub fn detect() -> Result<HostFacts, GpuError> {
    let nvml = Nvml::init().map_err(|error| match error {
        NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded | NvmlError::LibraryNotFound => {
            GpuError::NoDriver
        }
        other => GpuError::Driver { cause: other.to_string() },
    })?;
    facts(&nvml).map_err(|error| GpuError::Driver { cause: error.to_string() })
}

fn facts(nvml: &Nvml) -> Result<HostFacts, NvmlError> {
    let text = nvml.sys_driver_version()?;
    let driver = text.parse().map_err(|_| NvmlError::InvalidArg)?;
    let cuda = nvml.sys_cuda_driver_version().ok();
    let cuda = cuda.and_then(|number| format!("{}.{}", number / 1000, number % 1000 / 10).parse().ok());
    let gpus = (0..nvml.device_count()?).map(|index| gpu(nvml, index)).collect::<Result<_, _>>()?;
    Ok(HostFacts { driver, cuda, gpus })
}

fn gpu(nvml: &Nvml, index: u32) -> Result<HostGpu, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let capability = device.cuda_compute_capability()?;
    let part = |number: i32| u8::try_from(number).map_err(|_| NvmlError::InvalidArg);
    Ok(HostGpu {
        name: device.name()?,
        compute_capability: ComputeCapability {
            major: part(capability.major)?,
            minor: part(capability.minor)?,
        },
        memory: device.memory_info().ok().map(|memory| memory.total),
    })
}
