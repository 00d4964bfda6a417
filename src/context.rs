//! The build context: a list of entries first, a deterministic tar second.
//!
//! Owns ordering, modes and hashing. Does no I/O while listing: file contents are read when the tar is written.

use bytes::Bytes;
use camino::Utf8PathBuf;

/// Where an entry's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextContent {
    /// Bytes made by envforge.
    Bytes(Bytes),
    /// A file of the cache, known by its SHA-256 (hex).
    File {
        /// Where it lies.
        path: Utf8PathBuf,
        /// Its size in bytes.
        size: u64,
        /// Its SHA-256, hex.
        sha256: String,
    },
}

/// One file of the build context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextEntry {
    /// Path inside the context, `/`-separated, relative.
    pub path: String,
    /// Permission bits, 0o644 or 0o755.
    pub mode: u32,
    /// Its content.
    pub content: ContextContent,
}
