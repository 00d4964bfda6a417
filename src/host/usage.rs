//! Current use of this machine's GPUs, through NVML.

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

/// The current use of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuUse {
    /// Its index, in NVML's order.
    pub index: u32,
    /// Its UUID, `GPU-…`.
    pub uuid: String,
    /// Its compute processes and the bytes of each, if known.
    pub processes: Vec<(u32, Option<u64>)>,
    /// Utilization in percent of the last sample.
    pub utilisation: Option<u32>,
}

/// Returns the use of all GPUs; none without a working driver.
pub fn usage() -> Vec<GpuUse> {
    let Ok(nvml) = Nvml::init() else { return Vec::new() };
    (0..nvml.device_count().unwrap_or(0)).filter_map(|index| used(&nvml, index).ok()).collect()
}

fn used(nvml: &Nvml, index: u32) -> Result<GpuUse, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let bytes = |memory: &UsedGpuMemory| match memory {
        UsedGpuMemory::Used(bytes) => Some(*bytes),
        UsedGpuMemory::Unavailable => None,
    };
    let running = device.running_compute_processes()?;
    Ok(GpuUse {
        index,
        uuid: device.uuid()?,
        processes: running.iter().map(|process| (process.pid, bytes(&process.used_gpu_memory))).collect(),
        utilisation: device.utilization_rates().ok().map(|rates| rates.gpu),
    })
}
