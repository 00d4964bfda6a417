//! The driver, `libcuda.so.1`: what it says of itself and of its GPUs before any context is made.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

use super::status::{GpuLibraryError, Library};
use crate::dlopen;

functions! {
    /// What needs no context; every driver of the last ten years has it.
    Probe {
        init = c"cuInit"(u32);
        version = c"cuDriverGetVersion"(*mut c_int);
        count = c"cuDeviceGetCount"(*mut c_int);
        device = c"cuDeviceGet"(*mut c_int, c_int);
        name = c"cuDeviceGetName"(*mut c_char, c_int, c_int);
        attribute = c"cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
        memory = c"cuDeviceTotalMem_v2"(*mut usize, c_int);
    }
}

/// The name that the loader knows; the container runtime puts the file where only it finds it.
const NAME: &str = "libcuda.so.1";

/// The loaded driver library.
#[derive(Clone, Copy)]
pub(crate) struct Driver {
    pub(crate) library: dlopen::Library,
    probe: Probe,
}

/// What the driver says of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent answers of the driver")]
pub(crate) struct Facts {
    /// Its number, from 0, among the visible ones.
    pub(crate) ordinal: c_int,
    /// The driver's handle of it.
    pub(crate) handle: c_int,
    pub(crate) name: String,
    pub(crate) capability: (u32, u32),
    /// Bytes of memory.
    pub(crate) memory: usize,
    pub(crate) multiprocessors: c_int,
    /// Highest clock, kHz; 0 if the driver does not say.
    pub(crate) clock: c_int,
    /// Highest memory clock, kHz, and the bus in bits; 0 if the driver does not say.
    pub(crate) memory_clock: c_int,
    pub(crate) memory_bus: c_int,
    pub(crate) ecc: bool,
    /// Whether it serves one process at a time.
    pub(crate) exclusive: bool,
    /// Whether its memory is the host's.
    pub(crate) integrated: bool,
    /// Whether physical memory can be mapped at reserved addresses.
    pub(crate) maps_memory: bool,
    /// `0000:3b:00`: domain, bus, device.
    pub(crate) bus: String,
}

impl Facts {
    /// `NVIDIA H200 (sm_90)`.
    pub(crate) fn label(&self) -> String {
        let (major, minor) = self.capability;
        format!("{} (sm_{major}{minor})", self.name)
    }

    /// Whether it is a MIG slice of a GPU: `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
    pub(crate) fn is_slice(&self) -> bool {
        self.name.contains(" MIG ")
    }
}

impl Driver {
    /// Loads the library; nothing is initialized. The error is the loader's.
    pub(crate) fn load() -> Result<Self, String> {
        let library = dlopen::Library::open(Path::new(NAME))?;
        Ok(Self { library, probe: Probe::load(library)? })
    }

    /// The newest CUDA that the driver serves, 12040 for 12.4. Answers before `cuInit`.
    pub(crate) fn version(&self) -> Result<c_int, GpuLibraryError> {
        let mut version = 0;
        // SAFETY: the pointer is to a living number.
        let code = unsafe { (self.probe.version)(&raw mut version) };
        done("cuDriverGetVersion", code)?;
        Ok(version)
    }

    /// Must come before everything but the version.
    pub(crate) fn init(&self) -> Result<(), GpuLibraryError> {
        // SAFETY: the only flag is 0.
        done("cuInit", unsafe { (self.probe.init)(0) })
    }

    /// How many GPUs are visible. 0 is an answer here, and a failure for whoever wants to compute.
    pub(crate) fn count(&self) -> Result<c_int, GpuLibraryError> {
        let mut count = 0;
        // SAFETY: the pointer is to a living number.
        done("cuDeviceGetCount", unsafe { (self.probe.count)(&raw mut count) })?;
        Ok(count)
    }

    /// All visible GPUs.
    pub(crate) fn devices(&self) -> Result<Vec<Facts>, GpuLibraryError> {
        (0..self.count()?).map(|ordinal| self.facts(ordinal)).collect()
    }

    fn facts(&self, ordinal: c_int) -> Result<Facts, GpuLibraryError> {
        let mut handle = 0;
        // SAFETY: the pointer is to a living number.
        done("cuDeviceGet", unsafe { (self.probe.device)(&raw mut handle, ordinal) })?;
        let mut text = [0 as c_char; 256];
        // SAFETY: the driver writes at most 255 characters and a zero.
        done("cuDeviceGetName", unsafe { (self.probe.name)(text.as_mut_ptr(), 255, handle) })?;
        // SAFETY: the last byte is zero whatever the driver wrote.
        let name = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        let mut memory = 0;
        // SAFETY: the pointer is to a living number.
        done("cuDeviceTotalMem_v2", unsafe { (self.probe.memory)(&raw mut memory, handle) })?;
        let attribute = |number: c_int| -> Result<c_int, GpuLibraryError> {
            let mut value = 0;
            // SAFETY: the pointer is to a living number; an unknown attribute is a status.
            let code = unsafe { (self.probe.attribute)(&raw mut value, number, handle) };
            done(&format!("cuDeviceGetAttribute({number})"), code).map(|()| value)
        };
        // Numbers of CUdevice_attribute in cuda.h. Those that newer drivers may drop are 0 without them.
        let capability = (attribute(75)?.unsigned_abs(), attribute(76)?.unsigned_abs());
        let or_zero = |number| attribute(number).unwrap_or(0);
        let bus = format!("{:04x}:{:02x}:{:02x}", or_zero(50), or_zero(33), or_zero(34));
        Ok(Facts {
            ordinal,
            handle,
            name,
            capability,
            memory,
            multiprocessors: or_zero(16),
            clock: or_zero(13),
            memory_clock: or_zero(36),
            memory_bus: or_zero(37),
            ecc: or_zero(32) == 1,
            exclusive: or_zero(20) != 0,
            integrated: or_zero(18) == 1,
            maps_memory: or_zero(102) == 1,
            bus,
        })
    }
}

/// 0 is success; everything else is a fault of that call.
pub(crate) fn done(call: &str, code: c_int) -> Result<(), GpuLibraryError> {
    if code == 0 { Ok(()) } else { Err(GpuLibraryError::new(Library::Driver, call, code)) }
}
