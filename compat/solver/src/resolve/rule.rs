//! The rules' stable names, used in JSON and in the documentation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares each rule once, with its name in JSON and documentation.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $id:literal,)+) => {
        /// A rule that a combination can violate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Rule {
            $($(#[$doc])* #[serde(rename = $id)] $rule,)+
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$rule),+];

            /// Returns the name in JSON and documentation: `gpu-not-in-binary`.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$rule => $id,)+
                }
            }
        }
    };
}

rules! {
    /// The product name is unknown.
    UnknownName = "unknown-name",
    /// The version of the product is unknown.
    UnknownVersion = "unknown-version",
    /// No build of the version for this CUDA or processor is in the matrix.
    VariantUnpublished = "variant-unpublished",
    /// No wheel of the framework for this Python is in the matrix.
    PythonUnsupported = "python-unsupported",
    /// No base has this Python.
    NoBaseForPython = "no-base-for-python",
    /// The driver is older than the CUDA requires.
    DriverTooOld = "driver-too-old",
    /// The driver does not support the GPU: too new or too old for it.
    DriverDropsGpu = "driver-drops-gpu",
    /// The binary has no code for the GPU.
    GpuNotInBinary = "gpu-not-in-binary",
    /// The GPU code of the only binaries that fit was not read.
    GpuCodeUnknown = "gpu-code-unknown",
    /// The CUDA toolkit no longer supports the GPU.
    ToolkitDropsGpu = "toolkit-drops-gpu",
    /// The cuDNN build has no code for the GPU.
    CudnnDropsGpu = "cudnn-drops-gpu",
    /// The compiler that the framework calls at run time has no target for the GPU.
    JitLacksGpu = "jit-lacks-gpu",
    /// A requested package is coupled to another torch or CUDA.
    CompanionMismatch = "companion-mismatch",
    /// The base's C library is older than the binary requires.
    GlibcTooOld = "glibc-too-old",
    /// nvcc supports none of the base's host compilers.
    HostCompilerTooNew = "host-compiler-too-new",
    /// No configured source has that nvcc.
    ToolkitUnavailable = "toolkit-unavailable",
    /// The numpy that the binary requires has no wheel for this Python.
    NumpyAbi = "numpy-abi",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}
