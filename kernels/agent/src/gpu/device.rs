//! One GPU to compute on: its primary context, memory, kernels and events. What is acquired is freed on every path.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use super::driver::{Driver, Facts, done};
use super::status::{GpuLibraryError, Library};
use crate::dlopen;

/// Opaque handles of the driver.
type Handle = *mut c_void;
/// `CUstream`, which is `cudaStream_t` too.
pub(crate) type Stream = *mut c_void;
/// An address in the GPU's memory.
pub(crate) type Address = u64;

functions! {
    /// What a context needs. Names with `_v2` are the 64-bit forms that every driver since CUDA 4 has.
    Calls {
        retain = c"cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
        current = c"cuCtxSetCurrent"(Handle);
        synchronize = c"cuCtxSynchronize"();
        allocate = c"cuMemAlloc_v2"(*mut Address, usize);
        free = c"cuMemFree_v2"(Address);
        info = c"cuMemGetInfo_v2"(*mut usize, *mut usize);
        upload = c"cuMemcpyHtoD_v2"(Address, *const c_void, usize);
        download = c"cuMemcpyDtoH_v2"(*mut c_void, Address, usize);
        copy = c"cuMemcpyDtoD_v2"(Address, Address, usize);
        fill = c"cuMemsetD8_v2"(Address, u8, usize);
        pin = c"cuMemAllocHost_v2"(*mut *mut c_void, usize);
        unpin = c"cuMemFreeHost"(*mut c_void);
        module = c"cuModuleLoadData"(*mut Handle, *const c_void);
        function = c"cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
        launch = c"cuLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void,
        );
        stream = c"cuStreamCreate"(*mut Stream, c_uint);
        event = c"cuEventCreate"(*mut Handle, c_uint);
        record = c"cuEventRecord"(Handle, Handle);
        wait = c"cuEventSynchronize"(Handle);
        elapsed = c"cuEventElapsedTime"(*mut f32, Handle, Handle);
        peer_access = c"cuDeviceCanAccessPeer"(*mut c_int, c_int, c_int);
        enable_peer = c"cuCtxEnablePeerAccess"(Handle, c_uint);
        peer_copy = c"cuMemcpyPeer"(Address, Handle, Address, Handle, usize);
        queue_peer_copy = c"cuMemcpyPeerAsync"(Address, Handle, Address, Handle, usize, Stream);
    }
}

/// The primary context of a GPU, the one that the runtime, cuBLAS, cuDNN and NCCL use too. It is kept to the end of the
/// process: libraries hold on to it.
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) facts: Facts,
    /// The driver's library.
    pub(super) library: dlopen::Library,
    calls: Calls,
    context: Handle,
}

/// A stretch of a GPU's memory.
pub(crate) struct Buffer {
    device: Device,
    /// Whether it is freed when it is dropped.
    is_owned: bool,
    pub(crate) address: Address,
    pub(crate) bytes: usize,
}

/// Memory of the host that the GPU copies from and to without help.
pub(crate) struct Pinned {
    device: Device,
    start: *mut c_void,
    bytes: usize,
}

/// A kernel that can be launched.
pub(crate) struct Kernel {
    device: Device,
    function: Handle,
    name: String,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument {
    Pointer(Address),
    Int(i32),
    Long(u64),
    Float(f32),
}

/// The error of a driver without a function; the text is the loader's.
pub(super) fn missing(message: String) -> GpuLibraryError {
    const NOT_FOUND: c_int = 500;
    GpuLibraryError { message, ..GpuLibraryError::new(Library::Driver, "dlsym", NOT_FOUND) }
}

impl Device {
    /// Makes the GPU's primary context and makes it current.
    pub(crate) fn open(driver: &Driver, facts: &Facts) -> Result<Self, GpuLibraryError> {
        let calls = Calls::load(driver.library).map_err(missing)?;
        let mut context = null_mut();
        // SAFETY: the handle came from cuDeviceGet, the pointer is to a living handle.
        let code = unsafe { (calls.retain)(&raw mut context, facts.handle) };
        done("cuDevicePrimaryCtxRetain", code)?;
        let device = Self { facts: facts.clone(), library: driver.library, calls, context };
        device.make_current()?;
        Ok(device)
    }

    /// Later calls of this thread go to this GPU.
    pub(crate) fn make_current(&self) -> Result<(), GpuLibraryError> {
        // SAFETY: the context was retained and is never released.
        done("cuCtxSetCurrent", unsafe { (self.calls.current)(self.context) })
    }

    /// Waits for everything on the GPU; the faults of kernels arrive here.
    pub(crate) fn synchronize(&self) -> Result<(), GpuLibraryError> {
        // SAFETY: no parameter.
        done("cuCtxSynchronize", unsafe { (self.calls.synchronize)() })
    }

    /// A stream that does not wait for the default one. It is left to the end of the process.
    pub(crate) fn stream(&self) -> Result<Stream, GpuLibraryError> {
        let mut stream = null_mut();
        // SAFETY: the pointer is to a living handle; 1 is CU_STREAM_NON_BLOCKING.
        done("cuStreamCreate", unsafe { (self.calls.stream)(&raw mut stream, 1) })?;
        Ok(stream)
    }

    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(usize, usize), GpuLibraryError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are to living numbers.
        done("cuMemGetInfo_v2", unsafe { (self.calls.info)(&raw mut free, &raw mut total) })?;
        Ok((free, total))
    }

    /// Memory with every bit set: what nobody writes reads as NaN or -1, never as a plausible zero.
    pub(crate) fn buffer(&self, bytes: usize) -> Result<Buffer, GpuLibraryError> {
        let mut address = 0;
        // SAFETY: the pointer is to a living number.
        done(&format!("cuMemAlloc_v2({bytes})"), unsafe { (self.calls.allocate)(&raw mut address, bytes) })?;
        let buffer = Buffer { device: self.clone(), is_owned: true, address, bytes };
        buffer.fill(0xff)?;
        Ok(buffer)
    }

    /// Memory whose owner frees it after this.
    pub(super) fn borrowed(&self, address: Address, bytes: usize) -> Buffer {
        Buffer { device: self.clone(), is_owned: false, address, bytes }
    }

    /// Memory holding those bytes.
    pub(crate) fn holding(&self, bytes: &[u8]) -> Result<Buffer, GpuLibraryError> {
        let buffer = self.buffer(bytes.len())?;
        buffer.upload(bytes)?;
        Ok(buffer)
    }

    pub(crate) fn pinned(&self, bytes: usize) -> Result<Pinned, GpuLibraryError> {
        let mut start = null_mut();
        // SAFETY: the pointer is to a living pointer.
        done(&format!("cuMemAllocHost_v2({bytes})"), unsafe { (self.calls.pin)(&raw mut start, bytes) })?;
        Ok(Pinned { device: self.clone(), start, bytes })
    }

    /// A kernel of a cubin, fat binary or PTX text.
    pub(crate) fn kernel(&self, code: &[u8], name: &str) -> Result<Kernel, GpuLibraryError> {
        // PTX must end with a zero; for a cubin one more byte means nothing.
        let mut image = code.to_vec();
        image.push(0);
        let mut module = null_mut();
        // SAFETY: the image is whole and lives through the call, which copies it.
        let code = unsafe { (self.calls.module)(&raw mut module, image.as_ptr().cast()) };
        done("cuModuleLoadData", code)?;
        let text = CString::new(name).unwrap_or_default();
        let mut function = null_mut();
        // SAFETY: the module was just loaded and is never unloaded; the name ends with a zero.
        let code = unsafe { (self.calls.function)(&raw mut function, module, text.as_ptr()) };
        done(&format!("cuModuleGetFunction({name})"), code)?;
        Ok(Kernel { device: self.clone(), function, name: name.to_owned() })
    }

    /// Seconds that the work took which `work` puts on the default stream.
    pub(crate) fn seconds<E: From<GpuLibraryError>>(
        &self,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<f64, E> {
        let event = || -> Result<Handle, GpuLibraryError> {
            let mut event = null_mut();
            // SAFETY: the pointer is to a living handle.
            done("cuEventCreate", unsafe { (self.calls.event)(&raw mut event, 0) })?;
            Ok(event)
        };
        let mark = |event: Handle| {
            // SAFETY: the event is alive; null is the default stream.
            done("cuEventRecord", unsafe { (self.calls.record)(event, null_mut()) })
        };
        let (start, end) = (event()?, event()?);
        mark(start)?;
        work()?;
        mark(end)?;
        // SAFETY: the event was recorded.
        done("cuEventSynchronize", unsafe { (self.calls.wait)(end) })?;
        let mut milliseconds = 0f32;
        // SAFETY: both events were recorded and have passed.
        let code = unsafe { (self.calls.elapsed)(&raw mut milliseconds, start, end) };
        done("cuEventElapsedTime", code)?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    /// Whether this GPU reaches the other's memory without the host.
    pub(crate) fn reaches(&self, other: &Self) -> Result<bool, GpuLibraryError> {
        let mut can = 0;
        // SAFETY: both handles came from cuDeviceGet.
        let code = unsafe { (self.calls.peer_access)(&raw mut can, self.facts.handle, other.facts.handle) };
        done("cuDeviceCanAccessPeer", code)?;
        Ok(can == 1)
    }

    /// Lets this GPU reach the other's memory; without it `cuMemcpyPeer` copies through the host.
    pub(crate) fn enable_access(&self, other: &Self) -> Result<(), GpuLibraryError> {
        const ALREADY_ENABLED: c_int = 704;
        self.make_current()?;
        // SAFETY: both contexts are alive; the only flag is 0.
        match unsafe { (self.calls.enable_peer)(other.context, 0) } {
            ALREADY_ENABLED => Ok(()),
            code => done("cuCtxEnablePeerAccess", code),
        }
    }

    /// Copies from one GPU's memory to another's.
    pub(crate) fn copy_between(to: &Buffer, from: &Buffer) -> Result<(), GpuLibraryError> {
        let bytes = to.bytes.min(from.bytes);
        // SAFETY: both stretches are alive and at least that long; both contexts are.
        let code = unsafe {
            (to.device.calls.peer_copy)(
                to.address,
                to.device.context,
                from.address,
                from.device.context,
                bytes,
            )
        };
        done("cuMemcpyPeer", code)
    }

    /// Puts such a copy on the default stream of the current GPU.
    pub(crate) fn queue_copy_between(to: &Buffer, from: &Buffer) -> Result<(), GpuLibraryError> {
        let bytes = to.bytes.min(from.bytes);
        // SAFETY: both stretches are alive and at least that long; both contexts are; null is the default stream.
        let code = unsafe {
            (to.device.calls.queue_peer_copy)(
                to.address,
                to.device.context,
                from.address,
                from.device.context,
                bytes,
                null_mut(),
            )
        };
        done("cuMemcpyPeerAsync", code)
    }
}

impl Buffer {
    pub(crate) fn fill(&self, byte: u8) -> Result<(), GpuLibraryError> {
        self.device.make_current()?;
        // SAFETY: the stretch is alive and that long.
        done("cuMemsetD8_v2", unsafe { (self.device.calls.fill)(self.address, byte, self.bytes) })
    }

    /// Writes the bytes to its start; more than fit are left out.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<(), GpuLibraryError> {
        self.device.make_current()?;
        let count = bytes.len().min(self.bytes);
        // SAFETY: both stretches are alive and at least that long.
        done("cuMemcpyHtoD_v2", unsafe {
            (self.device.calls.upload)(self.address, bytes.as_ptr().cast(), count)
        })
    }

    /// All its bytes, after everything on the default stream.
    pub(crate) fn download(&self) -> Result<Vec<u8>, GpuLibraryError> {
        self.device.make_current()?;
        let mut bytes = vec![0u8; self.bytes];
        // SAFETY: both stretches are alive and that long.
        let code =
            unsafe { (self.device.calls.download)(bytes.as_mut_ptr().cast(), self.address, self.bytes) };
        done("cuMemcpyDtoH_v2", code)?;
        Ok(bytes)
    }

    /// Copies another stretch of the same GPU over this one.
    pub(crate) fn copy_from(&self, other: &Self) -> Result<(), GpuLibraryError> {
        self.device.make_current()?;
        let count = self.bytes.min(other.bytes);
        // SAFETY: both stretches are alive and at least that long.
        done("cuMemcpyDtoD_v2", unsafe { (self.device.calls.copy)(self.address, other.address, count) })
    }

    /// From pinned memory.
    pub(crate) fn upload_pinned(&self, pinned: &Pinned) -> Result<(), GpuLibraryError> {
        let count = self.bytes.min(pinned.bytes);
        // SAFETY: both stretches are alive and at least that long.
        done("cuMemcpyHtoD_v2", unsafe { (self.device.calls.upload)(self.address, pinned.start, count) })
    }

    /// To pinned memory.
    pub(crate) fn download_pinned(&self, pinned: &Pinned) -> Result<(), GpuLibraryError> {
        let count = self.bytes.min(pinned.bytes);
        // SAFETY: both stretches are alive and at least that long.
        done("cuMemcpyDtoH_v2", unsafe { (self.device.calls.download)(pinned.start, self.address, count) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        let _ = self.device.make_current();
        // SAFETY: the address came from cuMemAlloc and is freed once. A fault here is one of the kernel before it.
        unsafe { (self.device.calls.free)(self.address) };
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the start came from cuMemAllocHost and is freed once.
        unsafe { (self.device.calls.unpin)(self.start) };
    }
}

impl Kernel {
    /// Puts one launch on the default stream. Parameters must be those of the kernel's head, in order.
    pub(crate) fn launch(
        &self,
        grid: [usize; 3],
        block: [u32; 3],
        arguments: &[Argument],
    ) -> Result<(), GpuLibraryError> {
        let mut values: Vec<u64> = arguments.iter().map(Argument::bits).collect();
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| (&raw mut *value).cast::<c_void>()).collect();
        let [x, y, z] = grid.map(|size| c_uint::try_from(size).unwrap_or(c_uint::MAX));
        // SAFETY: the function is alive; there is a pointer to a living value for each parameter; the driver copies them.
        let code = unsafe {
            (self.device.calls.launch)(
                self.function,
                x,
                y,
                z,
                block[0],
                block[1],
                block[2],
                0,
                null_mut(),
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        done(&format!("cuLaunchKernel({})", self.name), code)
    }
}

impl Argument {
    /// The value in the lowest bytes of eight: where the driver reads as many as the parameter has.
    #[expect(clippy::cast_sign_loss, reason = "the bits are kept")]
    fn bits(&self) -> u64 {
        match *self {
            Self::Pointer(value) | Self::Long(value) => value,
            Self::Int(value) => u64::from(value as u32),
            Self::Float(value) => u64::from(value.to_bits()),
        }
    }
}
