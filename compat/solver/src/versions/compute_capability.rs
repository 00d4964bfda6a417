//! Compute capabilities of GPUs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::VersionError;
use super::number::numbers;
use super::serde_text::serde_as_text_or_numbers;

/// A GPU's compute capability. Prints as `sm_89`; [`ComputeCapability::dotted`] and serde give `8.9`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The generation: 9 for Hopper.
    pub major: u8,
    /// The member of the generation.
    pub minor: u8,
}

impl ComputeCapability {
    /// Returns the form in NVIDIA's tables: `8.9`.
    pub fn dotted(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }
    fn to_text(self) -> String {
        self.dotted()
    }
    /// Whether a cubin built for `self` runs on a GPU of `device`: same major, and no newer minor; Tegra runs its own only.
    pub fn cubin_runs_on(self, device: Self) -> bool {
        let pair = |it: Self| (u32::from(it.major), u32::from(it.minor));
        envforge_protocol::cubin_runs_on(pair(self), pair(device))
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("sm_{}{}", self.major, self.minor))
    }
}

impl FromStr for ComputeCapability {
    type Err = VersionError;
    /// Parses `9.0`, `sm_90` and `sm90`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError {
            wanted: "a compute capability such as `9.0` or `sm_90`",
            found: text.to_owned(),
        };
        let lower = text.to_ascii_lowercase();
        if let Some(digits) = lower.strip_prefix("sm_").or_else(|| lower.strip_prefix("sm")) {
            let plain = digits.len() >= 2 && digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit());
            let (major, minor) = digits.split_at_checked(digits.len().saturating_sub(1)).ok_or_else(error)?;
            return match (plain, major.parse(), minor.parse()) {
                (true, Ok(major), Ok(minor)) => Ok(Self { major, minor }),
                _ => Err(error()),
            };
        }
        match numbers(&lower).as_deref() {
            Some([major, minor]) if *major < 100 && *minor < 10 => Ok(Self {
                major: u8::try_from(*major).map_err(|_| error())?,
                minor: u8::try_from(*minor).map_err(|_| error())?,
            }),
            _ => Err(error()),
        }
    }
}

serde_as_text_or_numbers!(ComputeCapability { major, minor });
