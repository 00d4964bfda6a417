//! cuBLAS and cuBLASLt: one product of two matrices in any precision they offer.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Buffer, Device};
use super::status::{GpuLibraryError, Library, OpenError};
use crate::dlopen;
use crate::reference::{Format, Shape};

type Handle = *mut c_void;

functions! {
    /// Exported by 10 to 13.x under the same names.
    Calls {
        create = c"cublasCreate_v2"(*mut Handle);
        version = c"cublasGetVersion_v2"(Handle, *mut c_int);
        gemm = c"cublasGemmEx"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, c_int, Address, c_int, c_int,
            *const c_void, Address, c_int, c_int, c_int, c_int,
        );
    }
}

functions! {
    /// The part of cuBLASLt that fp8 needs: cublasGemmEx does not offer it.
    LtCalls {
        create = c"cublasLtCreate"(*mut Handle);
        operation = c"cublasLtMatmulDescCreate"(*mut Handle, c_int, c_int);
        set_operation = c"cublasLtMatmulDescSetAttribute"(Handle, c_int, *const c_void, usize);
        layout = c"cublasLtMatrixLayoutCreate"(*mut Handle, c_int, u64, u64, i64);
        preference = c"cublasLtMatmulPreferenceCreate"(*mut Handle);
        set_preference = c"cublasLtMatmulPreferenceSetAttribute"(Handle, c_int, *const c_void, usize);
        heuristic = c"cublasLtMatmulAlgoGetHeuristic"(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Heuristic, *mut c_int,
        );
        multiply = c"cublasLtMatmul"(
            Handle, Handle, *const c_void, Address, Handle, Address, Handle, *const c_void, Address, Handle, Address,
            Handle, *const Heuristic, Address, usize, Handle,
        );
    }
}

/// `cublasLtMatmulHeuristicResult_t`; its first member is the algorithm, 64 opaque bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Heuristic {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// How a product is computed: formats, and cuBLAS's name of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Fp64,
    Fp32,
    Tf32,
    Fp16,
    Bf16,
    Fp8,
    Int8,
}

/// Operands, fp8 and int8 with the right one transposed (n × k): the only form their tensor-core kernels take.
pub(crate) struct Operands<'a> {
    pub(crate) a: &'a Buffer,
    pub(crate) b: &'a Buffer,
    pub(crate) c: &'a Buffer,
}

/// cuBLAS on the current GPU.
pub(crate) struct Cublas {
    calls: Calls,
    handle: Handle,
    version: c_int,
}

/// cuBLASLt on the current GPU.
pub(crate) struct CublasLt {
    calls: LtCalls,
    handle: Handle,
    workspace: Buffer,
    fast_accumulation: bool,
}

/// The version of cuBLAS (CUDA 11.0) whose `cublasGemmEx` takes a `cublasComputeType_t`.
const FIRST_COMPUTE_TYPES: c_int = 11_000;
/// What Hopper's kernels want at most; more is never asked for.
const WORKSPACE: usize = 32 << 20;

impl Arithmetic {
    /// The format of the operands and of the result.
    pub(crate) fn formats(self) -> (Format, Format) {
        match self {
            Self::Fp64 => (Format::Fp64, Format::Fp64),
            Self::Fp32 => (Format::Fp32, Format::Fp32),
            Self::Tf32 => (Format::Tf32, Format::Fp32),
            Self::Fp16 => (Format::Fp16, Format::Fp32),
            Self::Bf16 => (Format::Bf16, Format::Fp32),
            Self::Fp8 => (Format::E4m3, Format::Fp32),
            Self::Int8 => (Format::Int8, Format::Int32),
        }
    }

    /// Whether the right operand is given transposed.
    pub(crate) fn transposed(self) -> bool {
        matches!(self, Self::Fp8 | Self::Int8)
    }

    /// The arithmetic as cuBLAS of that version names it: `cublasComputeType_t`; before 11 the sum's `cudaDataType`.
    fn compute_in(self, version: c_int) -> c_int {
        match self {
            _ if version >= FIRST_COMPUTE_TYPES => self.compute(),
            Self::Fp64 => kind(Format::Fp64),
            Self::Int8 => kind(Format::Int32),
            _ => kind(Format::Fp32),
        }
    }

    /// `cublasComputeType_t`.
    fn compute(self) -> c_int {
        match self {
            Self::Fp64 => 70,
            Self::Tf32 => 77,
            Self::Int8 => 72,
            Self::Fp32 | Self::Fp16 | Self::Bf16 | Self::Fp8 => 68,
        }
    }
}

/// `cudaDataType_t`.
fn kind(format: Format) -> c_int {
    match format {
        Format::Fp32 | Format::Tf32 => 0,
        Format::Fp64 => 1,
        Format::Fp16 => 2,
        Format::Int8 => 3,
        Format::Int32 => 10,
        Format::Bf16 => 14,
        Format::E4m3 => 28,
        Format::E5m2 => 29,
    }
}

/// One and zero in the format of the scale, which is that of the arithmetic.
fn scale(arithmetic: Arithmetic, one: bool) -> [u8; 8] {
    let mut bytes = [0; 8];
    match arithmetic {
        Arithmetic::Fp64 => bytes.copy_from_slice(&f64::from(u8::from(one)).to_le_bytes()),
        Arithmetic::Int8 => bytes[..4].copy_from_slice(&i32::from(one).to_le_bytes()),
        _ => bytes[..4].copy_from_slice(&f32::from(u8::from(one)).to_le_bytes()),
    }
    bytes
}

fn done(call: &str, code: c_int) -> Result<(), GpuLibraryError> {
    if code == 0 { Ok(()) } else { Err(GpuLibraryError::new(Library::Cublas, call, code)) }
}

fn int(size: usize) -> c_int {
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

impl Cublas {
    /// Loads the library and makes a handle. cuBLAS finds its other half by name: that must be loaded before.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let calls = Calls::load(dlopen::Library::open(path)?)?;
        let mut handle = null_mut();
        // SAFETY: the pointer is to a living handle.
        done("cublasCreate_v2", unsafe { (calls.create)(&raw mut handle) })?;
        let mut version = 0;
        // SAFETY: the handle is alive, the pointer is to a living number.
        done("cublasGetVersion_v2", unsafe { (calls.version)(handle, &raw mut version) })?;
        Ok(Self { calls, handle, version })
    }

    /// 120804 for 12.8.4, 10202 for 10.2.2.
    pub(crate) fn version(&self) -> c_int {
        self.version
    }

    /// Puts c = a × b on the default stream, all row-major: to cuBLAS, which reads by columns, that is cᵀ = bᵀ × aᵀ.
    pub(crate) fn multiply(
        &self,
        arithmetic: Arithmetic,
        shape: Shape,
        operands: &Operands<'_>,
    ) -> Result<(), GpuLibraryError> {
        let (input, output) = arithmetic.formats();
        let (one, zero) = (scale(arithmetic, true), scale(arithmetic, false));
        let [m, n, k] = [shape.m, shape.n, shape.k].map(int);
        // n × k by rows is k × n by columns, and has to be turned.
        let (turn, leading) = if arithmetic.transposed() { (1, k) } else { (0, n) };
        // SAFETY: the handle and all memory are alive; the operands are as long as shape and format say, which the
        // caller made them; the scales are of the arithmetic's format.
        let code = unsafe {
            (self.calls.gemm)(
                self.handle,
                turn,
                0,
                n,
                m,
                k,
                one.as_ptr().cast(),
                operands.b.address,
                kind(input),
                leading,
                operands.a.address,
                kind(input),
                k,
                zero.as_ptr().cast(),
                operands.c.address,
                kind(output),
                n,
                arithmetic.compute_in(self.version),
                -1,
            )
        };
        done(&format!("cublasGemmEx({arithmetic:?})"), code)
    }
}

impl CublasLt {
    /// Loads the library, makes a handle and a workspace.
    pub(crate) fn open(path: &Path, device: &Device) -> Result<Self, OpenError> {
        let calls = LtCalls::load(dlopen::Library::open(path)?)?;
        let mut handle = null_mut();
        // SAFETY: the pointer is to a living handle.
        done("cublasLtCreate", unsafe { (calls.create)(&raw mut handle) })?;
        let workspace = device.buffer(WORKSPACE)?;
        Ok(Self { calls, handle, workspace, fast_accumulation: false })
    }

    /// Sums fp8 products in the tensor cores' own precision, as frameworks do: faster and less exact.
    pub(crate) fn with_fast_accumulation(self) -> Self {
        Self { fast_accumulation: true, ..self }
    }

    /// Puts c = a × b on the default stream; the right operand is given transposed. Descriptors are small and are left
    /// to the end of the process.
    pub(crate) fn multiply(
        &self,
        arithmetic: Arithmetic,
        shape: Shape,
        operands: &Operands<'_>,
    ) -> Result<(), GpuLibraryError> {
        let (input, output) = arithmetic.formats();
        let (one, zero) = (scale(arithmetic, true), scale(arithmetic, false));
        let (m, n, k) = (shape.m as u64, shape.n as u64, shape.k as u64);
        let operation = self.operation(arithmetic)?;
        let left = self.layout(kind(input), k, n)?;
        let right = self.layout(kind(input), k, m)?;
        let result = self.layout(kind(output), n, m)?;
        let heuristic = self.heuristic(operation, [left, right, result])?;
        // SAFETY: every descriptor is alive and describes memory that is alive; the algorithm was made for them.
        let code = unsafe {
            (self.calls.multiply)(
                self.handle,
                operation,
                one.as_ptr().cast(),
                operands.b.address,
                left,
                operands.a.address,
                right,
                zero.as_ptr().cast(),
                operands.c.address,
                result,
                operands.c.address,
                result,
                &raw const heuristic,
                self.workspace.address,
                WORKSPACE,
                null_mut(),
            )
        };
        done(&format!("cublasLtMatmul({arithmetic:?})"), code)
    }

    fn operation(&self, arithmetic: Arithmetic) -> Result<Handle, GpuLibraryError> {
        let scales = if arithmetic == Arithmetic::Int8 { 10 } else { 0 };
        let mut operation = null_mut();
        // SAFETY: the pointer is to a living handle.
        let code = unsafe { (self.calls.operation)(&raw mut operation, arithmetic.compute(), scales) };
        done("cublasLtMatmulDescCreate", code)?;
        let turn: c_int = 1;
        // SAFETY: attribute 3, TRANSA, is an int.
        let code =
            unsafe { (self.calls.set_operation)(operation, 3, (&raw const turn).cast(), size_of::<c_int>()) };
        done("cublasLtMatmulDescSetAttribute(TRANSA)", code)?;
        if self.fast_accumulation {
            let fast: i8 = 1;
            // SAFETY: attribute 25, FAST_ACCUM, is an int8_t.
            let code = unsafe {
                (self.calls.set_operation)(operation, 25, (&raw const fast).cast(), size_of::<i8>())
            };
            done("cublasLtMatmulDescSetAttribute(FAST_ACCUM)", code)?;
        }
        Ok(operation)
    }

    fn layout(&self, kind: c_int, rows: u64, columns: u64) -> Result<Handle, GpuLibraryError> {
        let mut layout = null_mut();
        let leading = i64::try_from(rows).unwrap_or(i64::MAX);
        // SAFETY: the pointer is to a living handle.
        let code = unsafe { (self.calls.layout)(&raw mut layout, kind, rows, columns, leading) };
        done("cublasLtMatrixLayoutCreate", code)?;
        Ok(layout)
    }

    fn heuristic(
        &self,
        operation: Handle,
        [left, right, result]: [Handle; 3],
    ) -> Result<Heuristic, GpuLibraryError> {
        let mut preference = null_mut();
        // SAFETY: the pointer is to a living handle.
        done("cublasLtMatmulPreferenceCreate", unsafe { (self.calls.preference)(&raw mut preference) })?;
        let workspace = WORKSPACE as u64;
        // SAFETY: attribute 1, MAX_WORKSPACE_BYTES, is 64 bits.
        let code = unsafe {
            (self.calls.set_preference)(preference, 1, (&raw const workspace).cast(), size_of::<u64>())
        };
        done("cublasLtMatmulPreferenceSetAttribute(MAX_WORKSPACE_BYTES)", code)?;
        let mut found = Heuristic { algorithm: [0; 8], workspace: 0, state: 0, waves: 0.0, reserved: [0; 4] };
        let mut count = 0;
        // SAFETY: every handle is alive; there is room for the one answer that is asked for.
        let code = unsafe {
            (self.calls.heuristic)(
                self.handle,
                operation,
                left,
                right,
                result,
                result,
                preference,
                1,
                &raw mut found,
                &raw mut count,
            )
        };
        done("cublasLtMatmulAlgoGetHeuristic", code)?;
        // No algorithm is the same as "not supported".
        if count < 1 {
            Err(GpuLibraryError::new(Library::Cublas, "cublasLtMatmulAlgoGetHeuristic", 15))
        } else {
            Ok(found)
        }
    }
}
