//! Atomic writes, and temporary files that are removed even if their process is killed.
#![expect(clippy::disallowed_methods, reason = "edge: writes files")]

use std::io::{Error, ErrorKind, Write as _};

use camino::Utf8Path;

use super::error::StoreError;
use crate::host::process_owner::{owner_of, unique_name};
use crate::model::bounded::{read_bounded, too_large};
use crate::model::sha256::HashingWriter;

/// Prefix of temporary files in the cache.
pub(super) const TEMPORARY: &str = "envforge-";
/// Prefix of temporary files next to the file they become.
pub(super) const HIDDEN: &str = ".envforge-";

/// Reads a file of at most `most` bytes. A pipe or device, which may never end, is an error.
pub(super) fn read_file(path: &Utf8Path, most: u64) -> std::io::Result<Vec<u8>> {
    let named = |kind, cause: &str| Error::new(kind, format!("`{path}`: {cause}"));
    let found = fs_err::metadata(path)?;
    if !found.is_file() {
        return Err(named(ErrorKind::InvalidInput, "not a regular file"));
    }
    let large = |error: Error| named(error.kind(), &error.to_string());
    if found.len() > most {
        return Err(large(too_large(most)));
    }
    read_bounded(fs_err::File::open(path)?, most).map_err(large)
}

/// The same for a text.
pub(super) fn read_text(path: &Utf8Path, most: u64) -> std::io::Result<String> {
    String::from_utf8(read_file(path, most)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Removes a file that may be gone.
pub(super) fn remove_file(path: &Utf8Path) -> std::io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates the directory of a file.
pub(super) fn make_parent(path: &Utf8Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Utf8Path::new("."));
    fs_err::create_dir_all(parent).map_err(StoreError::file("cannot create a directory"))
}

/// Writes a file so that a reader sees all the old bytes or all the new ones, even after a power failure.
pub fn write_atomically(path: &Utf8Path, bytes: &[u8]) -> Result<(), StoreError> {
    make_parent(path)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    let named = |cause: std::io::Error| {
        let text = format!("`{path}`: {cause}");
        StoreError::File { purpose: "cannot write a file", cause: std::io::Error::new(cause.kind(), text) }
    };
    remove_orphans(parent, HIDDEN);
    let mut file = temporary_file(HIDDEN, parent).map_err(named)?;
    // Not through the guard, whose errors name the temporary file.
    file.as_file_mut().write_all(bytes).map_err(named)?;
    file.as_file().sync_data().map_err(named)?;
    set_readable(file.as_file()).map_err(named)?;
    file.persist(path).map_err(|error| named(error.error))?;
    Ok(())
}

/// Copies a file completely or not at all, hashed while it is copied: one of other bytes than that SHA-256 is not copied. Not a
/// hard link: changes of the copy must not reach the original.
pub(crate) fn copy_verified(from: &Utf8Path, to: &Utf8Path, sha256: &str) -> Result<(), StoreError> {
    let failed = StoreError::Copy;
    let folder = to.parent().unwrap_or(to);
    fs_err::create_dir_all(folder).map_err(failed)?;
    let error = |kind, text: String| Error::new(kind, format!("cannot write `{to}`: {text}"));
    // A bare error is of the new file: fs-err names the other one.
    let named = |cause: Error| match cause.raw_os_error() {
        Some(_) => failed(error(cause.kind(), cause.to_string())),
        None => failed(cause),
    };
    remove_orphans(folder, HIDDEN);
    let mut source = fs_err::File::open(from).map_err(failed)?;
    let mut file = temporary_file(HIDDEN, folder)
        .map_err(|cause| failed(error(cause.kind(), cause.kind().to_string())))?;
    let mut copy = HashingWriter::new(file.as_file_mut());
    std::io::copy(&mut source, &mut copy).map_err(named)?;
    let found = copy.finish();
    if found != sha256 {
        return Err(StoreError::WrongContent { wanted: sha256.to_owned(), found });
    }
    file.as_file().sync_data().map_err(named)?;
    set_readable(file.as_file()).map_err(named)?;
    file.persist(to).map_err(|error| named(error.error))?;
    Ok(())
}

/// Creates a file that its owner removes or moves; if the owner is killed, [`remove_orphans`] finds it by its name.
pub(super) fn temporary_file(prefix: &str, folder: &Utf8Path) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(&format!("{prefix}{}", unique_name())).rand_bytes(0).tempfile_in(folder)
}

/// Removes temporary files whose owner has ended. Files that cannot be removed are harmless and stay.
pub(super) fn remove_orphans(folder: &Utf8Path, prefix: &str) {
    let Ok(entries) = fs_err::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else { continue };
        if owner_of(name).is_some_and(|owner| owner.is_gone()) {
            tracing::debug!(path = %entry.path().display(), "removing a file of a killed process");
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ =
                if folder { fs_err::remove_dir_all(entry.path()) } else { fs_err::remove_file(entry.path()) };
        }
    }
}

/// Gives a temporary file, created with mode 0600, the usual mode.
fn set_readable(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}
