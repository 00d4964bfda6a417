//! cuDNN 8 and 9 by the interface both have: convolution forward and backward with a chosen algorithm.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Buffer, Device};
use super::status::{GpuLibraryError, Library, OpenError};
use crate::dlopen;
use crate::reference::{Convolution, Format, Layout};

type Handle = *mut c_void;

functions! {
    /// Exported by 8.0 to 9.28.
    Calls {
        create = c"cudnnCreate"(*mut Handle);
        tensor = c"cudnnCreateTensorDescriptor"(*mut Handle);
        set_tensor = c"cudnnSetTensor4dDescriptor"(Handle, c_int, c_int, c_int, c_int, c_int, c_int);
        filter = c"cudnnCreateFilterDescriptor"(*mut Handle);
        set_filter = c"cudnnSetFilter4dDescriptor"(Handle, c_int, c_int, c_int, c_int, c_int, c_int);
        convolution = c"cudnnCreateConvolutionDescriptor"(*mut Handle);
        set_convolution = c"cudnnSetConvolution2dDescriptor"(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int,
        );
        set_groups = c"cudnnSetConvolutionGroupCount"(Handle, c_int);
        set_math = c"cudnnSetConvolutionMathType"(Handle, c_int);
        forward_size = c"cudnnGetConvolutionForwardWorkspaceSize"(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut usize,
        );
        data_size = c"cudnnGetConvolutionBackwardDataWorkspaceSize"(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut usize,
        );
        filter_size = c"cudnnGetConvolutionBackwardFilterWorkspaceSize"(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut usize,
        );
        forward = c"cudnnConvolutionForward"(
            Handle, *const c_void, Handle, Address, Handle, Address, Handle, c_int, Address, usize, *const c_void,
            Handle, Address,
        );
        data = c"cudnnConvolutionBackwardData"(
            Handle, *const c_void, Handle, Address, Handle, Address, Handle, c_int, Address, usize, *const c_void,
            Handle, Address,
        );
        backward_filter = c"cudnnConvolutionBackwardFilter"(
            Handle, *const c_void, Handle, Address, Handle, Address, Handle, c_int, Address, usize, *const c_void,
            Handle, Address,
        );
    }
}

/// cuDNN on the current GPU.
pub(crate) struct Cudnn {
    calls: Calls,
    handle: Handle,
    version: usize,
}

/// Which of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// y from x and w.
    Forward,
    /// dx from dy and w.
    Data,
    /// dw from dy and x.
    Filter,
}

/// An algorithm of a convolution, with the memory it works in.
pub(crate) struct Algorithm {
    /// Its number in cuDNN's headers.
    pub(crate) number: c_int,
    workspace: Option<Buffer>,
}

/// The descriptors of one convolution.
pub(crate) struct Described {
    x: Handle,
    w: Handle,
    y: Handle,
    convolution: Handle,
}

/// Whether tensor cores may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Math {
    /// `CUDNN_FMA_MATH`: fp32 stays fp32.
    Plain,
    /// `CUDNN_TENSOR_OP_MATH`.
    Tensor,
}

impl Pass {
    /// Algorithms whose sums are those of the definition, the wanted one first: no Winograd, no FFT. Forward: 1 is
    /// `IMPLICIT_PRECOMP_GEMM`, 0 is `IMPLICIT_GEMM`.
    pub(crate) const ALGORITHMS: [c_int; 2] = [1, 0];

    /// The name of an algorithm of [`Self::ALGORITHMS`].
    pub(crate) fn algorithm(self, number: c_int) -> &'static str {
        match (self, number) {
            (Self::Forward, 1) => "IMPLICIT_PRECOMP_GEMM",
            (Self::Forward, _) => "IMPLICIT_GEMM",
            (_, 1) => "ALGO_1",
            _ => "ALGO_0",
        }
    }
}

fn done(call: &str, code: c_int) -> Result<(), GpuLibraryError> {
    if code == 0 { Ok(()) } else { Err(GpuLibraryError::new(Library::Cudnn, call, code)) }
}

/// Whether cuDNN does not offer a combination. Not supported is 9 in version 8 and 3000 to 3999 in 9; for some combinations
/// it calls a parameter bad (3, 2000 to 2999), or fails internally (4, 4000) or at the launch (8, 5000). The caller insists
/// on the plain ones, where each of these is a fault. An old driver, another GPU or a missing part (3005 to 3009) is a fault
/// for every shape.
pub(crate) fn is_refused(fault: &GpuLibraryError) -> bool {
    let refused = matches!(fault.code, 3 | 4 | 8 | 9 | 2000..=3004 | 3010..=3999 | 4000 | 5000);
    fault.library == Library::Cudnn && refused
}

fn ints(sizes: [usize; 4]) -> [c_int; 4] {
    sizes.map(|size| c_int::try_from(size).unwrap_or(c_int::MAX))
}

fn made(call: &str, create: unsafe extern "C" fn(*mut Handle) -> c_int) -> Result<Handle, GpuLibraryError> {
    let mut handle = null_mut();
    // SAFETY: the pointer is to a living handle.
    done(call, unsafe { create(&raw mut handle) })?;
    Ok(handle)
}

impl Cudnn {
    /// Loads the library and makes a handle.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let library = dlopen::Library::open(path)?;
        // SAFETY: `size_t cudnnGetVersion(void)`.
        let version = unsafe { library.function::<unsafe extern "C" fn() -> usize>(c"cudnnGetVersion")?() };
        let calls = Calls::load(library)?;
        let handle = made("cudnnCreate", calls.create)?;
        Ok(Self { calls, handle, version })
    }

    /// 91002 for 9.10.2.
    pub(crate) fn version(&self) -> usize {
        self.version
    }

    /// Describes a convolution of fp32 or fp16 data, computed in fp32.
    #[expect(clippy::many_single_char_names, reason = "the field's names")]
    pub(crate) fn describe(
        &self,
        conv: &Convolution,
        format: Format,
        math: Math,
    ) -> Result<Described, GpuLibraryError> {
        let layout = match conv.layout {
            Layout::Nchw => 0,
            Layout::Nhwc => 1,
        };
        let kind = match format {
            Format::Fp16 => 2,
            Format::Bf16 => 9,
            _ => 0,
        };
        let tensor = |sizes: [usize; 4]| -> Result<Handle, GpuLibraryError> {
            let tensor = made("cudnnCreateTensorDescriptor", self.calls.tensor)?;
            let [n, c, h, w] = ints(sizes);
            // SAFETY: the descriptor was just made.
            let code = unsafe { (self.calls.set_tensor)(tensor, layout, kind, n, c, h, w) };
            done("cudnnSetTensor4dDescriptor", code).map(|()| tensor)
        };
        let (x, y) = (tensor(conv.x())?, tensor(conv.y())?);
        let w = made("cudnnCreateFilterDescriptor", self.calls.filter)?;
        let [k, c, r, s] = ints(conv.w());
        // SAFETY: the descriptor was just made. Here the kind comes before the layout.
        let code = unsafe { (self.calls.set_filter)(w, kind, layout, k, c, r, s) };
        done("cudnnSetFilter4dDescriptor", code)?;
        let convolution = made("cudnnCreateConvolutionDescriptor", self.calls.convolution)?;
        let [pad_h, pad_w, stride_h, stride_w] =
            ints([conv.pad[0], conv.pad[1], conv.stride[0], conv.stride[1]]);
        let [dilation_h, dilation_w, groups, _] = ints([conv.dilation[0], conv.dilation[1], conv.groups, 0]);
        // SAFETY: the descriptor was just made; 1 is cross-correlation, what frameworks call convolution; 0 is fp32.
        let code = unsafe {
            (self.calls.set_convolution)(
                convolution,
                pad_h,
                pad_w,
                stride_h,
                stride_w,
                dilation_h,
                dilation_w,
                1,
                0,
            )
        };
        done("cudnnSetConvolution2dDescriptor", code)?;
        // SAFETY: the descriptor is alive.
        done("cudnnSetConvolutionGroupCount", unsafe { (self.calls.set_groups)(convolution, groups) })?;
        let math = match math {
            Math::Plain => 3,
            Math::Tensor => 1,
        };
        // SAFETY: the descriptor is alive.
        done("cudnnSetConvolutionMathType", unsafe { (self.calls.set_math)(convolution, math) })?;
        Ok(Described { x, w, y, convolution })
    }

    /// Bytes of workspace that an algorithm needs.
    fn workspace(&self, what: &Described, pass: Pass, algorithm: c_int) -> Result<usize, GpuLibraryError> {
        let Described { x, w, y, convolution } = *what;
        let mut bytes = 0;
        // SAFETY: every descriptor is alive; the order of the tensors is that of each function's header.
        let (call, code) = unsafe {
            match pass {
                Pass::Forward => (
                    "cudnnGetConvolutionForwardWorkspaceSize",
                    (self.calls.forward_size)(self.handle, x, w, convolution, y, algorithm, &raw mut bytes),
                ),
                Pass::Data => (
                    "cudnnGetConvolutionBackwardDataWorkspaceSize",
                    (self.calls.data_size)(self.handle, w, y, convolution, x, algorithm, &raw mut bytes),
                ),
                Pass::Filter => (
                    "cudnnGetConvolutionBackwardFilterWorkspaceSize",
                    (self.calls.filter_size)(self.handle, x, y, convolution, w, algorithm, &raw mut bytes),
                ),
            }
        };
        done(call, code).map(|()| bytes)
    }

    /// Puts one pass on the default stream: `x`, `w` and `y` hold data or gradients, the one that is sought is written.
    pub(crate) fn run(
        &self,
        what: &Described,
        pass: Pass,
        by: &Algorithm,
        [x, w, y]: [&Buffer; 3],
    ) -> Result<(), GpuLibraryError> {
        let algorithm = by.number;
        let (one, zero) = (1f32, 0f32);
        let (one, zero): (*const c_void, *const c_void) = ((&raw const one).cast(), (&raw const zero).cast());
        let (space, bytes) = by.workspace.as_ref().map_or((0, 0), |space| (space.address, space.bytes));
        let (h, conv) = (self.handle, what.convolution);
        let (dx, dw, dy) = (what.x, what.w, what.y);
        let (xp, wp, yp) = (x.address, w.address, y.address);
        // SAFETY: descriptors and memory are alive, and the memory is as long as they say; scales are fp32 on the host.
        let (call, code) = unsafe {
            match pass {
                Pass::Forward => (
                    "cudnnConvolutionForward",
                    (self.calls.forward)(h, one, dx, xp, dw, wp, conv, algorithm, space, bytes, zero, dy, yp),
                ),
                Pass::Data => (
                    "cudnnConvolutionBackwardData",
                    (self.calls.data)(h, one, dw, wp, dy, yp, conv, algorithm, space, bytes, zero, dx, xp),
                ),
                Pass::Filter => (
                    "cudnnConvolutionBackwardFilter",
                    (self.calls.backward_filter)(
                        h, one, dx, xp, dy, yp, conv, algorithm, space, bytes, zero, dw, wp,
                    ),
                ),
            }
        };
        done(call, code)
    }

    /// Returns an algorithm with its workspace; `None` if this cuDNN does not offer it for a convolution.
    pub(crate) fn algorithm(
        &self,
        device: &Device,
        what: &Described,
        pass: Pass,
        number: c_int,
    ) -> Result<Option<Algorithm>, GpuLibraryError> {
        let workspace = match self.workspace(what, pass, number) {
            Ok(0) => None,
            Ok(bytes) => Some(device.buffer(bytes)?),
            Err(fault) if is_refused(&fault) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        Ok(Some(Algorithm { number, workspace }))
    }

    /// Returns the first exact algorithm that this cuDNN offers for a convolution.
    pub(crate) fn exact_algorithm(
        &self,
        device: &Device,
        what: &Described,
        pass: Pass,
    ) -> Result<Option<Algorithm>, GpuLibraryError> {
        for number in Pass::ALGORITHMS {
            if let Some(found) = self.algorithm(device, what, pass, number)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_shape_may_be_refused_and_a_wrong_gpu_may_not() {
        let refused =
            |code| is_refused(&GpuLibraryError::new(Library::Cudnn, "cudnnConvolutionForward", code));
        for code in [3, 4, 8, 9, 2000, 3000, 3002, 4000, 5000] {
            assert!(refused(code), "{code}");
        }
        for code in [1, 2, 6, 1001, 3005, 3007, 3008, 3009, 4003, 4004, 5003] {
            assert!(!refused(code), "{code}");
        }
    }
}
