//! The digest by which a registry knows a document.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::sha256::{is_sha256_hex, sha256_hex};

/// `sha256:` and 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// An invalid digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid digest `{text}` (expected `sha256:` and 64 hex digits)")]
pub struct DigestError {
    /// The text.
    pub text: String,
}

impl Digest {
    /// The digest of a document.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", sha256_hex(bytes)))
    }
    /// As a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        match text.strip_prefix("sha256:") {
            Some(hex) if is_sha256_hex(hex) => Ok(Self(text.to_owned())),
            _ => Err(DigestError { text: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_is_a_digest() {
        let digest = Digest::of(b"");
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.as_str(), empty);
        assert_eq!(empty.parse(), Ok(digest));
        for text in
            ["", "sha256:", "sha256:beef", &empty.to_uppercase(), &empty[7..], &empty.replace("256", "512")]
        {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
