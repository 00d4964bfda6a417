//! The flavour of an image: `runtime` or `devel`.

use serde::{Deserialize, Serialize};

/// The purpose of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Framework, CUDA libraries, C/C++ compiler, Python headers, developer stack.
    #[default]
    Runtime,
    /// Additionally nvcc, CUDA headers, a supported host compiler, and Nsight if available.
    Devel,
}

impl std::fmt::Display for Flavour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Runtime => "runtime",
            Self::Devel => "devel",
        })
    }
}
