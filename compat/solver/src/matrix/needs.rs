//! What wheels require, bring twice and lack: other packages, one module of several distributions, libraries of the operating system.
//!
//! Owns the shape of their rows. Must not judge them.

use serde::{Deserialize, Serialize};

use crate::versions::{FrameworkVersion, Machine, PythonVersion};

/// What consecutive releases of a framework require of other packages, with or without rows of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameworkRequirement {
    /// The framework: `tensorflow`.
    pub framework: String,
    /// The first release.
    pub first: FrameworkVersion,
    /// The last release.
    pub last: FrameworkVersion,
    /// The first Python for which its METADATA says so; `None`: any.
    pub python_from: Option<PythonVersion>,
    /// The only processor for which its METADATA says so; `None`: any.
    pub machine: Option<Machine>,
    /// The requirements, without markers: `numpy>=1.26.0,<2.1.0`.
    pub requires: Vec<String>,
    /// What requires it, if that is a package that the framework requires; `None`: the framework itself.
    pub why: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

impl FrameworkRequirement {
    /// Whether the row is about a release on a Python and a processor.
    pub fn covers(&self, version: &FrameworkVersion, python: PythonVersion, machine: Machine) -> bool {
        let version = version.public();
        let is_released = self.first <= version && version <= self.last;
        let is_place = self.machine.is_none_or(|only| only == machine);
        is_released && is_place && self.python_from.is_none_or(|first| first <= python)
    }

    /// Returns the versions of a package that it accepts: `>=1.26.0,<2.1.0`.
    pub fn versions_of(&self, package: &str) -> Option<&str> {
        self.requires.iter().find_map(|one| {
            one.strip_prefix(package).filter(|rest| rest.starts_with(['=', '<', '>', '!', '~']))
        })
    }
}

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

/// The libraries of the operating system that a wheel needs, by the rule of `linker-closure`, and does not bring.
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
