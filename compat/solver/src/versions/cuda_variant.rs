//! CUDA variants of wheels.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::VersionError;
use super::serde_text::serde_as_text_or_numbers;

/// The CUDA of a wheel, from its tag: `cu128` is 12.8. Ordered by CUDA version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVariant {
    /// 12 of `cu128`.
    pub major: u8,
    /// 8 of `cu128`; `None` in `cu12`, which specifies only the major.
    pub minor: Option<u8>,
}

impl CudaVariant {
    /// Returns the dotted version: `12.8`, or `12` for a major only.
    pub fn dotted(self) -> String {
        self.minor.map_or_else(|| self.major.to_string(), |minor| format!("{}.{minor}", self.major))
    }
    fn to_text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for CudaVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            Some(minor) => f.pad(&format!("cu{}{minor}", self.major)),
            None => f.pad(&format!("cu{}", self.major)),
        }
    }
}

impl FromStr for CudaVariant {
    type Err = VersionError;
    /// Parses only the tag form (`cu128`); two digits are a major (`cu12`), so `cu92` is not 9.2.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError { wanted: "a CUDA variant such as `cu128`", found: text.to_owned() };
        let digits = text.strip_prefix("cu").ok_or_else(error)?;
        if !digits.is_ascii() || !(2..=4).contains(&digits.len()) {
            return Err(error());
        }
        let (major, minor) = digits.split_at(2);
        let number = |part: &str| {
            if part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None }
        };
        let major = number(major).ok_or_else(error)?;
        let minor = if minor.is_empty() { None } else { Some(number(minor).ok_or_else(error)?) };
        Ok(Self { major, minor })
    }
}

serde_as_text_or_numbers!(CudaVariant { major, minor });
