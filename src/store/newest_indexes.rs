//! The dates of the newest package indexes that this machine has seen, by mirror and suite.

use jiff::Timestamp;

use super::error::StoreError;
use super::folders::Store;
use crate::model::sha256::sha256_hex;

fn file_of(index: &str) -> String {
    format!("newest-indexes/{}", &sha256_hex(index.as_bytes())[..32])
}

/// Returns the date of the newest index of that name; `None`: none was seen.
pub(crate) fn newest_index(store: &Store, index: &str) -> Result<Option<Timestamp>, StoreError> {
    let text = store.read_state(&file_of(index))?;
    Ok(text.and_then(|text| std::str::from_utf8(&text).ok()?.split_whitespace().next()?.parse().ok()))
}

/// Records the date of an index; the rest of the file is for its reader.
pub(crate) fn remember_index(store: &Store, index: &str, date: Timestamp) -> Result<(), StoreError> {
    store.write_state(&file_of(index), format!("{date} {index}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn date_is_kept_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let date = "2026-11-20T00:12:41Z".parse().expect("a time");
        assert_eq!(newest_index(&store, "mirror.test/debian bookworm").expect("read"), None);
        remember_index(&store, "mirror.test/debian bookworm", date).expect("written");
        assert_eq!(newest_index(&store, "mirror.test/debian bookworm").expect("read"), Some(date));
        assert_eq!(newest_index(&store, "mirror.test/debian trixie").expect("read"), None);
    }
}
