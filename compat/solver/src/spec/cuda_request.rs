//! The CUDA that a spec requests.

use std::fmt;

use crate::versions::{CudaVariant, ToolkitVersion};

/// The CUDA of a spec: a major (`cu12`), a minor (`cu128`) or a toolkit release (`cuda12.8.1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaRequest {
    /// 12 of `cu128`.
    pub major: u8,
    /// 8 of `cu128`; `None` in `cu12`.
    pub minor: Option<u8>,
    /// 1 of `cuda12.8.1`; only if `minor` is given.
    pub patch: Option<u8>,
}

impl CudaRequest {
    /// Whether a variant built with this toolkit release matches the request. A wheel of a whole major (`cu13`) matches
    /// every CUDA of it, since the framework promises no more: `cu130` is read as `cu13`.
    pub fn covers(self, variant: CudaVariant, toolkit: &ToolkitVersion) -> bool {
        if variant.minor.is_none() {
            return self.major == variant.major;
        }
        let minor = self.minor.is_none() || self.minor == variant.minor;
        let patch = self.patch.is_none_or(|patch| toolkit.parts().get(2) == Some(&u32::from(patch)));
        self.major == variant.major && minor && patch
    }
    /// Returns the dotted version: `12.8.1`.
    pub fn dotted(self) -> String {
        [Some(self.major), self.minor, self.patch]
            .into_iter()
            .map_while(|part| part.map(|number| number.to_string()))
            .collect::<Vec<_>>()
            .join(".")
    }
}

impl From<CudaVariant> for CudaRequest {
    fn from(variant: CudaVariant) -> Self {
        Self { major: variant.major, minor: variant.minor, patch: None }
    }
}

impl fmt::Display for CudaRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.minor, self.patch) {
            (Some(_), Some(_)) => write!(f, "cuda{}", self.dotted()),
            (Some(_), None) if self.major < 10 => write!(f, "cu{}", self.dotted()),
            (minor, _) => CudaVariant { major: self.major, minor }.fmt(f),
        }
    }
}
