//! cuSOLVER: a system of equations whose matrix is symmetric and positive definite, by Cholesky's factors.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Buffer, Device};
use super::status::{GpuLibraryError, OpenError, math_done as done};
use crate::dlopen;

type Handle = *mut c_void;

functions! {
    /// Unchanged from CUDA 10 to 13.
    Calls {
        version = c"cusolverGetVersion"(*mut c_int);
        create = c"cusolverDnCreate"(*mut Handle);
        size = c"cusolverDnDpotrf_bufferSize"(Handle, c_int, c_int, Address, c_int, *mut c_int);
        factor = c"cusolverDnDpotrf"(Handle, c_int, c_int, Address, c_int, Address, c_int, Address);
        solve = c"cusolverDnDpotrs"(Handle, c_int, c_int, c_int, Address, c_int, Address, c_int, Address);
    }
}

/// `CUBLAS_FILL_MODE_LOWER`.
const LOWER: c_int = 0;

/// The library on the current GPU.
pub(crate) struct Cusolver {
    calls: Calls,
    handle: Handle,
}

impl Cusolver {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let calls = Calls::load(dlopen::Library::open(path)?)?;
        let mut handle = null_mut();
        // SAFETY: the pointer is to a living handle.
        done("cusolverDnCreate", unsafe { (calls.create)(&raw mut handle) })?;
        Ok(Self { calls, handle })
    }

    /// 11704 for 11.7.4.
    pub(crate) fn version(&self) -> Result<c_int, GpuLibraryError> {
        let mut version = 0;
        // SAFETY: the pointer is to a living number.
        done("cusolverGetVersion", unsafe { (self.calls.version)(&raw mut version) })?;
        Ok(version)
    }

    /// Replaces an fp64 matrix of `size` rows by its factor; returns 0, or the row at which it is not positive definite.
    pub(crate) fn factor(
        &self,
        device: &Device,
        size: usize,
        matrix: &Buffer,
    ) -> Result<i32, GpuLibraryError> {
        let n = c_int::try_from(size).unwrap_or(c_int::MAX);
        let mut elements = 0;
        // SAFETY: the handle and the matrix are alive; the pointer is to a living number.
        let code = unsafe { (self.calls.size)(self.handle, LOWER, n, matrix.address, n, &raw mut elements) };
        done("cusolverDnDpotrf_bufferSize", code)?;
        let workspace = device.buffer(8 * usize::try_from(elements).unwrap_or(0).max(1))?;
        let info = device.buffer(4)?;
        // SAFETY: everything is alive and as long as asked for.
        let code = unsafe {
            (self.calls.factor)(
                self.handle,
                LOWER,
                n,
                matrix.address,
                n,
                workspace.address,
                elements,
                info.address,
            )
        };
        done("cusolverDnDpotrf", code)?;
        device.synchronize()?;
        Ok(i32::from_le_bytes(info.download()?.try_into().unwrap_or([0xff; 4])))
    }

    /// Replaces the right side by the solution, with the factor of the matrix.
    pub(crate) fn solve(
        &self,
        device: &Device,
        size: usize,
        [factor, right]: [&Buffer; 2],
    ) -> Result<i32, GpuLibraryError> {
        let n = c_int::try_from(size).unwrap_or(c_int::MAX);
        let info = device.buffer(4)?;
        // SAFETY: everything is alive; one right side.
        let code = unsafe {
            (self.calls.solve)(self.handle, LOWER, n, 1, factor.address, n, right.address, n, info.address)
        };
        done("cusolverDnDpotrs", code)?;
        device.synchronize()?;
        Ok(i32::from_le_bytes(info.download()?.try_into().unwrap_or([0xff; 4])))
    }
}
