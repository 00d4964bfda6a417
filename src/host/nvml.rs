//! Queries the NVIDIA driver through NVML within two seconds, or through `nvidia-smi` without NVML.
//!
//! Returns facts or the reason for their absence; decides nothing.

use std::ffi::OsStr;
use std::sync::mpsc;
use std::time::Duration;

use nvml_wrapper::enum_wrappers::device::TopologyLevel;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::PciInfo;
use nvml_wrapper::{Device, Nvml};

use super::facts::{GpuError, HostFacts, HostGpu};
use super::smi;
use super::topology::{GpuPair, PciePath};
use crate::model::versions::ComputeCapability;

/// The time limit: a working driver responds in milliseconds, a hanging one never.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// The library of the Windows driver, possibly outside the loader's path.
const WSL: &str = "/usr/lib/wsl/lib/libnvidia-ml.so.1";
/// Upper limits of GPUs in a machine and links of a GPU.
const MOST_GPUS: u32 = 256;
const MOST_LINKS: u32 = 18;

/// Queries the driver of this machine.
pub fn detect() -> Result<HostFacts, GpuError> {
    let (sender, answer) = mpsc::channel();
    // A hanging driver cannot be interrupted: the thread is abandoned.
    std::thread::spawn(move || drop(sender.send(ask())));
    match answer.recv_timeout(LIMIT) {
        Ok(Err(GpuError::NoDriver)) => smi::ask(LIMIT),
        Ok(found) => found,
        Err(_) => Err(GpuError::Silent { seconds: LIMIT.as_secs() }),
    }
}

fn library() -> Result<Nvml, NvmlError> {
    match Nvml::init() {
        Err(NvmlError::LibloadingError(_)) => Nvml::builder().lib_path(OsStr::new(WSL)).init(),
        answer => answer,
    }
}

/// Which GPUs this machine has, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuIdentities {
    /// The kernel driver's version.
    pub driver: String,
    /// The UUID of each GPU in NVML's order, with those of its MIG devices.
    pub devices: Vec<String>,
}

/// Returns them; `None`: the driver does not say of every one within the limit.
pub fn gpu_identities() -> Option<GpuIdentities> {
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(library().and_then(|nvml| identities(&nvml)))));
    answer.recv_timeout(LIMIT).ok()?.ok()
}

fn identities(nvml: &Nvml) -> Result<GpuIdentities, NvmlError> {
    let mut devices = Vec::new();
    for index in 0..nvml.device_count()?.min(MOST_GPUS) {
        let device = nvml.device_by_index(index)?;
        devices.push(device.uuid()?);
        match device.mig_mode() {
            Ok(mode) if mode.current == 1 => {
                for at in 0..device.mig_device_count()? {
                    match device.mig_device_by_index(at) {
                        Ok(instance) => devices.push(instance.uuid()?),
                        // A place without an instance.
                        Err(NvmlError::NotFound) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Ok(_) | Err(NvmlError::NotSupported) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(GpuIdentities { driver: nvml.sys_driver_version()?, devices })
}

fn ask() -> Result<HostFacts, GpuError> {
    let nvml = library().map_err(|error| match error {
        NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded | NvmlError::LibraryNotFound => {
            GpuError::NoDriver
        }
        other => GpuError::Driver { cause: format!("Failed to initialize NVML: {}", words(&other)) },
    })?;
    facts(&nvml)
}

fn facts(nvml: &Nvml) -> Result<HostFacts, GpuError> {
    let failed = |error: NvmlError| GpuError::Driver { cause: words(&error) };
    let nonsense = |what: String| GpuError::Driver { cause: what };
    let text = nvml.sys_driver_version().map_err(failed)?;
    let driver = text.parse().map_err(|_| nonsense(format!("invalid driver version `{text}`")))?;
    let cuda = nvml.sys_cuda_driver_version().ok();
    let cuda = cuda.and_then(|number| format!("{}.{}", number / 1000, number % 1000 / 10).parse().ok());
    let count = nvml.device_count().map_err(failed)?;
    if count > MOST_GPUS {
        return Err(nonsense(format!("implausible GPU count {count}")));
    }
    let mut facts = HostFacts { driver, cuda, gpus: Vec::new(), troubled: Vec::new(), pairs: Vec::new() };
    let mut devices = Vec::new();
    for index in 0..count {
        let asked = nvml.device_by_index(index).and_then(|device| Ok((gpu(&device)?, device)));
        match asked {
            Ok((gpu, device)) => {
                facts.gpus.push(gpu);
                devices.push(device);
            }
            Err(error) => facts.troubled.push((index, words(&error))),
        }
    }
    facts.pairs = pairs(nvml, &devices);
    Ok(facts)
}

/// Returns the connection of each pair.
fn pairs(nvml: &Nvml, devices: &[Device<'_>]) -> Vec<GpuPair> {
    let place = |pci: PciInfo| (pci.domain, pci.bus, pci.device);
    let places: Vec<_> = devices.iter().map(|device| device.pci_info().ok().map(place)).collect();
    let ends: Vec<Vec<_>> = devices.iter().map(|device| link_ends(device).map(place).collect()).collect();
    // A link end at no GPU is at a switch, if every GPU's PCI address is known.
    let known = places.iter().all(Option::is_some);
    let switched = |at: usize| known && ends[at].iter().any(|end| !places.contains(&Some(*end)));
    let all = (0..devices.len()).flat_map(|one| (one + 1..devices.len()).map(move |other| (one, other)));
    all.map(|(one, other)| GpuPair {
        between: (one, other),
        nvlinks: ends[one].iter().filter(|end| places[other] == Some(**end)).count(),
        switched: switched(one) && switched(other),
        pcie: nvml.topology_common_ancestor(&devices[one], &devices[other]).ok().map(way),
    })
    .collect()
}

/// Returns the remote ends of a GPU's active NVLink connections.
fn link_ends(device: &Device<'_>) -> impl Iterator<Item = PciInfo> {
    let links = (0..MOST_LINKS).map(|link| device.link_wrapper_for(link));
    links.filter(|link| link.is_active().unwrap_or(false)).filter_map(|link| link.remote_pci_info().ok())
}

fn way(level: TopologyLevel) -> PciePath {
    match level {
        TopologyLevel::Internal => PciePath::Board,
        TopologyLevel::Single => PciePath::Switch,
        TopologyLevel::Multiple => PciePath::Switches,
        TopologyLevel::HostBridge => PciePath::HostBridge,
        TopologyLevel::Node => PciePath::Node,
        TopologyLevel::System => PciePath::System,
    }
}

fn gpu(device: &Device<'_>) -> Result<HostGpu, NvmlError> {
    let capability = device.cuda_compute_capability()?;
    let part = |number: i32| u8::try_from(number).map_err(|_| NvmlError::InvalidArg);
    let compute_capability =
        ComputeCapability { major: part(capability.major)?, minor: part(capability.minor)? };
    if !(1..=30).contains(&compute_capability.major) {
        return Err(NvmlError::InvalidArg);
    }
    let link = |link: &u32| device.link_wrapper_for(*link).is_active().unwrap_or(false);
    let memory = device.memory_info().ok().map(|memory| memory.total);
    Ok(HostGpu {
        mig: device.mig_mode().ok().map(|mode| mode.current == 1),
        persistence: device.is_in_persistent_mode().ok(),
        ecc: device.is_ecc_enabled().ok().map(|mode| mode.currently_enabled),
        nvlinks: (0..MOST_LINKS).filter(link).count(),
        ..HostGpu::plain(device.name()?, compute_capability, memory)
    })
}

/// Returns NVML's own message, which `diagnosis` recognizes and users search for.
fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::LibRmVersionMismatch => "Driver/library version mismatch".to_owned(),
        NvmlError::NoPermission => "Insufficient Permissions".to_owned(),
        NvmlError::GpuLost => "GPU is lost".to_owned(),
        NvmlError::Unknown => "Unknown Error".to_owned(),
        NvmlError::InvalidArg => "implausible value from the driver".to_owned(),
        other => other.to_string(),
    }
}
