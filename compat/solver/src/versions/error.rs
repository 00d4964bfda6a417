//! The error of invalid versions.

use std::fmt;

/// An invalid version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionError {
    /// The expected kind: "a driver version such as `570.124.06`".
    pub wanted: &'static str,
    /// The given text.
    pub found: String,
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.found, self.wanted)
    }
}

impl std::error::Error for VersionError {}
