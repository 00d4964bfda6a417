//! The driver's virtual memory management: physical memory that is mapped at reserved addresses.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::device::{Address, Buffer, Device, missing};
use super::driver::done;
use super::status::GpuLibraryError;

/// `CUmemGenericAllocationHandle`.
type Part = u64;

functions! {
    /// In every driver since CUDA 10.2.
    Calls {
        granularity = c"cuMemGetAllocationGranularity"(*mut usize, *const Properties, c_int);
        reserve = c"cuMemAddressReserve"(*mut Address, usize, usize, Address, u64);
        create = c"cuMemCreate"(*mut Part, usize, *const Properties, u64);
        map = c"cuMemMap"(Address, usize, usize, Part, u64);
        access = c"cuMemSetAccess"(Address, usize, *const Access, usize);
        unmap = c"cuMemUnmap"(Address, usize);
        release = c"cuMemRelease"(Part);
        free = c"cuMemAddressFree"(Address, usize);
    }
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_int,
    device: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    kind: c_int,
    handle_kinds: c_int,
    location: Location,
    windows: *mut c_void,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: c_int,
}

/// Two parts of physical memory and reserved addresses for both, one after the other.
pub(crate) struct Mapped {
    device: Device,
    calls: Calls,
    address: Address,
    parts: Vec<Part>,
    is_placed: bool,
    /// Bytes of a part.
    pub(crate) part: usize,
}

const PARTS: usize = 2;

impl Mapped {
    /// Reserves addresses and takes two parts of at least that many bytes; nothing is mapped yet.
    pub(crate) fn reserve(device: &Device, least: usize) -> Result<Self, GpuLibraryError> {
        let calls = Calls::load(device.library).map_err(missing)?;
        // CU_MEM_ALLOCATION_TYPE_PINNED on CU_MEM_LOCATION_TYPE_DEVICE, for this process.
        let location = location(device);
        let properties =
            Properties { kind: 1, handle_kinds: 0, location, windows: null_mut(), flags: [0; 8] };
        let mut granularity = 0;
        // SAFETY: both pointers are to living values; 0 is the least granularity.
        let code = unsafe { (calls.granularity)(&raw mut granularity, &raw const properties, 0) };
        done("cuMemGetAllocationGranularity", code)?;
        let part = least.next_multiple_of(granularity.max(1));
        let mut own =
            Self { device: device.clone(), calls, address: 0, parts: Vec::new(), is_placed: false, part };
        // SAFETY: the pointer is to a living number; the driver chooses alignment and address.
        let code = unsafe { (calls.reserve)(&raw mut own.address, own.bytes(), 0, 0, 0) };
        done("cuMemAddressReserve", code)?;
        for _ in 0..PARTS {
            let mut handle = 0;
            // SAFETY: both pointers are to living values.
            let code = unsafe { (calls.create)(&raw mut handle, part, &raw const properties, 0) };
            done(&format!("cuMemCreate({part})"), code)?;
            own.parts.push(handle);
        }
        Ok(own)
    }

    /// Maps these parts, the first at the first address; what was mapped before is unmapped.
    pub(crate) fn map(&mut self, order: [usize; PARTS]) -> Result<(), GpuLibraryError> {
        self.unmap()?;
        for (at, part) in self.places().into_iter().zip(order) {
            // SAFETY: the addresses are reserved and free, the part is as long.
            let code = unsafe { (self.calls.map)(at, self.part, 0, self.parts[part], 0) };
            done("cuMemMap", code)?;
        }
        self.is_placed = true;
        // CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
        let access = Access { location: location(&self.device), flags: 3 };
        // SAFETY: all of the addresses are mapped; the pointer is to one living value.
        let code = unsafe { (self.calls.access)(self.address, self.bytes(), &raw const access, 1) };
        done("cuMemSetAccess", code)
    }

    /// Both parts as one stretch.
    pub(crate) fn whole(&self) -> Buffer {
        self.device.borrowed(self.address, self.bytes())
    }

    fn bytes(&self) -> usize {
        self.part * PARTS
    }

    fn places(&self) -> [Address; PARTS] {
        [self.address, self.address + self.part as Address]
    }

    /// Waits for the work on the GPU first.
    fn unmap(&mut self) -> Result<(), GpuLibraryError> {
        if !std::mem::take(&mut self.is_placed) {
            return Ok(());
        }
        self.device.synchronize()?;
        for at in self.places() {
            // SAFETY: the part is mapped there, whole, and nothing uses it.
            done("cuMemUnmap", unsafe { (self.calls.unmap)(at, self.part) })?;
        }
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let _ = self.device.make_current();
        let _ = self.unmap();
        for part in &self.parts {
            // SAFETY: the handle came from cuMemCreate and is released once.
            unsafe { (self.calls.release)(*part) };
        }
        if self.address != 0 {
            // SAFETY: the addresses came from cuMemAddressReserve and are freed once.
            unsafe { (self.calls.free)(self.address, self.bytes()) };
        }
    }
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
fn location(device: &Device) -> Location {
    Location { kind: 1, device: device.facts.handle }
}
