//! Files that a build context is made of, next to the lock: their paths are passed in, nothing is read.

use bytes::Bytes;
use camino::Utf8PathBuf;

use crate::model::image::context::{ContextContent, ContextEntry};

/// A file of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFile {
    /// Its path.
    pub path: Utf8PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

impl CachedFile {
    pub(crate) fn entry(self, path: String, mode: u32) -> ContextEntry {
        let Self { path: from, size, sha256 } = self;
        ContextEntry { path, mode, content: ContextContent::File { path: from, size, sha256 } }
    }
}

/// The base of an image, at the bottom of its layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseSource {
    /// An image the engine has: the reference after FROM.
    Image(String),
    /// The base's archive, for an engine that has no such image.
    Archive(CachedFile),
}

/// The files a plan is made with, next to the lock.
#[derive(Debug, Clone)]
pub struct ContextFiles {
    /// The base.
    pub bottom: BaseSource,
    /// The .deb files, in the order of `lock.system`.
    pub debs: Vec<Utf8PathBuf>,
    /// The .deb files to unpack, in the order of `lock.unpacked`.
    pub unpacked: Vec<Utf8PathBuf>,
    /// The .deb files the user added, in the order of `lock.apt`.
    pub apt: Vec<Utf8PathBuf>,
    /// The files of the project, below `copy/`.
    pub copies: Vec<ContextEntry>,
    /// The wheels by file name, for a build without an index; empty: the steps download them.
    pub wheels: Vec<(String, CachedFile)>,
    /// The wheels that no index has, by file name; empty if `wheels` holds them.
    pub local: Vec<(String, CachedFile)>,
    /// The program uv.
    pub uv: CachedFile,
    /// The agent.
    pub agent: Bytes,
}

/// Name of the base archive in an exported context.
pub(crate) const BASE_ARCHIVE: &str = "base.tar";
