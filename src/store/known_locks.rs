//! Known locks of this machine: those of specs, those next to project files, and one of each image that was built.
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests write locks"))]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::StoreError;
use super::folders::Store;
use super::installed_images::newest_installed;
use super::limits::{LARGEST_LOCK, LARGEST_STATE};
use super::regular_file::read_regular_text;
use crate::model::lock::Lock;
use crate::model::sha256::sha256_hex;

/// The directory of the locks of specs, which are in use as long as they exist.
pub(crate) const OF_SPECS: &str = "locks-of-specs";
/// The directory of a copy of each image's lock, by its hash: the one next to a project file goes on changing.
const OF_IMAGES: &str = "locks-of-images";
/// The directory of the paths of project locks, one in each file.
const PROJECTS: &str = "projects";

/// Records the lock an image was built from.
pub(crate) fn remember_image(store: &Store, lock: &Lock) -> Result<(), StoreError> {
    store.write_state(&format!("{OF_IMAGES}/{}.lock", lock.hash()), lock.to_toml().as_bytes())
}

/// Keeps a lock that came with an image or was typed, if none of its hash is known, and without its records: what this machine recorded
/// of its own build is worth more, and what others recorded is worth nothing here.
pub(crate) fn remember_lock_of_others(store: &Store, lock: &Lock) -> Result<(), StoreError> {
    match known_lock(store, &lock.hash()) {
        Some(_) => Ok(()),
        None => remember_image(store, &lock.clone().without_records()),
    }
}

/// Records the path of a project's lock.
pub(crate) fn remember_project(store: &Store, path: &Utf8Path) -> Result<(), StoreError> {
    let name = &sha256_hex(path.as_str().as_bytes())[..16];
    store.write_state(&format!("{PROJECTS}/{name}"), path.as_str().as_bytes())
}

/// Returns the lock with that hash, if it is known.
pub(crate) fn known_lock(store: &Store, hash: &str) -> Option<Lock> {
    let read = |path: Utf8PathBuf| {
        let text = read_regular_text(&path, LARGEST_LOCK).ok()?;
        Lock::from_toml("a lock of the state folder", &text).ok().filter(|lock| lock.hash() == hash)
    };
    let of_image = store.state_dir().join(OF_IMAGES).join(format!("{hash}.lock"));
    read(of_image).or_else(|| files(&store.state_dir().join(OF_SPECS)).into_iter().find_map(read))
}

/// Returns the hashes of the locks in use: those of specs, those next to a project file now, and for each of these that of the newest
/// image that a project is installed in.
pub(crate) fn in_use(store: &Store) -> BTreeSet<String> {
    let texts = texts_in_use(store);
    let locks = texts.iter().filter_map(|text| Lock::from_toml("a lock", text).ok());
    let mut used: BTreeSet<String> = locks.map(|lock| lock.hash()).collect();
    let newest = newest_installed(store, |image| known_lock(store, image).is_some());
    let installed: Vec<_> = newest.into_iter().filter(|(lock, _)| used.contains(lock)).collect();
    used.extend(installed.into_iter().map(|(_, image)| image));
    used
}

/// Returns the paths of locks in use that are there and are not read: of another schema, or damaged.
pub(crate) fn unread_locks(store: &Store) -> Vec<String> {
    let there = files_in_use(store).into_iter().filter(|path| path.exists());
    let is_read = |path: &Utf8PathBuf| {
        let text = read_regular_text(path, LARGEST_LOCK);
        text.is_ok_and(|text| text.is_empty() || Lock::from_toml("a lock", &text).is_ok())
    };
    there.filter(|path| !is_read(path)).map(Utf8PathBuf::into_string).collect()
}

/// The locks in use as they are written, those of a newer envforge too.
pub(super) fn texts_in_use(store: &Store) -> Vec<String> {
    files_in_use(store).iter().filter_map(|path| read_regular_text(path, LARGEST_LOCK).ok()).collect()
}

fn files_in_use(store: &Store) -> Vec<Utf8PathBuf> {
    let projects = files(&store.state_dir().join(PROJECTS));
    let of_projects =
        projects.iter().filter_map(|file| read_regular_text(file, LARGEST_STATE).ok()).map(Utf8PathBuf::from);
    files(&store.state_dir().join(OF_SPECS)).into_iter().chain(of_projects).collect()
}

fn files(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Utf8PathBuf::from_path_buf(entry.path()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("../../tests/fixtures/lock/products/numba-cuda.lock");

    fn store(folder: &tempfile::TempDir) -> Store {
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        Store::open(&root.join("cache"), &root.join("state")).expect("a store")
    }

    #[test]
    fn lock_of_a_spec_is_found_by_its_hash() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let lock = Lock::from_toml("x", FIXTURE).expect("reads");
        assert_eq!(known_lock(&store, &lock.hash()), None);
        store.write_state(&format!("{OF_SPECS}/x.lock"), FIXTURE.as_bytes()).expect("written");
        assert_eq!(known_lock(&store, &lock.hash()).as_ref(), Some(&lock));
        assert!(in_use(&store).contains(&lock.hash()));
        assert_eq!(known_lock(&store, &"0".repeat(64)), None);
        assert!(!in_use(&store).contains(&"0".repeat(64)));
    }

    #[test]
    fn lock_of_a_terabyte_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let lock = Lock::from_toml("x", FIXTURE).expect("reads");
        store.write_state(&format!("{OF_SPECS}/a.lock"), b"").expect("written");
        let large = store.state_dir().join(OF_SPECS).join("a.lock");
        fs_err::OpenOptions::new().write(true).open(large).expect("ours").set_len(1 << 40).expect("sparse");
        store.write_state(&format!("{OF_SPECS}/b.lock"), FIXTURE.as_bytes()).expect("written");
        assert_eq!(texts_in_use(&store), [FIXTURE], "the other one is");
        assert_eq!(known_lock(&store, &lock.hash()).as_ref(), Some(&lock));
    }

    #[test]
    fn lock_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        store.write_state(&format!("{OF_SPECS}/good.lock"), FIXTURE.as_bytes()).expect("written");
        remember_project(&store, &store.state_dir().join("gone/envforge.lock")).expect("written");
        assert_eq!(unread_locks(&store), [] as [&str; 0]);
        let old = FIXTURE.replacen("schema = 2", "schema = 1", 1);
        for (name, text) in [("old", old.as_str()), ("damaged", "schema = 2\nspec = ")] {
            store.write_state(&format!("{OF_SPECS}/{name}.lock"), text.as_bytes()).expect("written");
        }
        let mut named = unread_locks(&store);
        named.sort();
        assert!(
            named.len() == 2 && named[0].ends_with("damaged.lock") && named[1].ends_with("old.lock"),
            "{named:?}"
        );
    }

    #[test]
    fn image_lock_is_found_by_its_label() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let lock = Lock::from_toml("x", FIXTURE).expect("reads");
        remember_image(&store, &lock).expect("written");
        assert_eq!(known_lock(&store, &lock.hash()).as_ref(), Some(&lock));
        assert_eq!(in_use(&store).len(), 0, "an image's own copy is not a use");
    }

    #[test]
    fn lock_next_to_a_project_file_is_in_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let path = Utf8PathBuf::from_path_buf(folder.path().join("envforge.lock")).expect("UTF-8");
        let lock = Lock::from_toml("x", FIXTURE).expect("reads");
        remember_project(&store, &path).expect("written");
        assert!(in_use(&store).is_empty(), "the lock is not written yet");
        fs_err::write(&path, FIXTURE).expect("written");
        assert_eq!(in_use(&store), [lock.hash()].into());
    }
}
