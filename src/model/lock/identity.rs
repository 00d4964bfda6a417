//! The hash that names a lock: labels of images, names of files and of project images carry it.

use super::canonical::canonical_json;
use super::types::Lock;
use crate::model::sha256::sha256_hex;

impl Lock {
    /// SHA-256 (hex) over everything that makes a lock match, in the canonical form that `canonical.rs` describes.
    pub fn hash(&self) -> String {
        sha256_hex(canonical_json(self).as_bytes())
    }
}
