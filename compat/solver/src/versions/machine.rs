//! Processors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The processor of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Machine {
    /// 64-bit x86, `linux/amd64`.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit Arm of the server class, `linux/arm64`.
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Machine {
    /// Returns Docker's name of the platform: `linux/amd64`.
    pub fn platform(self) -> &'static str {
        match self {
            Self::X86_64 => "linux/amd64",
            Self::Aarch64 => "linux/arm64",
        }
    }
    /// Returns the processor of a platform by Docker's name or the processor's alone (`linux/arm64`, `arm64`, `aarch64`), if envforge
    /// builds for it.
    pub fn of_platform(name: &str) -> Option<Self> {
        let all = [Self::X86_64, Self::Aarch64].into_iter();
        let names = |machine: Self| [machine.debian().to_owned(), machine.to_string()];
        let plain = name.strip_prefix("linux/").unwrap_or(name);
        all.into_iter().find(|machine| names(*machine).iter().any(|known| known == plain))
    }
    /// Returns Debian's name of the architecture: `amd64`.
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        })
    }
}
