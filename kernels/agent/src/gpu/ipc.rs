//! CUDA IPC: memory of a GPU that another process opens by a handle.

use std::ffi::c_uint;

use super::device::{Address, Buffer, Device, missing};
use super::driver::done;
use super::status::GpuLibraryError;

functions! {
    /// In every driver since CUDA 11.
    Calls {
        handle = c"cuIpcGetMemHandle"(*mut IpcHandle, Address);
        open = c"cuIpcOpenMemHandle_v2"(*mut Address, IpcHandle, c_uint);
        close = c"cuIpcCloseMemHandle"(Address);
    }
}

/// `CUipcMemHandle`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpcHandle(pub(crate) [u8; 64]);

/// The handle by which another process opens this memory of this one.
pub(crate) fn handle(device: &Device, memory: &Buffer) -> Result<IpcHandle, GpuLibraryError> {
    let calls = Calls::load(device.library).map_err(missing)?;
    let mut handle = IpcHandle([0; 64]);
    // SAFETY: the pointer is to a living handle; the address is the start of an allocation.
    done("cuIpcGetMemHandle", unsafe { (calls.handle)(&raw mut handle, memory.address) })?;
    Ok(handle)
}

/// Memory of another process.
pub(crate) struct Opened {
    calls: Calls,
    device: Device,
    address: Address,
    bytes: usize,
}

impl Opened {
    /// Opens the memory of a handle, which has that many bytes.
    pub(crate) fn open(device: &Device, handle: IpcHandle, bytes: usize) -> Result<Self, GpuLibraryError> {
        /// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag that the driver takes.
        const LAZY: c_uint = 1;
        let calls = Calls::load(device.library).map_err(missing)?;
        let mut address = 0;
        // SAFETY: the pointer is to a living number; the handle is one of another process.
        done("cuIpcOpenMemHandle", unsafe { (calls.open)(&raw mut address, handle, LAZY) })?;
        Ok(Self { calls, device: device.clone(), address, bytes })
    }

    pub(crate) fn memory(&self) -> Buffer {
        self.device.borrowed(self.address, self.bytes)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.device.make_current();
        // SAFETY: the address came from cuIpcOpenMemHandle and is closed once.
        unsafe { (self.calls.close)(self.address) };
    }
}
