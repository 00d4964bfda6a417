//! Records of the cache that say what was made of what, such as the digest of a layer of wheels: each with a seal.
//!
//! Blobs are hashed when they are used, but a record cannot be compared with anything short of making the layer again. Whoever
//! restores a cache can write any record into it. So each has an HMAC-SHA-256 over its place and content, with a key of the state
//! directory; a record without a valid seal is none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8PathBuf;
use ring::hmac;

use super::error::StoreError;
use super::files::{read_file, write_atomically};
use super::folders::Store;
use crate::model::sha256::sha256_hex;

/// The first line of a record, with its end.
const SEAL: usize = 45;

/// A directory of sealed records.
#[derive(Debug, Clone)]
pub(crate) struct SealedRecords {
    store: Store,
    folder: &'static str,
}

impl SealedRecords {
    /// The records in a directory of the cache.
    pub(crate) fn new(store: &Store, folder: &'static str) -> Self {
        Self { store: store.clone(), folder }
    }

    /// The path of a record.
    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        self.store.cache_dir().join(self.folder).join(name)
    }

    /// Returns the content of a record of at most `most` bytes; `None`: there is none with a valid seal.
    pub(crate) fn read(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let path = self.path(name);
        let mut bytes = match read_file(&path, most.saturating_add(SEAL as u64)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%path, %error, "ignoring a record that cannot be read");
                return None;
            }
        };
        if self.is_sealed(name, &bytes).is_none() {
            // A whole cache of another machine, or of an earlier version, is no reason for a hundred warnings.
            tracing::debug!(%path, "ignoring a record that was not written here");
            return None;
        }
        bytes.drain(..SEAL);
        Some(bytes)
    }

    fn is_sealed(&self, name: &str, bytes: &[u8]) -> Option<()> {
        let (line, content) = bytes.split_at_checked(SEAL)?;
        let seal = STANDARD.decode(line.strip_suffix(b"\n")?).ok()?;
        let key = self.store.seal_key().ok()?;
        hmac::verify(key, self.sealed_text(name, content).as_bytes(), &seal).ok()
    }

    /// Writes a record.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let seal = hmac::sign(self.store.seal_key()?, self.sealed_text(name, content).as_bytes());
        let line = format!("{}\n", STANDARD.encode(seal));
        write_atomically(&self.path(name), &[line.as_bytes(), content].concat())
    }

    /// The place of a record with the hash of its content: another record's seal is none of it.
    fn sealed_text(&self, name: &str, content: &[u8]) -> String {
        // A path has no NUL. The hash, because a record of byte code has some hundred megabytes.
        format!("{}/{name}\0{}", self.folder, sha256_hex(content))
    }
}

impl Store {
    /// Returns a secret of this state directory, from which the engine's keys of build contexts are derived: the same for every
    /// process, so that an engine still knows files it was sent before.
    pub(crate) fn context_secret(&self) -> Result<Vec<u8>, StoreError> {
        // No place of a record begins like this.
        Ok(hmac::sign(self.seal_key()?, b"\0build contexts").as_ref().to_vec())
    }

    fn seal_key(&self) -> Result<&hmac::Key, StoreError> {
        let made = self.seal.get(self.state_dir());
        made.map_err(StoreError::file("cannot read or make the key of the cache"))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test forges files")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::store::seal_key::KEY;

    struct Fixture {
        root: Utf8PathBuf,
        _folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        Fixture { root, _folder: folder }
    }

    impl Fixture {
        /// The records of the one cache, for a state directory.
        fn records(&self, state: &str, folder: &'static str) -> SealedRecords {
            let store = Store::open(&self.root.join("cache"), &self.root.join(state)).expect("a store");
            SealedRecords::new(&store, folder)
        }
    }

    #[test]
    fn record_is_read_by_every_process_of_its_state_directory_and_no_other() {
        let f = fixture();
        f.records("state", "layers").write("one", b"content").expect("written");
        assert_eq!(f.records("state", "layers").read("one", 7).as_deref(), Some(&b"content"[..]));
        assert_eq!(f.records("state", "layers").read("one", 6), None, "larger than any");
        assert_eq!(f.records("another", "layers").read("one", 7), None);
    }

    #[test]
    fn forged_damaged_or_moved_record_is_none() {
        let f = fixture();
        let records = f.records("state", "layers");
        records.write("one", b"content").expect("written");
        let whole = fs_err::read(records.path("one")).expect("a file");
        let changed = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        for bytes in [
            changed(0),
            changed(SEAL),
            whole[..whole.len() - 1].to_vec(),
            whole[..SEAL].to_vec(),
            whole[SEAL..].to_vec(),
            Vec::new(),
        ] {
            fs_err::write(records.path("one"), bytes).expect("ours");
            assert_eq!(records.read("one", 100), None);
        }
        fs_err::write(records.path("two"), &whole).expect("ours");
        assert_eq!(records.read("two", 100), None, "the record of another name");
        let other = f.records("state", "other");
        fs_err::create_dir_all(f.root.join("cache/other")).expect("ours");
        fs_err::write(other.path("one"), &whole).expect("ours");
        assert_eq!(other.read("one", 100), None, "the record of another kind");
        fs_err::write(records.path("one"), &whole).expect("ours");
        assert!(records.read("one", 100).is_some());
    }

    #[test]
    fn key_is_readable_by_its_owner_only_and_a_cut_one_is_made_again() {
        let f = fixture();
        let records = f.records("state", "layers");
        records.write("one", b"content").expect("written");
        let key = f.root.join("state").join(KEY);
        let mode = fs_err::metadata(&key).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs_err::write(&key, b"short").expect("ours");
        let records = f.records("state", "layers");
        assert_eq!(records.read("one", 100), None);
        records.write("one", b"again").expect("written");
        assert_eq!(f.records("state", "layers").read("one", 100).as_deref(), Some(&b"again"[..]));
    }

    #[test]
    fn first_processes_agree_on_one_key() {
        let f = fixture();
        let hashes: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| f.records("state", "layers").store.context_secret().expect("a key")))
                .collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(hashes.len(), 1);
        let other = f.records("another", "layers").store;
        assert_ne!(other.context_secret().expect("a key"), *hashes.first().expect("one"));
    }
}
