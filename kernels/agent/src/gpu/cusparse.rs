//! cuSPARSE: a sparse matrix times a vector.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Buffer, Device};
use super::status::{GpuLibraryError, OpenError, math_done as done};
use crate::dlopen;

type Handle = *mut c_void;

functions! {
    /// The generic functions, of CUDA 10.2 and later.
    Calls {
        create = c"cusparseCreate"(*mut Handle);
        version = c"cusparseGetVersion"(Handle, *mut c_int);
        matrix = c"cusparseCreateCsr"(
            *mut Handle, i64, i64, i64, Address, Address, Address, c_int, c_int, c_int, c_int,
        );
        vector = c"cusparseCreateDnVec"(*mut Handle, i64, Address, c_int);
        size = c"cusparseSpMV_bufferSize"(
            Handle, c_int, *const c_void, Handle, Handle, *const c_void, Handle, c_int, c_int, *mut usize,
        );
        multiply = c"cusparseSpMV"(
            Handle, c_int, *const c_void, Handle, Handle, *const c_void, Handle, c_int, c_int, Address,
        );
    }
}

/// `CUSPARSE_INDEX_32I`, `CUSPARSE_INDEX_BASE_ZERO`, `CUDA_R_32F`, `CUSPARSE_OPERATION_NON_TRANSPOSE` and
/// `CUSPARSE_SPMV_ALG_DEFAULT`.
const INDEX: c_int = 2;
const FROM_ZERO: c_int = 0;
const FLOAT: c_int = 0;
const AS_IT_IS: c_int = 0;
const DEFAULT: c_int = 0;

/// A matrix by compressed rows: where each row begins, the columns of its elements and the elements, of fp32.
pub(crate) struct Rows<'a> {
    pub(crate) shape: [usize; 2],
    pub(crate) elements: usize,
    pub(crate) buffers: [&'a Buffer; 3],
}

/// The library on the current GPU.
pub(crate) struct Cusparse {
    calls: Calls,
    handle: Handle,
}

fn long(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

impl Cusparse {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let calls = Calls::load(dlopen::Library::open(path)?)?;
        let mut handle = null_mut();
        // SAFETY: the pointer is to a living handle.
        done("cusparseCreate", unsafe { (calls.create)(&raw mut handle) })?;
        Ok(Self { calls, handle })
    }

    /// 12508 for 12.5.8.
    pub(crate) fn version(&self) -> Result<c_int, GpuLibraryError> {
        let mut version = 0;
        // SAFETY: the handle is alive, the pointer is to a living number.
        done("cusparseGetVersion", unsafe { (self.calls.version)(self.handle, &raw mut version) })?;
        Ok(version)
    }

    /// Puts y = matrix · x on the default stream and waits for it. Descriptors are small and are left to the end of the
    /// process.
    pub(crate) fn multiply(
        &self,
        device: &Device,
        rows: &Rows<'_>,
        [x, y]: [&Buffer; 2],
    ) -> Result<(), GpuLibraryError> {
        let [begins, columns, elements] = rows.buffers.map(|buffer| buffer.address);
        let [height, width] = rows.shape.map(long);
        let mut matrix = null_mut();
        // SAFETY: the buffers are alive and as long as shape and count say.
        let code = unsafe {
            (self.calls.matrix)(
                &raw mut matrix,
                height,
                width,
                long(rows.elements),
                begins,
                columns,
                elements,
                INDEX,
                INDEX,
                FROM_ZERO,
                FLOAT,
            )
        };
        done("cusparseCreateCsr", code)?;
        let vector = |size: i64, buffer: &Buffer| {
            let mut vector = null_mut();
            // SAFETY: the buffer is alive and holds that many numbers.
            let code = unsafe { (self.calls.vector)(&raw mut vector, size, buffer.address, FLOAT) };
            done("cusparseCreateDnVec", code).map(|()| vector)
        };
        let (vx, vy) = (vector(width, x)?, vector(height, y)?);
        let (one, zero) = (1f32, 0f32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        let mut bytes = 0;
        // SAFETY: every descriptor is alive; the scales are read during the call.
        let code = unsafe {
            (self.calls.size)(
                self.handle,
                AS_IT_IS,
                one,
                matrix,
                vx,
                zero,
                vy,
                FLOAT,
                DEFAULT,
                &raw mut bytes,
            )
        };
        done("cusparseSpMV_bufferSize", code)?;
        let workspace = device.buffer(bytes.max(1))?;
        // SAFETY: as above, and the workspace is as long as asked for.
        let code = unsafe {
            (self.calls.multiply)(
                self.handle,
                AS_IT_IS,
                one,
                matrix,
                vx,
                zero,
                vy,
                FLOAT,
                DEFAULT,
                workspace.address,
            )
        };
        done("cusparseSpMV", code)?;
        device.synchronize()
    }
}
