//! What the GPUs of this machine do at this moment, through NVML.

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

/// What a GPU of this machine does at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuUse {
    /// Its number, in NVML's order.
    pub index: u32,
    /// Its UUID, `GPU-…`.
    pub uuid: String,
    /// Processes that compute on it, with the bytes each holds where the driver says.
    pub processes: Vec<(u32, Option<u64>)>,
    /// Percent of the last moment in which it worked.
    pub utilisation: Option<u32>,
}

/// What the GPUs of this machine do; none if there is no driver or it does not answer.
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
