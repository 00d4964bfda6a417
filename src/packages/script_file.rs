//! Files that the scripts of the temporary containers read.

use crate::engine::ContainerFile;

/// The directory the scripts read.
pub(super) const FOLDER: &str = "/envforge";

/// A file of the scripts' directory.
pub(super) fn file(name: &str, mode: u32, text: impl Into<String>) -> ContainerFile {
    ContainerFile { path: format!("{FOLDER}/{name}"), mode, bytes: text.into().into() }
}
