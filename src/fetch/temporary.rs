//! A download that stays outside the cache: verified, read once, and removed.
#![expect(clippy::disallowed_methods, reason = "edge: removes its file")]

use camino::Utf8Path;

use super::partial::Partial;

/// A complete download, verified by its hash. Its file is removed with it.
pub struct TemporaryDownload(Partial);

impl TemporaryDownload {
    pub(super) fn of(partial: Partial) -> Self {
        Self(partial)
    }

    /// Its file, which no other process changes meanwhile.
    pub fn path(&self) -> &Utf8Path {
        &self.0.path
    }
}

impl Drop for TemporaryDownload {
    fn drop(&mut self) {
        // What cannot be removed is overwritten, or cleared with the cache.
        let _ = fs_err::remove_file(&self.0.path);
    }
}
