//! Values a lock may hold, checked while they are read so that an error knows its line.
//!
//! A lock can come from a stranger: its paths end up in a build context and its hashes name files of the cache.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

use crate::sha256::is_sha256_hex;

/// A SHA-256 in its one spelling.
pub(super) fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_sha256_hex(&text) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("`{text}` is not a SHA-256 in lower-case hex")))
}

/// A plain file name.
pub(super) fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_plain_name(&text) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("`{text}` is not a file name")))
}

/// A path below a mirror's root.
pub(super) fn pool_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.split('/').all(is_plain_name) {
        return Ok(text);
    }
    Err(D::Error::custom(format!("`{text}` is not a path below a mirror's root")))
}

/// One part of a path: no separator, no address, nothing a shell or Dockerfile would read as more than a name.
fn is_plain_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-._~!%".contains(&b);
    !matches!(text, "" | "." | "..") && text.bytes().all(allowed)
}
