//! Walks folders without following links, without crossing into the kernel's own.

use std::path::{Path, PathBuf};

/// Every regular file below a folder, in no order; unreadable folders are passed over.
pub(crate) fn files(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    visit(top, &mut |path| found.push(path.to_owned()));
    found
}

/// Calls `each` with every regular file below a folder.
pub(crate) fn visit(top: &Path, each: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(top) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            visit(&entry.path(), each);
        } else if kind.is_file() {
            each(&entry.path());
        }
    }
}
