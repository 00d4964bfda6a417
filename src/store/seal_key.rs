//! The key of the seals of records, a file of the state directory that its owner alone can read, and its public id.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, OnceLock};

use camino::Utf8Path;
use ring::hmac;

use super::files::{HIDDEN, remove_file, temporary_file};
use super::regular_file::read_regular;

/// The file in the state directory.
pub(super) const KEY: &str = "cache-key";
/// How often it is read or made before something must be wrong.
const ATTEMPTS: usize = 3;
/// Its size in bytes.
const SIZE: usize = 32;
/// Bytes of its id.
const ID: usize = 8;

/// A key and its id.
#[derive(Debug)]
pub(super) struct KeyOfState {
    pub(super) key: hmac::Key,
    /// Names the key without revealing it, hex: it is part of the paths of its records.
    pub(super) id: String,
}

/// The key of a store, read or made when it is first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct SealKey(Arc<OnceLock<KeyOfState>>);

impl SealKey {
    /// Returns the key of a state directory.
    pub(super) fn get(&self, state: &Utf8Path) -> std::io::Result<&KeyOfState> {
        if let Some(key) = self.0.get() {
            return Ok(key);
        }
        let bytes = key_bytes(state)?;
        Ok(self.0.get_or_init(|| KeyOfState::of(&bytes)))
    }
}

impl KeyOfState {
    fn of(bytes: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        // No place of a record begins like this.
        let signed = hmac::sign(&key, b"\0id");
        let id = signed.as_ref().iter().take(ID).fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
        Self { key, id }
    }
}

/// Fails if others can read the key, or made it: they could seal any record.
fn check_owner(path: &Utf8Path) -> std::io::Result<()> {
    let found = match fs_err::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let wrong = if found.uid() != rustix::process::geteuid().as_raw() {
        format!("`{path}` belongs to another user (id {}); use a state directory of your own", found.uid())
    } else if found.is_file() && found.mode() & 0o077 != 0 {
        format!(
            "`{path}` can be read or changed by others (mode {:o}); remove it, or `chmod 600` it",
            found.mode() & 0o777
        )
    } else {
        return Ok(());
    };
    Err(std::io::Error::new(ErrorKind::PermissionDenied, wrong))
}

/// The bytes of the key; the first process that needs it makes it.
fn key_bytes(state: &Utf8Path) -> std::io::Result<Vec<u8>> {
    let path = state.join(KEY);
    for _ in 0..ATTEMPTS {
        check_owner(&path)?;
        match read_regular(&path, SIZE as u64) {
            Ok(bytes) if bytes.len() == SIZE => return Ok(bytes),
            // Cut by a full disk: what it sealed is made again.
            Ok(_) => remove_file(&path)?,
            Err(error) if error.kind() == ErrorKind::FileTooLarge => remove_file(&path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // A temporary file can be read by its owner only.
        let mut file = temporary_file(HIDDEN, state)?;
        file.write_all(&rand::random::<[u8; SIZE]>())?;
        file.as_file().sync_data()?;
        match file.persist_noclobber(&path) {
            Err(error) if error.error.kind() != ErrorKind::AlreadyExists => return Err(error.error),
            _ => {}
        }
    }
    Err(std::io::Error::other(format!("`{path}` is a link, or another process replaces it again and again")))
}
