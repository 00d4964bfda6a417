//! Files of the cache, verified again before they are used.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::io::Seek as _;

use crate::model::sha256::Sha256Hex;
use crate::store::{Store, StoreError};

/// Opens a file of the cache after verifying its hash in a stream. Removes a file that was damaged on disk and returns
/// `None`, as for a missing one.
pub(crate) fn open_verified(store: &Store, sha256: &str) -> Result<Option<fs_err::File>, StoreError> {
    let failed = |cause| StoreError::File { purpose: "cannot read the cache", cause };
    let Some(path) = store.find(sha256)? else { return Ok(None) };
    let mut file = match fs_err::File::open(&path) {
        // Removed since it was found.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut hash = Sha256Hex::default();
    std::io::copy(&mut file, &mut hash).map_err(failed)?;
    if hash.finish() == sha256 {
        file.rewind().map_err(failed)?;
        return Ok(Some(file));
    }
    store.discard(sha256)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use camino::Utf8PathBuf;

    use super::*;
    use crate::model::sha256::sha256_hex;

    #[test]
    fn verified_file_is_opened_and_damaged_one_removed() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let hash = sha256_hex(b"package");
        assert!(open_verified(&store, &hash).expect("no error").is_none());
        let path = store.put(&hash, b"package").expect("stored");
        let mut text = String::new();
        let mut file = open_verified(&store, &hash).expect("no error").expect("found");
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "package");
        fs_err::write(&path, "damaged").expect("written");
        assert!(open_verified(&store, &hash).expect("no error").is_none());
        assert!(!path.exists());
    }
}
