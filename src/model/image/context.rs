//! The build context: a list of entries first, a deterministic tar second.
//!
//! Owns ordering, modes and the tar's form. Reads a file's content only while the tar is written.

use bytes::Bytes;
use camino::Utf8PathBuf;

/// The source of an entry's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextContent {
    /// Bytes made by envforge.
    Bytes(Bytes),
    /// A file of the cache, known by its SHA-256 (hex).
    File {
        /// Its path.
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

impl ContextEntry {
    /// A readable file with that content.
    pub fn text(path: &str, content: impl Into<Bytes>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, content: ContextContent::Bytes(content.into()) }
    }

    /// An executable file with that content.
    pub fn program(path: &str, content: impl Into<Bytes>) -> Self {
        Self { mode: 0o755, ..Self::text(path, content) }
    }

    /// The size of its content, bytes.
    pub fn size(&self) -> u64 {
        match &self.content {
            ContextContent::Bytes(bytes) => bytes.len() as u64,
            ContextContent::File { size, .. } => *size,
        }
    }
}
