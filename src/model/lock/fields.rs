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

/// The name of a distribution package: it becomes an argument of apt and dpkg.
pub(super) fn deb_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    shaped(deserializer, "package name", |text| starts_plain(text) && text.bytes().all(allowed))
}

/// The normalised name of a Python package.
pub(super) fn wheel_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    shaped(deserializer, "package name", |text| text.split('-').all(is_part))
}

/// A version of a distribution or Python package; empty where the index lists none.
pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-.~:!_".contains(&b);
    let is_good = |text: &str| text.is_empty() || (starts_plain(text) && text.bytes().all(allowed));
    shaped(deserializer, "version", is_good)
}

/// The name of an image, with or without tag and digest.
pub(super) fn image_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-._:/@".contains(&b);
    shaped(deserializer, "image name", |text| starts_plain(text) && text.bytes().all(allowed))
}

/// The name of an index: no address has this shape.
pub(super) fn index_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    shaped(deserializer, "index name", |text| starts_plain(text) && text.bytes().all(allowed))
}

/// The same where it may be absent.
pub(super) fn optional_index_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    index_name(deserializer).map(Some)
}

/// What begins with `-` would be an option.
fn starts_plain(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

fn shaped<'de, D: Deserializer<'de>>(
    deserializer: D,
    what: &str,
    is_good: impl Fn(&str) -> bool,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_good(&text) { Ok(text) } else { Err(D::Error::custom(format!("invalid {what} `{text}`"))) }
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
pub(crate) fn is_plain_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-._~!%".contains(&b);
    !matches!(text, "" | "." | "..") && text.bytes().all(allowed)
}
