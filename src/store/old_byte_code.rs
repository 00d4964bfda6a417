//! Byte code that earlier versions kept for every project, whatever compiled it: it is never read, and the images that may hold it are
//! named once.

use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::StoreError;
use super::folders::Store;
use super::sealed::RECORDS;

/// Its directory below the records of a key, and that of byte code whose key has all that could change it.
pub(super) const OLD: &str = "layers/byte-code";
/// See [`OLD`].
pub(crate) const BYTE_CODE: &str = "layers/byte-code-2";
/// Where built images are recorded, and that they were named.
const BUILT: &str = "built-images";
const NAMED: &str = "old-byte-code-named";

/// Returns the short ids of images that were built here while that byte code was used, sorted, and records that they were named. None
/// where it was never used, or where they were named before.
pub(crate) fn take_images_with_old_byte_code(store: &Store) -> Result<Vec<String>, StoreError> {
    if store.read_state(NAMED)?.is_some() {
        return Ok(Vec::new());
    }
    let records = store.cache_dir().join(RECORDS).join(store.key_id()?);
    if times(&records.join(OLD)).next().is_none() {
        return Ok(Vec::new());
    }
    // The first build of this version writes the first record; its image is recorded after that.
    let end = times(&records.join(BYTE_CODE)).map(|(_, time)| time).min();
    let built = store.state_dir().join(BUILT);
    let old = times(&built).filter(|(_, time)| end.is_none_or(|end| *time < end));
    let short = |path: Utf8PathBuf| path.file_name().unwrap_or_default().chars().take(12).collect();
    let mut images: Vec<String> = old.map(|(path, _)| short(path)).collect();
    images.sort();
    store.write_state(NAMED, b"")?;
    Ok(images)
}

/// The files of a directory with the times of their last change.
fn times(folder: &Utf8Path) -> impl Iterator<Item = (Utf8PathBuf, SystemTime)> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path().to_owned(), entry.metadata().ok()?.modified().ok()?)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test sets the age of files")]
mod tests {
    use super::*;
    use crate::store::built_images::remember_built;

    fn set_age(path: &Utf8Path, hours: u64) {
        let file = fs_err::OpenOptions::new().write(true).open(path).expect("ours");
        let time = SystemTime::now() - std::time::Duration::from_hours(hours);
        file.file().set_modified(time).expect("set");
    }

    #[test]
    fn images_of_the_time_of_old_byte_code_are_named_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        for (id, hours) in [("a".repeat(64), 3), ("b".repeat(64), 1)] {
            remember_built(&store, &format!("sha256:{id}"), "lock").expect("written");
            set_age(&root.join("state/built-images").join(id), hours);
        }
        let take = || take_images_with_old_byte_code(&store).expect("readable");
        assert_eq!(take(), Vec::<String>::new(), "there was none");
        let records = root.join("cache/records").join(store.key_id().expect("a key"));
        for (place, hours) in [(OLD, 4), (BYTE_CODE, 2)] {
            let path = records.join(place).join("x");
            store.make_folder_of(&path).expect("ours");
            fs_err::write(&path, "code").expect("ours");
            set_age(&path, hours);
        }
        assert_eq!(take(), ["a".repeat(12)], "the other one was built by this version");
        assert_eq!(take(), Vec::<String>::new(), "they were named");
    }
}
