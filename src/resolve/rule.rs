//! The rules' stable names, used in JSON and in the documentation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One way in which a combination can be impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// No product has this name.
    UnknownName,
    /// The product never had this version, or none that is known here.
    UnknownVersion,
    /// Nobody published this version for this CUDA or processor.
    VariantUnpublished,
    /// The framework has no wheel for this Python.
    PythonUnsupported,
    /// No base system brings this Python.
    NoBaseForPython,
    /// The driver is older than the CUDA needs.
    DriverTooOld,
    /// The driver does not drive the GPU: too new or too old for it.
    DriverDropsGpu,
    /// The binary holds no code that the GPU can run.
    GpuNotInBinary,
    /// The CUDA toolkit no longer knows the GPU.
    ToolkitDropsGpu,
    /// That cuDNN build holds no code that the GPU can run.
    CudnnDropsGpu,
    /// The base's C library is older than the binary needs.
    GlibcTooOld,
    /// nvcc accepts none of the base's host compilers.
    HostCompilerTooNew,
    /// No configured source has that nvcc.
    ToolkitUnavailable,
    /// The numpy that the binary needs does not exist for this Python.
    NumpyAbi,
}

impl Rule {
    /// The name in JSON and documentation: `gpu-not-in-binary`.
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
