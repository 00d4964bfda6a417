//! The images that were built on this machine, by their ids, each with the hash of its lock. A label is only a claim.

use super::error::StoreError;
use super::folders::Store;

const FOLDER: &str = "built-images";

fn file_of(id: &str) -> String {
    format!("{FOLDER}/{}", id.trim_start_matches("sha256:"))
}

/// Records that the image was built here from the lock with that hash.
pub(crate) fn remember_built(store: &Store, id: &str, lock: &str) -> Result<(), StoreError> {
    store.write_state(&file_of(id), lock.as_bytes())
}

/// Returns the hash of the lock that the image was built from here; `None`: it was not built here.
pub(crate) fn built_from(store: &Store, id: &str) -> Result<Option<String>, StoreError> {
    let text = store.read_state(&file_of(id))?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn image_is_known_by_its_id_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        remember_built(&store, "sha256:aa", "hash").expect("written");
        assert_eq!(built_from(&store, "sha256:aa").expect("read").as_deref(), Some("hash"));
        assert_eq!(built_from(&store, "sha256:ab").expect("read"), None);
    }
}
