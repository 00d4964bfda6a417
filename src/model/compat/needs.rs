//! What wheels bring twice and what they lack: distributions that install one module, and libraries of the operating system.
//!
//! Owns the shape of their rows. Must not judge them. Also compiled into `build.rs`.

use serde::{Deserialize, Serialize};

/// Distributions that install one module: of two of them, the files of one replace those of the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SameModule {
    /// The module: `cv2`.
    pub module: String,
    /// The normalized names of the distributions, sorted.
    pub packages: Vec<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The libraries of the operating system that a wheel loads at import and does not bring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelLibraries {
    /// The normalized name of the package.
    pub package: String,
    /// The release whose wheel was read.
    pub read: String,
    /// The names by which it loads them, sorted: `libGL.so.1`.
    pub libraries: Vec<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The package of Debian and Ubuntu that has a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistributionLibrary {
    /// The name by which it is loaded: `libGL.so.1`.
    pub library: String,
    /// The package: `libgl1`. Later releases may have it as `libgl1t64`, which takes the place of that name.
    pub package: String,
    /// Where the row comes from.
    pub source: String,
}
