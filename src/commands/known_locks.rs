//! The locks this machine knows: those of specs, those beside project files, and one of each image that was built.
#![expect(clippy::disallowed_methods, reason = "edge: reads locks")]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use crate::lock::Lock;
use crate::sha256::sha256_hex;
use crate::store::{Store, StoreError};

/// Locks of specs, which are in use as long as they are there.
pub(super) const OF_SPECS: &str = "locks-of-specs";
/// A copy of each image's lock, by its hash: the one beside a project file goes on changing.
const OF_IMAGES: &str = "locks-of-images";
/// Where the locks of projects lie, one path in each file.
const PROJECTS: &str = "projects";

/// Remembers the lock an image was built from.
pub(super) fn remember_image(store: &Store, lock: &Lock) -> Result<(), StoreError> {
    store.write_state(&format!("{OF_IMAGES}/{}.lock", lock.hash()), lock.to_toml().as_bytes())
}

/// Remembers where the lock of a project lies.
pub(super) fn remember_project(store: &Store, path: &Utf8Path) -> Result<(), StoreError> {
    let name = &sha256_hex(path.as_str().as_bytes())[..16];
    store.write_state(&format!("{PROJECTS}/{name}"), path.as_str().as_bytes())
}

/// The lock of that hash, if it is known.
pub(super) fn known_lock(store: &Store, hash: &str) -> Option<Lock> {
    let read = |path: Utf8PathBuf| {
        let text = fs_err::read_to_string(path).ok()?;
        Lock::from_toml("a lock of the state folder", &text).ok().filter(|lock| lock.hash() == hash)
    };
    let kept = store.state_dir().join(OF_IMAGES).join(format!("{hash}.lock"));
    read(kept).or_else(|| files(&store.state_dir().join(OF_SPECS)).into_iter().find_map(read))
}

/// The hashes of all locks in use: those of specs, and those that lie beside a project file now.
pub(super) fn in_use(store: &Store) -> BTreeSet<String> {
    let projects = files(&store.state_dir().join(PROJECTS));
    let beside = projects.iter().filter_map(|file| fs_err::read_to_string(file).ok()).map(Utf8PathBuf::from);
    let all = files(&store.state_dir().join(OF_SPECS)).into_iter().chain(beside);
    all.filter_map(|path| fs_err::read_to_string(path).ok())
        .filter_map(|text| Lock::from_toml("a lock", &text).ok())
        .map(|lock| lock.hash())
        .collect()
}

fn files(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Utf8PathBuf::from_path_buf(entry.path()).ok()).collect()
}
