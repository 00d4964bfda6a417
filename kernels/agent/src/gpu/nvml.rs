//! NVML, `libnvidia-ml.so.1`, if it is in the container: what the driver's other voice says of the GPUs.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::health::Health;
use super::status::{GpuLibraryError, Library};
use crate::dlopen;

type Handle = *mut c_void;

functions! {
    /// Present in every driver from 450 on.
    Calls {
        init = c"nvmlInit_v2"();
        driver = c"nvmlSystemGetDriverVersion"(*mut c_char, c_uint);
        count = c"nvmlDeviceGetCount_v2"(*mut c_uint);
        device = c"nvmlDeviceGetHandleByIndex_v2"(c_uint, *mut Handle);
        name = c"nvmlDeviceGetName"(Handle, *mut c_char, c_uint);
        memory = c"nvmlDeviceGetMemoryInfo"(Handle, *mut Memory);
        pci = c"nvmlDeviceGetPciInfo_v3"(Handle, *mut Pci);
        clock = c"nvmlDeviceGetClockInfo"(Handle, c_int, *mut c_uint);
        throttle = c"nvmlDeviceGetCurrentClocksThrottleReasons"(Handle, *mut u64);
        temperature = c"nvmlDeviceGetTemperature"(Handle, c_int, *mut c_uint);
    }
}

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlPciInfo_t`, 68 bytes.
#[repr(C)]
pub(crate) struct Pci {
    legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    ids: [c_uint; 2],
    text: [c_char; 32],
}

/// NVML, initialized.
pub(crate) struct Nvml {
    library: dlopen::Library,
    calls: Calls,
}

/// What NVML says of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) memory: u64,
}

/// What a GPU does at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// MHz of the multiprocessors and of the memory.
    pub(crate) clocks: (u32, u32),
    pub(crate) celsius: u32,
    /// What holds the clocks down, in words; idle is not among them.
    pub(crate) throttled: Vec<&'static str>,
}

/// Bits of `nvmlClocksThrottleReasons` that slow a GPU under load. Bit 0 is idle, bit 1 a clock somebody set.
const REASONS: [(u64, &str); 7] = [
    (0x2, "clocks set by the user"),
    (0x4, "power limit"),
    (0x8, "hardware slowdown"),
    (0x20, "temperature (software)"),
    (0x40, "temperature (hardware)"),
    (0x80, "power brake"),
    (0x10, "synchronised with other GPUs"),
];

fn done(call: &str, code: c_int) -> Result<(), GpuLibraryError> {
    if code == 0 { Ok(()) } else { Err(GpuLibraryError::new(Library::Nvml, call, code)) }
}

fn text(bytes: &[c_char]) -> String {
    // SAFETY: the last byte of every buffer here stays zero.
    unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned()
}

impl Nvml {
    /// Loads and initializes it; `None` if it is not in the container, or lacks a function.
    pub(crate) fn open() -> Result<Option<Self>, GpuLibraryError> {
        let library = dlopen::Library::open(Path::new("libnvidia-ml.so.1"));
        let Ok((library, calls)) = library.and_then(|library| Ok((library, Calls::load(library)?))) else {
            return Ok(None);
        };
        // SAFETY: no parameter.
        done("nvmlInit_v2", unsafe { (calls.init)() })?;
        Ok(Some(Self { library, calls }))
    }

    /// `550.144.03`.
    pub(crate) fn driver_version(&self) -> Option<String> {
        let mut bytes = [0; 97];
        // SAFETY: NVML writes at most 96 bytes with their zero.
        let code = unsafe { (self.calls.driver)(bytes.as_mut_ptr(), 96) };
        done("nvmlSystemGetDriverVersion", code).ok().map(|()| text(&bytes))
    }

    /// The GPU at a bus address of the form `0000:3b:00`.
    pub(crate) fn at_bus(&self, bus: &str) -> Option<Facts> {
        let device = self.handle(bus)?;
        let mut bytes = [0; 97];
        // SAFETY: the handle came from NVML, which writes at most 96 bytes with their zero.
        done("nvmlDeviceGetName", unsafe { (self.calls.name)(device, bytes.as_mut_ptr(), 96) }).ok()?;
        let mut memory = Memory::default();
        // SAFETY: the pointer is to a living nvmlMemory_t.
        done("nvmlDeviceGetMemoryInfo", unsafe { (self.calls.memory)(device, &raw mut memory) }).ok()?;
        Some(Facts { name: text(&bytes), memory: memory.total })
    }

    /// What the GPU at a bus address does now.
    pub(crate) fn state(&self, bus: &str) -> Option<State> {
        let device = self.handle(bus)?;
        let clock = |kind: c_int| {
            let mut megahertz = 0;
            // SAFETY: the pointer is to a living number; 1 is the multiprocessors' clock, 2 the memory's.
            let code = unsafe { (self.calls.clock)(device, kind, &raw mut megahertz) };
            done("nvmlDeviceGetClockInfo", code).ok().map(|()| megahertz)
        };
        let mut reasons = 0;
        // SAFETY: the pointer is to a living number.
        let code = unsafe { (self.calls.throttle)(device, &raw mut reasons) };
        done("nvmlDeviceGetCurrentClocksThrottleReasons", code).ok()?;
        let mut celsius = 0;
        // SAFETY: the pointer is to a living number; 0 is the chip's sensor.
        let code = unsafe { (self.calls.temperature)(device, 0, &raw mut celsius) };
        done("nvmlDeviceGetTemperature", code).ok()?;
        let throttled = REASONS.iter().filter(|(bit, _)| reasons & bit != 0).map(|(_, word)| *word).collect();
        Some(State { clocks: (clock(1)?, clock(2)?), celsius, throttled })
    }

    /// The health of the GPU at a bus address.
    pub(crate) fn health(&self, bus: &str) -> Option<Health> {
        Some(Health::of(self.library, self.handle(bus)?))
    }

    fn handle(&self, bus: &str) -> Option<Handle> {
        let mut count = 0;
        // SAFETY: the pointer is to a living number.
        done("nvmlDeviceGetCount_v2", unsafe { (self.calls.count)(&raw mut count) }).ok()?;
        (0..count).find_map(|index| {
            let mut device = null_mut();
            // SAFETY: the pointer is to a living handle.
            let code = unsafe { (self.calls.device)(index, &raw mut device) };
            done("nvmlDeviceGetHandleByIndex_v2", code).ok()?;
            let mut pci = Pci { legacy: [0; 16], domain: 0, bus: 0, device: 0, ids: [0; 2], text: [0; 32] };
            // SAFETY: the pointer is to a living nvmlPciInfo_t.
            done("nvmlDeviceGetPciInfo_v3", unsafe { (self.calls.pci)(device, &raw mut pci) }).ok()?;
            let own = format!("{:04x}:{:02x}:{:02x}", pci.domain, pci.bus, pci.device);
            (own == bus).then_some(device)
        })
    }
}
