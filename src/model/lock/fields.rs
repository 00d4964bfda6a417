//! Values of a lock, validated while they are read so that an error has its line.
//!
//! A lock may be untrusted: its paths end up in a build context and its hashes name files of the cache.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

use crate::model::sha256::is_sha256_hex;

/// A SHA-256 in its one spelling.
pub(super) fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_sha256_hex(&text) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("invalid SHA-256 `{text}` (expected 64 lower-case hex digits)")))
}

/// A digest, `sha256:` and hex.
pub(super) fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.strip_prefix("sha256:").is_some_and(is_sha256_hex) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("invalid digest `{text}` (expected `sha256:` and lower-case hex)")))
}

/// The same where it may be absent.
pub(super) fn optional_digest<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    digest(deserializer).map(Some)
}

/// A moment in UTC in its one spelling.
pub(super) fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.parse::<jiff::Timestamp>().is_ok_and(|moment| moment.to_string() == text) {
        return Ok(Some(text));
    }
    Err(D::Error::custom(format!("invalid time `{text}` (expected UTC such as `2026-11-20T00:00:00Z`)")))
}

/// A plain file name.
pub(super) fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_plain_name(&text) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("invalid file name `{text}`")))
}

/// A path below a mirror's root.
pub(super) fn pool_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.split('/').all(is_plain_name) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("invalid package path `{text}` (expected a path relative to the mirror)")))
}

/// Whether a text is one part of a path: no separator, no address, no special character of a shell or Dockerfile.
fn is_plain_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-._~!%".contains(&b);
    !matches!(text, "" | "." | "..") && text.bytes().all(allowed)
}
