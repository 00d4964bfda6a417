//! The rules' stable names, used in JSON and in the documentation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A rule that a combination can violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The product name is unknown.
    UnknownName,
    /// The version of the product is unknown.
    UnknownVersion,
    /// The version is not published for this CUDA or processor.
    VariantUnpublished,
    /// The framework has no wheel for this Python.
    PythonUnsupported,
    /// No base has this Python.
    NoBaseForPython,
    /// The driver is older than the CUDA requires.
    DriverTooOld,
    /// The driver does not support the GPU: too new or too old for it.
    DriverDropsGpu,
    /// The binary has no code for the GPU.
    GpuNotInBinary,
    /// The CUDA toolkit no longer supports the GPU.
    ToolkitDropsGpu,
    /// The cuDNN build has no code for the GPU.
    CudnnDropsGpu,
    /// The compiler that the framework calls at run time has no target for the GPU.
    JitLacksGpu,
    /// A requested package is coupled to another torch or CUDA.
    CompanionMismatch,
    /// The base's C library is older than the binary requires.
    GlibcTooOld,
    /// nvcc supports none of the base's host compilers.
    HostCompilerTooNew,
    /// No configured source has that nvcc.
    ToolkitUnavailable,
    /// The numpy that the binary requires has no wheel for this Python.
    NumpyAbi,
}

impl Rule {
    /// Returns the name in JSON and documentation: `gpu-not-in-binary`.
    pub fn id(self) -> &'static str {
        match self {
            Self::UnknownName => "unknown-name",
            Self::UnknownVersion => "unknown-version",
            Self::VariantUnpublished => "variant-unpublished",
            Self::PythonUnsupported => "python-unsupported",
            Self::NoBaseForPython => "no-base-for-python",
            Self::DriverTooOld => "driver-too-old",
            Self::DriverDropsGpu => "driver-drops-gpu",
            Self::GpuNotInBinary => "gpu-not-in-binary",
            Self::ToolkitDropsGpu => "toolkit-drops-gpu",
            Self::CudnnDropsGpu => "cudnn-drops-gpu",
            Self::JitLacksGpu => "jit-lacks-gpu",
            Self::CompanionMismatch => "companion-mismatch",
            Self::GlibcTooOld => "glibc-too-old",
            Self::HostCompilerTooNew => "host-compiler-too-new",
            Self::ToolkitUnavailable => "toolkit-unavailable",
            Self::NumpyAbi => "numpy-abi",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}
