//! cuFFT: Fourier transforms of complex numbers in one dimension.

use std::ffi::c_int;
use std::path::Path;

use super::device::{Address, Buffer};
use super::status::{GpuLibraryError, OpenError, math_done as done};
use crate::dlopen;

functions! {
    /// Unchanged from CUDA 10 to 13.
    Calls {
        version = c"cufftGetVersion"(*mut c_int);
        plan = c"cufftPlan1d"(*mut c_int, c_int, c_int, c_int);
        single = c"cufftExecC2C"(c_int, Address, Address, c_int);
        double = c"cufftExecZ2Z"(c_int, Address, Address, c_int);
        destroy = c"cufftDestroy"(c_int);
    }
}

/// `CUFFT_C2C` and `CUFFT_Z2Z`.
const SINGLE: c_int = 0x29;
const DOUBLE: c_int = 0x69;

/// The way of a transform: its sign in the exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward = -1,
    Inverse = 1,
}

/// The library on the current GPU.
pub(crate) struct Cufft {
    calls: Calls,
}

impl Cufft {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { calls: Calls::load(dlopen::Library::open(path)?)? })
    }

    /// 11303 for 11.3.3.
    pub(crate) fn version(&self) -> Result<c_int, GpuLibraryError> {
        let mut version = 0;
        // SAFETY: the pointer is to a living number.
        done("cufftGetVersion", unsafe { (self.calls.version)(&raw mut version) })?;
        Ok(version)
    }

    /// Puts the transform of `size` complex numbers on the default stream: of fp64 if `double`, else of fp32.
    pub(crate) fn transform(
        &self,
        (size, double): (usize, bool),
        direction: Direction,
        [from, to]: [&Buffer; 2],
    ) -> Result<(), GpuLibraryError> {
        let count = c_int::try_from(size).unwrap_or(c_int::MAX);
        let mut plan = 0;
        // SAFETY: the pointer is to a living number; one transform.
        let code =
            unsafe { (self.calls.plan)(&raw mut plan, count, if double { DOUBLE } else { SINGLE }, 1) };
        done("cufftPlan1d", code)?;
        let (name, execute) =
            if double { ("cufftExecZ2Z", self.calls.double) } else { ("cufftExecC2C", self.calls.single) };
        // SAFETY: both stretches are alive and hold `size` complex numbers of the plan's kind.
        let answer = done(name, unsafe { execute(plan, from.address, to.address, direction as c_int) });
        // SAFETY: the plan was made above and is destroyed once; cuFFT waits for what uses its memory.
        answer.and(done("cufftDestroy", unsafe { (self.calls.destroy)(plan) }))
    }
}
