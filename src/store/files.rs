//! Atomic writes, and temporary files that are removed even if their process is killed.
#![expect(clippy::disallowed_methods, reason = "edge: writes files")]

use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;

use super::error::StoreError;
use crate::host::process_owner::{owner_of, unique_name};
use crate::model::sha256::HashingWriter;

/// Prefix of temporary files in the cache.
pub(super) const TEMPORARY: &str = "envforge-";
/// Prefix of temporary files next to the file they become.
pub(super) const HIDDEN: &str = ".envforge-";

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
    write_with_mode(path, bytes, READABLE)
}

/// Writes a file that is the user's own as [`write_atomically`] does, through a link to it; it keeps its mode, a new one gets `mode`.
pub(crate) fn write_in_place_of(path: &Utf8Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    let failed = StoreError::file("cannot write a file");
    // Behind a link to nothing would be a new file somewhere else.
    let is_link = fs_err::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let real = match path.canonicalize_utf8() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_link => path.to_owned(),
        Err(error) => return Err(failed(Error::new(error.kind(), format!("`{path}`: {error}")))),
    };
    let mode = match fs_err::metadata(&real) {
        Ok(found) => found.permissions().mode() & 0o7777,
        Err(_) => mode,
    };
    write_with_mode(&real, bytes, mode)
}

/// Writes a file of a project under its name as [`write_atomically`] does: a link that lies there by now is replaced, not followed. A
/// regular file keeps its mode, a new one gets `mode`.
pub(crate) fn replace_file(path: &Utf8Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    let mode = match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_file() => found.permissions().mode() & 0o7777,
        _ => mode,
    };
    write_with_mode(path, bytes, mode)
}

fn write_with_mode(path: &Utf8Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
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
    set_mode(file.as_file(), mode).map_err(named)?;
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
    set_mode(file.as_file(), READABLE).map_err(named)?;
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

/// The usual mode of a file.
const READABLE: u32 = 0o644;

/// Gives a temporary file, created with mode 0600, its mode.
fn set_mode(file: &std::fs::File, mode: u32) -> std::io::Result<()> {
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    /// The configuration of an ssh client: others must not read it, and many have it as a link into a folder of their own.
    #[test]
    fn file_of_the_user_keeps_its_mode_and_its_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let mode =
            |name: &str| fs_err::metadata(path.join(name)).expect("there").permissions().mode() & 0o7777;
        let text = |name: &str| fs_err::read_to_string(path.join(name)).expect("there");
        write_in_place_of(&path.join("new"), b"1", 0o600).expect("written");
        assert_eq!((mode("new"), text("new").as_str()), (0o600, "1"));
        for kept in [0o600, 0o640, 0o644] {
            fs_err::set_permissions(path.join("new"), std::fs::Permissions::from_mode(kept)).expect("ours");
            write_in_place_of(&path.join("new"), b"2", 0o600).expect("written");
            assert_eq!((mode("new"), text("new").as_str()), (kept, "2"));
        }
        std::os::unix::fs::symlink("new", path.join("link")).expect("ours");
        write_in_place_of(&path.join("link"), b"3", 0o600).expect("written");
        assert!(path.join("link").is_symlink() && text("new") == "3", "written through it");
        std::os::unix::fs::symlink("gone", path.join("dangling")).expect("ours");
        write_in_place_of(&path.join("dangling"), b"4", 0o600).expect_err("refused");
        assert!(path.join("dangling").is_symlink() && !path.join("gone").exists());
    }
}
