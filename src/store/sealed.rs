//! Records of the cache that say what was made of what, such as the digest of a layer of wheels: each with a seal.
//!
//! Blobs are hashed when they are used, but a record cannot be compared with anything short of making the layer again. Whoever
//! restores a cache can write any record into it. So each has an HMAC-SHA-256 over its place and content, with a key of the state
//! directory; a record without a valid seal is none. Each key has records of its own (`CACHE/records/ID`), so that state
//! directories with one cache do not replace each other's.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use ring::hmac;

use super::error::StoreError;
use super::files::write_atomically;
use super::folders::Store;
use super::regular_file::read_regular;
use super::seal_key::KeyOfState;
use crate::model::sha256::{hex, sha256_hex};

/// The directory of the records of every key in the cache, each below the id of its key.
pub(super) const RECORDS: &str = "records";
/// The file below it whose age says when the key was last used.
pub(super) const LAST_USED: &str = "last-used";
/// The interval between updates of that file.
const UPDATE_INTERVAL: Duration = Duration::from_hours(12);
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

    /// Returns the path of a record.
    pub(crate) fn path(&self, name: &str) -> Result<Utf8PathBuf, StoreError> {
        Ok(self.store.records_of_key()?.join(self.folder).join(name))
    }

    /// Returns the content of a record of at most `most` bytes; `None`: there is none with a valid seal.
    pub(crate) fn read(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let path = self.path(name).inspect_err(|error| tracing::debug!(%error, "no records")).ok()?;
        self.store.read_sealed(&path, &self.place(name), most)
    }

    /// Writes a record.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        write_atomically(&self.path(name)?, &self.store.sealed(&self.place(name), content)?)
    }

    fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

/// The place of a record with the hash of its content: another record's seal is none of it.
fn sealed_text(place: &str, content: &[u8]) -> String {
    // A path has no NUL. The hash, because a record of byte code has some hundred megabytes.
    format!("{place}\0{}", sha256_hex(content))
}

/// The place of a record of the state directory: no record of the cache has a name that begins like this.
fn place_in_state(relative: &str) -> String {
    format!("\0state/{relative}")
}

impl Store {
    /// Returns a secret of this state directory, from which the engine's keys of build contexts are derived: the same for every
    /// process, so that an engine still knows files it was sent before.
    pub(crate) fn context_secret(&self) -> Result<Vec<u8>, StoreError> {
        // No place of a record begins like this.
        Ok(hmac::sign(&self.seal_key()?.key, b"\0build contexts").as_ref().to_vec())
    }

    /// Returns a digest (hex) of a text for a purpose that nobody without this state directory's key can compute, and so guess the text
    /// from.
    pub(crate) fn keyed_digest(&self, purpose: &str, text: &[u8]) -> Result<String, StoreError> {
        // No place of a record begins like this.
        let text = [b"\0", purpose.as_bytes(), b"\0", text].concat();
        Ok(hex(hmac::sign(&self.seal_key()?.key, &text).as_ref()))
    }

    /// Returns the directory of the records of this state directory's key, which counts as used by that.
    fn records_of_key(&self) -> Result<Utf8PathBuf, StoreError> {
        let folder = self.cache_dir().join(RECORDS).join(self.key_id()?);
        self.key_used.get_or_init(|| {
            let marker = folder.join(LAST_USED);
            let age = fs_err::metadata(&marker).and_then(|found| found.modified()).ok();
            if age.is_none_or(|time| time.elapsed().is_ok_and(|age| age > UPDATE_INTERVAL))
                && let Err(error) = write_atomically(&marker, b"")
            {
                // A cache that cannot be written has records to read all the same.
                tracing::debug!(%error, "cannot record that the records are in use");
            }
        });
        Ok(folder)
    }

    /// Returns the public id of this state directory's key.
    pub(super) fn key_id(&self) -> Result<&str, StoreError> {
        Ok(&self.seal_key()?.id)
    }

    /// Returns a name for something of this state directory on an engine, which others use too: `envforge-lists-` and the public id
    /// of its key, which is random.
    pub fn engine_name(&self, what: &str) -> Result<String, StoreError> {
        Ok(format!("envforge-{what}-{}", self.key_id()?))
    }

    /// Writes a record of the state directory with a seal: one that another state directory's program wrote is none.
    pub(super) fn write_sealed_state(&self, relative: &str, content: &[u8]) -> Result<(), StoreError> {
        self.write_state(relative, &self.sealed(&place_in_state(relative), content)?)
    }

    /// Returns the content of such a record of at most `most` bytes; `None`: there is none with a valid seal.
    pub(super) fn read_sealed_state(&self, relative: &str, most: u64) -> Option<Vec<u8>> {
        self.read_sealed(&self.state_dir().join(relative), &place_in_state(relative), most)
    }

    fn read_sealed(&self, path: &Utf8Path, place: &str, most: u64) -> Option<Vec<u8>> {
        let mut bytes = match read_regular(path, most.saturating_add(SEAL as u64)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%path, %error, "ignoring a record that cannot be read");
                return None;
            }
        };
        if self.is_sealed(place, &bytes).is_none() {
            // A whole cache of another machine, or of an earlier version, is no reason for a hundred warnings.
            tracing::debug!(%path, "ignoring a record that was not written here");
            return None;
        }
        bytes.drain(..SEAL);
        Some(bytes)
    }

    /// The content of a record after its seal.
    fn sealed(&self, place: &str, content: &[u8]) -> Result<Vec<u8>, StoreError> {
        let seal = hmac::sign(&self.seal_key()?.key, sealed_text(place, content).as_bytes());
        let line = format!("{}\n", STANDARD.encode(seal));
        Ok([line.as_bytes(), content].concat())
    }

    fn is_sealed(&self, place: &str, bytes: &[u8]) -> Option<()> {
        let (line, content) = bytes.split_at_checked(SEAL)?;
        let seal = STANDARD.decode(line.strip_suffix(b"\n")?).ok()?;
        let key = &self.seal_key().ok()?.key;
        hmac::verify(key, sealed_text(place, content).as_bytes(), &seal).ok()
    }

    fn seal_key(&self) -> Result<&KeyOfState, StoreError> {
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
        let place = |records: &SealedRecords, name| records.path(name).expect("a key");
        let whole = fs_err::read(place(&records, "one")).expect("a file");
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
            fs_err::write(place(&records, "one"), bytes).expect("ours");
            assert_eq!(records.read("one", 100), None);
        }
        fs_err::write(place(&records, "two"), &whole).expect("ours");
        assert_eq!(records.read("two", 100), None, "the record of another name");
        let other = f.records("state", "other");
        other.write("one", b"other content").expect("written");
        fs_err::write(place(&other, "one"), &whole).expect("ours");
        assert_eq!(other.read("one", 100), None, "the record of another kind");
        let another = f.records("another", "layers");
        another.write("one", b"other content").expect("written");
        fs_err::write(place(&another, "one"), &whole).expect("ours");
        assert_eq!(another.read("one", 100), None, "the record of another key");
        fs_err::write(place(&records, "one"), &whole).expect("ours");
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
    fn key_that_others_can_read_or_made_is_refused() {
        let f = fixture();
        f.records("state", "layers").write("one", b"mine").expect("written");
        let key = f.root.join("state").join(KEY);
        for mode in [0o640, 0o604, 0o620, 0o602] {
            fs_err::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("ours");
            let error = f.records("state", "layers").write("one", b"x").expect_err("refused");
            let cause = error.to_string();
            assert!(cause.contains("chmod 600") && cause.contains(&format!("{mode:o}")), "{cause}");
            assert_eq!(f.records("state", "layers").read("one", 100), None);
        }
        fs_err::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("ours");
        assert_eq!(f.records("state", "layers").read("one", 100).as_deref(), Some(&b"mine"[..]));
    }

    #[test]
    fn three_states_keep_their_records_in_one_cache_at_once() {
        let f = fixture();
        let all = std::sync::Barrier::new(3);
        let run = |state: &'static str| {
            let (mut lost, records) = (0, f.records(state, "layers"));
            for round in 0..20 {
                let content = format!("{round} of {state}").into_bytes();
                records.write("name", &content).expect("written");
                all.wait();
                lost += usize::from(records.read("name", 100).as_ref() != Some(&content));
                lost += usize::from(f.records(state, "layers").read("name", 100) != Some(content));
                all.wait();
            }
            lost
        };
        let lost: usize = std::thread::scope(|scope| {
            let states = ["one", "two", "three"].map(|state| scope.spawn(move || run(state)));
            states.into_iter().map(|state| state.join().expect("no panic")).sum()
        });
        assert_eq!(lost, 0);
    }

    #[test]
    fn id_of_a_key_is_in_the_path_and_the_key_is_not() {
        let f = fixture();
        let records = f.records("state", "layers");
        let id = records.store.key_id().expect("a key").to_owned();
        let key = fs_err::read(f.root.join("state").join(KEY)).expect("a key");
        let key = key.iter().fold(String::new(), |key, byte| format!("{key}{byte:02x}"));
        assert!(id.len() == 16 && !key.contains(&id));
        let path = records.path("one").expect("a key");
        assert_eq!(path, f.root.join("cache/records").join(&id).join("layers/one"));
        assert!(f.root.join("cache/records").join(&id).join(LAST_USED).is_file());
        assert_ne!(f.records("another", "layers").store.key_id().expect("a key"), id);
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
