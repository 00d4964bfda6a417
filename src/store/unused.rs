//! What of the cache no lock in use names: downloads of other locks, layers made of them; and the records of state directories
//! that were not used for long, whatever they name: no other can use them.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use super::error::StoreError;
use super::folders::Store;
use super::known_locks::texts_in_use;
use super::old_byte_code::OLD as OLD_BYTE_CODE;
use super::regular_file::read_regular;
use super::sealed::{LAST_USED, RECORDS};

/// A younger file may be part of a build that still runs.
const YOUNG: Duration = Duration::from_hours(1);
/// Larger files are no records: they belong to the wheel or layer that their name begins with.
const LARGEST_RECORD: u64 = 64 << 10;
const HASH: usize = 64;
/// A state directory that was not used for so long may be one of a CI job that is over.
const FORGOTTEN: Duration = Duration::from_hours(7 * 24);
/// Records of envforge 0.2 and before, which no later version reads.
const OLD_RECORDS: &str = "layers";
/// Directories of downloads and of records.
const CACHE_FOLDERS: [&str; 3] = ["sha256", RECORDS, OLD_RECORDS];

/// A file of the cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CacheFile {
    /// Its path.
    pub(crate) path: Utf8PathBuf,
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// Returns the files of the cache, older than an hour, that no lock in use names or no state directory reads, sorted.
pub(crate) fn unused(store: &Store, now: SystemTime) -> Vec<CacheFile> {
    let used: BTreeSet<String> =
        texts_in_use(store).iter().flat_map(|text| hashes(text.as_bytes())).collect();
    let mut found = Vec::new();
    for folder in CACHE_FOLDERS {
        collect(&store.cache_dir().join(folder), &mut found);
    }
    let forgotten = forgotten_records(store, now);
    let is_unused = |(file, modified): &(CacheFile, SystemTime)| {
        let is_forgotten = || forgotten.iter().any(|folder| file.path.starts_with(folder));
        now.duration_since(*modified).is_ok_and(|age| age > YOUNG)
            && (is_forgotten() || !is_used(file, &used))
    };
    let mut unused: Vec<CacheFile> = found.into_iter().filter(is_unused).map(|(file, _)| file).collect();
    unused.sort();
    unused
}

/// The directories of records that no state directory reads any more.
fn forgotten_records(store: &Store, now: SystemTime) -> Vec<Utf8PathBuf> {
    let mut found = vec![store.cache_dir().join(OLD_RECORDS)];
    let own = store.key_id().unwrap_or_default();
    for entry in store.cache_dir().join(RECORDS).read_dir_utf8().into_iter().flatten().flatten() {
        found.push(entry.path().join(OLD_BYTE_CODE));
        let last = fs_err::metadata(entry.path().join(LAST_USED)).and_then(|marker| marker.modified());
        // A clock that went back forgets nothing.
        let is_recent =
            last.is_ok_and(|last| now.duration_since(last).ok().is_none_or(|age| age < FORGOTTEN));
        if entry.file_name() != own && !is_recent {
            found.push(entry.into_path());
        }
    }
    found
}

/// Bytes of the downloads and records below a cache directory.
pub(crate) fn cache_size(cache: &Utf8Path) -> u64 {
    let mut found = Vec::new();
    for folder in CACHE_FOLDERS {
        collect(&cache.join(folder), &mut found);
    }
    found.iter().map(|(file, _)| file.size).sum()
}

/// Removes files of the cache, and directories of records that are empty then.
pub(crate) fn remove(store: &Store, files: &[CacheFile]) -> Result<(), StoreError> {
    for file in files {
        match fs_err::remove_file(&file.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::file("cannot remove a file from the cache")(error));
            }
            _ => {}
        }
        let records = store.cache_dir().join(RECORDS);
        let folders = file.path.ancestors().skip(1);
        for folder in folders.take_while(|folder| folder.starts_with(&records) && *folder != records) {
            // One that is not empty stays.
            let _ = fs_err::remove_dir(folder);
        }
    }
    Ok(())
}

/// True if the name or the record names something of a lock in use.
fn is_used(file: &CacheFile, used: &BTreeSet<String>) -> bool {
    if file.path.file_name() == Some(LAST_USED) {
        return true;
    }
    let mut named = hashes(file.path.file_name().unwrap_or_default().as_bytes());
    if file.size <= LARGEST_RECORD && file.path.extension() == Some("json") {
        named
            .extend(read_regular(&file.path, LARGEST_RECORD).map(|bytes| hashes(&bytes)).unwrap_or_default());
    }
    named.iter().any(|hash| used.contains(hash))
}

/// The SHA-256 digests in a text, hex.
fn hashes(text: &[u8]) -> Vec<String> {
    let words = text.split(|byte| !byte.is_ascii_digit() && !(b'a'..=b'f').contains(byte));
    words.filter(|word| word.len() == HASH).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn collect(folder: &Utf8Path, found: &mut Vec<(CacheFile, SystemTime)>) {
    // A link of a restored cache may lead to files of the user, which no lock names and which would all be removed.
    if !fs_err::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return;
    }
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            collect(entry.path(), found);
        } else if let Ok(modified) = metadata.modified() {
            found.push((CacheFile { path: entry.path().to_owned(), size: metadata.len() }, modified));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sha256::sha256_hex;
    use crate::store::SealedRecords;
    use crate::store::known_locks::OF_SPECS;
    use crate::store::old_byte_code::BYTE_CODE;

    #[test]
    fn files_of_locks_in_use_and_young_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let lock = include_str!("../../tests/fixtures/lock/products/numba-cuda.lock");
        store.write_state(&format!("{OF_SPECS}/x.lock"), lock.as_bytes()).expect("written");
        let used = hashes(lock.as_bytes()).remove(0);
        let other = sha256_hex(b"other");
        let write = |path: &str, content: &str| {
            let path = store.cache_dir().join(path);
            fs_err::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs_err::write(&path, content).expect("written");
            path
        };
        write(&format!("sha256/{}/{used}", &used[..2]), "wheel");
        let id = store.key_id().expect("a key");
        write(&format!("records/{id}/layers/byte-code-2/{used}-11"), "code");
        write(&format!("records/{id}/layers/digests/x.json"), &format!(r#"{{"diff_id":"sha256:{used}"}}"#));
        write(&format!("records/{id}/{LAST_USED}"), "");
        write("base/archive", "not part of it");
        let gone = [
            // Never read: it was kept for every project.
            write(&format!("records/{id}/layers/byte-code/{used}-11"), "code"),
            write(
                &format!("records/{id}/layers/digests/y.json"),
                &format!(r#"{{"diff_id":"sha256:{other}"}}"#),
            ),
            write(&format!("sha256/{}/{other}", &other[..2]), "another wheel"),
        ];
        let now = SystemTime::now();
        assert_eq!(unused(&store, now), [], "all are young");
        assert!(cache_size(store.cache_dir()) > 100);
        let later = now + YOUNG + Duration::from_mins(1);
        let found = unused(&store, later);
        assert_eq!(found.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), gone);
        assert_eq!(found[2].size, 13);
        remove(&store, &found).expect("removed");
        remove(&store, &found).expect("somebody else may have been faster");
        assert_eq!(unused(&store, later), []);
    }

    #[test]
    fn nothing_behind_a_link_is_of_the_cache() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let precious = root.join("user/more/precious");
        crate::store::write_atomically(&precious, b"of the user").expect("written");
        let later = SystemTime::now() + Duration::from_hours(8 * 24);
        for name in CACHE_FOLDERS {
            let place = store.cache_dir().join(name);
            drop(fs_err::remove_dir_all(&place));
            for at in [place.clone(), place.join("more")] {
                fs_err::create_dir_all(at.parent().expect("a folder")).expect("made");
                std::os::unix::fs::symlink(root.join("user"), &at).expect("ours");
                let found = unused(&store, later);
                assert!(found.iter().all(|file| !file.path.starts_with(at.join("more"))), "{at}: {found:?}");
                assert!(cache_size(store.cache_dir()) < 1000);
                remove(&store, &found).expect("removed");
                assert_eq!(fs_err::read(&precious).expect("it stays"), b"of the user", "{at}");
                drop(fs_err::remove_file(&at));
            }
        }
    }

    #[test]
    fn records_of_a_state_that_was_not_used_for_long_go_whatever_they_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let other = Store::open(&root.join("cache"), &root.join("another")).expect("a store");
        let lock = include_str!("../../tests/fixtures/lock/products/numba-cuda.lock");
        store.write_state(&format!("{OF_SPECS}/x.lock"), lock.as_bytes()).expect("written");
        let used = hashes(lock.as_bytes()).remove(0);
        for store in [&store, &other] {
            SealedRecords::new(store, BYTE_CODE).write(&used, b"code").expect("written");
        }
        let old = store.cache_dir().join("layers/byte-code").join(&used);
        crate::store::write_atomically(&old, b"of a version before").expect("written");
        let names = |age: Duration| -> Vec<Utf8PathBuf> {
            let found = unused(&store, SystemTime::now() + age);
            found.into_iter().map(|file| file.path).collect()
        };
        assert_eq!(names(Duration::ZERO), Vec::<Utf8PathBuf>::new(), "all are young");
        assert_eq!(names(Duration::from_hours(6 * 24)), std::slice::from_ref(&old));
        let of_other = store.cache_dir().join(RECORDS).join(other.key_id().expect("a key"));
        let expected = [old, of_other.join(LAST_USED), of_other.join(BYTE_CODE).join(&used)];
        let later = SystemTime::now() + Duration::from_hours(8 * 24);
        let found = unused(&store, later);
        let paths: BTreeSet<_> = found.iter().map(|file| file.path.clone()).collect();
        assert_eq!(paths, BTreeSet::from(expected));
        remove(&store, &found).expect("removed");
        assert!(!of_other.exists(), "no empty directory stays");
        assert!(SealedRecords::new(&store, BYTE_CODE).read(&used, 10).is_some());
    }
}
