//! The images of projects that are installed in them, by lock file and sources: the lock file does not have the project's wheel, so
//! that the image is built from another lock.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jiff::Timestamp;

use super::error::StoreError;
use super::folders::Store;
use super::limits::LARGEST_STATE;
use super::regular_file::read_regular_text;
use crate::model::sha256::{is_sha256_hex, sha256_hex};

const INSTALLED: &str = "installed-projects";

/// One record, read.
struct Installed {
    /// The hash of the lock that the image is built from.
    image: String,
    /// That of the lock file.
    lock: String,
    time: Timestamp,
}

impl Installed {
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut hash = || lines.next().filter(|line| is_sha256_hex(line)).map(str::to_owned);
        let (image, lock) = (hash()?, hash()?);
        Some(Self { image, lock, time: lines.next()?.parse().ok()? })
    }
}

fn file_of(lock: &str, sources: &str) -> String {
    format!("{INSTALLED}/{}", sha256_hex(format!("{lock}\n{sources}").as_bytes()))
}

/// Records at that time the hash of the lock that the image of a lock file (its hash) and sources (their SHA-256) is built from.
pub(crate) fn remember_installed(
    store: &Store,
    (lock, sources): (&str, &str),
    image: &str,
    time: Timestamp,
) -> Result<(), StoreError> {
    store.write_state(&file_of(lock, sources), format!("{image}\n{lock}\n{time}\n").as_bytes())
}

/// Returns the hash of the lock that the image of a lock file and sources is built from, if it is known.
pub(crate) fn installed_image(
    store: &Store,
    lock: &str,
    sources: &str,
) -> Result<Option<String>, StoreError> {
    let text = store.read_state(&file_of(lock, sources))?;
    let text = text.and_then(|text| String::from_utf8(text).ok());
    Ok(text.and_then(|text| Installed::read(&text)).map(|found| found.image))
}

/// Returns the hash of the newest image's lock for the hash of each lock file. An image that no build finished does not count.
pub(super) fn newest_installed(store: &Store, is_built: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let entries = fs_err::read_dir(store.state_dir().join(INSTALLED)).into_iter().flatten().flatten();
    let paths = entries.filter_map(|entry| Utf8PathBuf::from_path_buf(entry.path()).ok());
    let texts = paths.filter_map(|path| read_regular_text(&path, LARGEST_STATE).ok());
    let mut found: Vec<_> = texts.filter_map(|text| Installed::read(&text)).collect();
    found.retain(|one| is_built(&one.image));
    found.sort_by_key(|one| one.time);
    found.into_iter().map(|one| (one.lock, one.image)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_known_by_lock_and_sources_and_the_newest_by_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let [lock, other, one, two, unfinished] = ["1", "2", "3", "4", "5"].map(|digit| digit.repeat(64));
        let at = |second| Timestamp::from_second(second).expect("a time");
        let remember = |sources, image: &str, second| {
            remember_installed(&store, (&lock, sources), image, at(second)).expect("written");
        };
        let newest = || newest_installed(&store, |image| image != unfinished);
        remember("a", &one, 9);
        remember("b", &two, 10);
        remember("c", &unfinished, 11);
        let found = |lock: &str, sources| installed_image(&store, lock, sources).expect("read");
        assert_eq!(found(&lock, "a").as_ref(), Some(&one));
        assert_eq!(found(&lock, "b").as_ref(), Some(&two));
        assert_eq!((found(&lock, "d"), found(&other, "a")), (None, None));
        assert_eq!(newest(), [(lock.clone(), two.clone())].into());
        // The older sources are built again.
        remember("a", &one, 12);
        assert_eq!(newest(), [(lock.clone(), one)].into());
        store.write_state(&file_of(&lock, "a"), b"damaged").expect("written");
        assert_eq!((found(&lock, "a"), newest()), (None, [(lock.clone(), two)].into()));
    }
}
