//! Python versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::VersionError;
use super::number::numbers;
use super::serde_text::serde_as_text_or_numbers;

/// A CPython minor version: `3.11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonVersion {
    /// 3 of `3.11`.
    pub major: u8,
    /// 11 of `3.11`.
    pub minor: u8,
}

impl PythonVersion {
    fn to_text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl FromStr for PythonVersion {
    type Err = VersionError;
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError { wanted: "a Python version such as `3.11`", found: text.to_owned() };
        match numbers(text).as_deref() {
            Some([major, minor]) => Ok(Self {
                major: u8::try_from(*major).map_err(|_| error())?,
                minor: u8::try_from(*minor).map_err(|_| error())?,
            }),
            _ => Err(error()),
        }
    }
}

serde_as_text_or_numbers!(PythonVersion { major, minor });
