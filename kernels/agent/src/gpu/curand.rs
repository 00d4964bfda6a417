//! cuRAND: pseudo-random and quasi-random numbers.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Buffer};
use super::status::{GpuLibraryError, OpenError, math_done as done};
use crate::dlopen;

type Handle = *mut c_void;

functions! {
    /// Unchanged from CUDA 10 to 13.
    Calls {
        version = c"curandGetVersion"(*mut c_int);
        create = c"curandCreateGenerator"(*mut Handle, c_int);
        seed = c"curandSetPseudoRandomGeneratorSeed"(Handle, u64);
        words = c"curandGenerate"(Handle, Address, usize);
        uniform = c"curandGenerateUniform"(Handle, Address, usize);
        destroy = c"curandDestroyGenerator"(Handle);
    }
}

/// What numbers are made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Philox with that seed: `CURAND_RNG_PSEUDO_PHILOX4_32_10`.
    Philox(u64),
    /// Sobol's sequence of one dimension: `CURAND_RNG_QUASI_SOBOL32`.
    Sobol,
}

/// The library on the current GPU.
pub(crate) struct Curand {
    calls: Calls,
}

impl Curand {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { calls: Calls::load(dlopen::Library::open(path)?)? })
    }

    /// 10309 for 10.3.9.
    pub(crate) fn version(&self) -> Result<c_int, GpuLibraryError> {
        let mut version = 0;
        // SAFETY: the pointer is to a living number.
        done("curandGetVersion", unsafe { (self.calls.version)(&raw mut version) })?;
        Ok(version)
    }

    /// Fills a buffer with words of 32 bits, or with fp32 numbers above 0 up to 1, on the default stream.
    pub(crate) fn fill(
        &self,
        source: Source,
        is_uniform: bool,
        buffer: &Buffer,
    ) -> Result<(), GpuLibraryError> {
        let kind = if source == Source::Sobol { 201 } else { 161 };
        let mut generator = null_mut();
        // SAFETY: the pointer is to a living handle.
        let code = unsafe { (self.calls.create)(&raw mut generator, kind) };
        done(&format!("curandCreateGenerator({kind})"), code)?;
        let filled = self.filled(generator, source, is_uniform, buffer);
        // SAFETY: the generator was made above and is destroyed once.
        filled.and(done("curandDestroyGenerator", unsafe { (self.calls.destroy)(generator) }))
    }

    fn filled(
        &self,
        generator: Handle,
        source: Source,
        is_uniform: bool,
        buffer: &Buffer,
    ) -> Result<(), GpuLibraryError> {
        if let Source::Philox(seed) = source {
            // SAFETY: the generator is alive.
            let code = unsafe { (self.calls.seed)(generator, seed) };
            done("curandSetPseudoRandomGeneratorSeed", code)?;
        }
        let (name, generate) = if is_uniform {
            ("curandGenerateUniform", self.calls.uniform)
        } else {
            ("curandGenerate", self.calls.words)
        };
        // SAFETY: the buffer is alive and holds that many numbers of four bytes.
        done(name, unsafe { generate(generator, buffer.address, buffer.bytes / 4) })
    }
}
