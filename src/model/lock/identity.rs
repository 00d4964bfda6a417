//! The hashes that name a lock: labels of images, names of files and of project images carry them.

use super::canonical::canonical_json;
use super::schema_1::schema_1_hash;
use super::types::Lock;
use crate::model::sha256::sha256_hex;

impl Lock {
    /// SHA-256 (hex) over everything that makes a lock match, in the form of the lock's own schema.
    ///
    /// Schema 2: the canonical form that `canonical.rs` describes. Schema 1: as the program that wrote it computed it.
    pub fn hash(&self) -> String {
        match self.schema {
            1 => schema_1_hash(self).unwrap_or_else(|| self.canonical_hash()),
            _ => self.canonical_hash(),
        }
    }

    /// Every hash that names this lock, its own first: images and files of before schema 2 carry the other one.
    pub fn hashes(&self) -> Vec<String> {
        let own = self.hash();
        let others = [Some(self.canonical_hash()), schema_1_hash(self)].into_iter().flatten();
        let others: Vec<_> = others.filter(|hash| *hash != own).collect();
        std::iter::once(own).chain(others).collect()
    }

    /// Whether a hash names this lock, in either schema.
    pub fn matches_hash(&self, hash: &str) -> bool {
        self.hashes().iter().any(|known| known == hash)
    }

    fn canonical_hash(&self) -> String {
        sha256_hex(canonical_json(self).as_bytes())
    }
}
