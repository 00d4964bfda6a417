//! The cache and state directories.
#![expect(clippy::disallowed_methods, reason = "edge: owns the cache and state directories")]

use std::io::ErrorKind;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};

use super::error::StoreError;
use super::files::{TEMPORARY, make_parent, remove_file, remove_orphans, temporary_file, write_atomically};
use super::limits::{LARGEST_BLOB, LARGEST_STATE};
use super::lock::{Holder, StoreLock};
use super::regular_file::read_regular;
use super::seal_key::SealKey;
use crate::host::process_owner::unique_name;
use crate::model::sha256::{HashingWriter, is_sha256_hex, sha256_hex};

/// Temporary files younger than this may belong to a running process.
const LEFTOVER_AGE: Duration = Duration::from_hours(24);

/// The cache and state directories.
#[derive(Debug, Clone)]
pub struct Store {
    cache: Utf8PathBuf,
    state: Utf8PathBuf,
    pub(super) seal: SealKey,
    /// Set once this process has recorded that it uses the key.
    pub(super) key_used: Arc<OnceLock<()>>,
}

impl Store {
    /// Opens the two directories, creates them if necessary, and removes files of killed processes.
    pub fn open(cache: &Utf8Path, state: &Utf8Path) -> Result<Self, StoreError> {
        let (seal, key_used) = (SealKey::default(), Arc::default());
        let store = Self { cache: cache.to_owned(), state: state.to_owned(), seal, key_used };
        for folder in [cache.join("sha256"), cache.join("partial"), cache.join("temp"), state.join("locks")] {
            fs_err::create_dir_all(folder)
                .map_err(StoreError::file("cannot create the directories of envforge"))?;
        }
        store.sweep_leftovers(SystemTime::now());
        Ok(store)
    }

    /// The cache directory.
    pub fn cache_dir(&self) -> &Utf8Path {
        &self.cache
    }

    /// The state directory.
    pub fn state_dir(&self) -> &Utf8Path {
        &self.state
    }

    fn sweep_leftovers(&self, now: SystemTime) {
        for folder in ["temp", "partial"] {
            let folder = self.cache.join(folder);
            // A link of a restored cache may lead to files of the user, which would all be old enough.
            if !fs_err::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
                continue;
            }
            remove_orphans(&folder, TEMPORARY);
            let Ok(entries) = fs_err::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let age =
                    entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| now.duration_since(t).ok());
                if age.is_some_and(|age| age > LEFTOVER_AGE) {
                    tracing::debug!(path = %entry.path().display(), "removing an old temporary file");
                    // A file that cannot be removed is harmless.
                    let _ = fs_err::remove_file(entry.path());
                }
            }
        }
    }

    /// The path of the blob with that hash, present or not.
    pub fn blob_path(&self, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        if !is_sha256_hex(sha256) {
            return Err(StoreError::NotADigest { found: sha256.to_owned() });
        }
        Ok(self.cache.join("sha256").join(&sha256[..2]).join(sha256))
    }

    /// Returns the file of the blob with that hash, if there is one. Its bytes are whatever the cache was filled with: who uses
    /// them hashes them. A link is none.
    pub fn find(&self, sha256: &str) -> Result<Option<Utf8PathBuf>, StoreError> {
        let path = self.blob_path(sha256)?;
        let is_file = fs_err::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        Ok(is_file.then_some(path))
    }

    /// Reads a blob and verifies it again; a damaged one is removed and counts as absent.
    pub fn read(&self, sha256: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(path) = self.find(sha256)? else { return Ok(None) };
        let bytes = match read_regular(&path, LARGEST_BLOB) {
            // Removed since it was found.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(StoreError::file("cannot read the cache"))?,
        };
        if sha256_hex(&bytes) == sha256 {
            return Ok(Some(bytes.into()));
        }
        self.discard(sha256)?;
        Ok(None)
    }

    /// Removes a damaged blob.
    pub(crate) fn discard(&self, sha256: &str) -> Result<(), StoreError> {
        let path = self.blob_path(sha256)?;
        tracing::warn!(%path, "removing a damaged file from the cache");
        remove_file(&path).map_err(StoreError::file("cannot remove a damaged file from the cache"))
    }

    /// Stores bytes in the cache under their hash, which is verified.
    pub fn put(&self, sha256: &str, bytes: &[u8]) -> Result<Utf8PathBuf, StoreError> {
        let path = self.blob_path(sha256)?;
        let found = sha256_hex(bytes);
        if found != sha256 {
            return Err(StoreError::WrongContent { wanted: sha256.to_owned(), found });
        }
        write_atomically(&path, bytes)?;
        Ok(path)
    }

    /// Moves a complete, verified file of the same disk into the cache under its hash. Its bytes reach the disk before its name.
    pub(crate) fn adopt(&self, file: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        let path = self.blob_path(sha256)?;
        make_parent(&path)?;
        let synced = fs_err::File::open(file).and_then(|file| file.sync_data());
        synced
            .and_then(|()| fs_err::rename(file, &path))
            .map_err(StoreError::file("cannot write the cache"))?;
        Ok(path)
    }

    /// Copies a file of another place into the cache, hashed while it is copied.
    pub(crate) fn take(&self, file: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        let failed = |cause| StoreError::File { purpose: "cannot copy a file into the cache", cause };
        let passing = self.temp_file()?;
        let mut copy = HashingWriter::new(passing.as_file());
        std::io::copy(&mut fs_err::File::open(file).map_err(failed)?, &mut copy).map_err(failed)?;
        let found = copy.finish();
        if found != sha256 {
            return Err(StoreError::WrongContent { wanted: sha256.to_owned(), found });
        }
        self.adopt(Utf8Path::from_path(passing.path()).expect("the cache's path is UTF-8"), sha256)
    }

    /// The path of an unfinished download of that hash.
    pub(crate) fn partial_path(&self, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        self.blob_path(sha256)?;
        Ok(self.cache.join("partial").join(sha256))
    }

    /// Creates the directory of a file of the store.
    pub(crate) fn make_folder_of(&self, path: &Utf8Path) -> Result<(), StoreError> {
        debug_assert!(
            path.starts_with(&self.cache) || path.starts_with(&self.state),
            "{path} is outside the store"
        );
        make_parent(path)
    }

    /// Creates a temporary file on the cache's disk; it is removed when dropped unless it was moved.
    pub fn temp_file(&self) -> Result<tempfile::NamedTempFile, StoreError> {
        temporary_file(TEMPORARY, &self.cache.join("temp"))
            .map_err(StoreError::file("cannot create a temporary file in the cache"))
    }

    /// Creates a temporary directory on the cache's disk; it is removed when dropped.
    pub(crate) fn temp_folder(&self) -> Result<tempfile::TempDir, StoreError> {
        let prefix = format!("{TEMPORARY}{}", unique_name());
        tempfile::Builder::new()
            .prefix(&prefix)
            .rand_bytes(0)
            .tempdir_in(self.cache.join("temp"))
            .map_err(StoreError::file("cannot create a temporary directory in the cache"))
    }

    /// Writes a record of the state directory atomically. `relative` is a path below it.
    pub fn write_state(&self, relative: &str, bytes: &[u8]) -> Result<(), StoreError> {
        write_atomically(&self.state.join(relative), bytes)
    }

    /// Reads a record of the state directory, if it exists.
    pub fn read_state(&self, relative: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match read_regular(&self.state.join(relative), LARGEST_STATE) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::file("cannot read the state directory")(error)),
        }
    }

    /// Waits until no other process (or task) holds the lock of that name, and holds it until dropped.
    ///
    /// The kernel releases it when a process dies. After a second of waiting a warning names the holder.
    pub async fn lock(&self, name: &str) -> Result<StoreLock, StoreError> {
        self.lock_with(name, |holder| tracing::warn!("waiting for {holder}, which holds the lock `{name}`"))
            .await
    }

    /// The same with the reason in the warning: `which compiles byte code`.
    pub async fn lock_with_reason(&self, name: &str, reason: &str) -> Result<StoreLock, StoreError> {
        self.lock_with(name, |holder| tracing::warn!("waiting for {holder}, {reason}")).await
    }

    /// The same with another report of the holder.
    async fn lock_with(&self, name: &str, report: impl FnMut(&Holder)) -> Result<StoreLock, StoreError> {
        let path = self.state.join("locks").join(name);
        make_parent(&path)?;
        StoreLock::acquire(&path, report).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    struct Fixture {
        store: Store,
        folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        Fixture { store, folder }
    }

    fn files_below(path: &Utf8Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs_err::read_dir(path).expect("folder").flatten() {
            let path = Utf8PathBuf::from_path_buf(entry.path()).expect("UTF-8");
            if path.is_dir() {
                found.extend(files_below(&path));
            } else {
                found.push(path.file_name().expect("name").to_owned());
            }
        }
        found
    }

    #[test]
    fn stored_blob_is_found_by_its_hash() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        assert_eq!(f.store.find(&hash).expect("find"), None);
        f.store.put(&hash, b"hello").expect("put");
        assert!(f.store.find(&hash).expect("find").is_some());
        assert_eq!(f.store.read(&hash).expect("read").expect("there"), "hello");
    }

    #[test]
    fn rejects_bytes_of_another_hash() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        let error = f.store.put(&hash, b"hullo").expect_err("refused");
        assert!(matches!(error, StoreError::WrongContent { .. }), "{error}");
        assert_eq!(files_below(f.store.cache_dir()), Vec::<String>::new());
    }

    #[test]
    fn rejects_name_that_is_not_a_hash() {
        let f = fixture();
        let error = f.store.find("../../etc/passwd").expect_err("refused");
        assert!(matches!(error, StoreError::NotADigest { .. }), "{error}");
    }

    #[test]
    fn damaged_blob_counts_as_absent() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        let path = f.store.put(&hash, b"hello").expect("put");
        fs_err::write(&path, b"hell").expect("damage");
        assert_eq!(f.store.read(&hash).expect("read"), None);
        assert_eq!(f.store.find(&hash).expect("find"), None);
    }

    #[test]
    fn link_in_place_of_a_blob_is_none_and_is_replaced() {
        let f = fixture();
        let (hash, precious) = (sha256_hex(b"hello"), f.store.state.join("precious"));
        fs_err::write(&precious, b"hello").expect("ours");
        let path = f.store.blob_path(&hash).expect("a path");
        fs_err::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::os::unix::fs::symlink(&precious, &path).expect("ours");
        assert_eq!(f.store.find(&hash).expect("find"), None);
        assert_eq!(f.store.read(&hash).expect("read"), None);
        let passing = f.store.cache.join("temp/one");
        fs_err::write(&passing, b"hello").expect("ours");
        f.store.adopt(&passing, &hash).expect("moved");
        assert!(!path.is_symlink() && f.store.read(&hash).expect("read").is_some());
        assert_eq!(fs_err::read(precious).expect("untouched"), b"hello");
    }

    #[test]
    fn folder_of_old_files_behind_a_link_is_not_swept() {
        let f = fixture();
        let precious = f.store.state.join("precious");
        fs_err::create_dir_all(&precious).expect("ours");
        fs_err::write(precious.join("old"), b"").expect("ours");
        let yesterday = SystemTime::now() - LEFTOVER_AGE - Duration::from_mins(1);
        let file = std::fs::File::options().write(true).open(precious.join("old")).expect("open");
        file.set_modified(yesterday).expect("age");
        for folder in ["temp", "partial"] {
            fs_err::remove_dir(f.store.cache.join(folder)).expect("ours");
            std::os::unix::fs::symlink(&precious, f.store.cache.join(folder)).expect("ours");
        }
        Store::open(f.store.cache_dir(), f.store.state_dir()).expect("open again");
        assert!(precious.join("old").exists());
    }

    #[test]
    fn file_is_taken_into_the_cache_with_its_hash_only() {
        let f = fixture();
        let from = f.store.state.join("from");
        fs_err::write(&from, b"hello").expect("ours");
        let error = f.store.take(&from, &sha256_hex(b"other")).expect_err("refused");
        assert!(matches!(error, StoreError::WrongContent { .. }), "{error}");
        assert_eq!(files_below(f.store.cache_dir()), Vec::<String>::new());
        let hash = sha256_hex(b"hello");
        f.store.take(&from, &hash).expect("taken");
        assert_eq!(f.store.read(&hash).expect("read").expect("there"), "hello");
    }

    #[test]
    fn files_of_a_restored_cache_are_read_up_to_a_bound_and_pipes_are_not() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        let blob = f.store.put(&hash, b"hello").expect("put");
        let record = f.store.state.join("built-images/aa");
        f.store.write_state("built-images/aa", b"lock").expect("write");
        for (path, length) in [(&blob, LARGEST_BLOB + 1), (&record, LARGEST_STATE + 1)] {
            // Zeros take no space on the disk.
            let file = fs_err::OpenOptions::new().write(true).open(path).expect("ours");
            file.set_len(length).expect("sparse");
        }
        let read = [f.store.read(&hash).map(drop), f.store.read_state("built-images/aa").map(drop)];
        for (error, path) in read.into_iter().zip([&blob, &record]) {
            let StoreError::File { cause, .. } = error.expect_err("too large") else { panic!("of the file") };
            assert_eq!(cause.kind(), std::io::ErrorKind::FileTooLarge, "{cause}");
            assert!(cause.to_string().contains(path.as_str()), "{cause}");
        }
        fs_err::remove_file(&record).expect("ours");
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(rustix::fs::CWD, record.as_std_path(), rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        let error = f.store.read_state("built-images/aa").expect_err("a pipe without a writer");
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn concurrent_writers_leave_one_complete_file() {
        let f = fixture();
        let bytes = vec![7_u8; 300_000];
        let hash = sha256_hex(&bytes);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| f.store.put(&hash, &bytes).expect("put"));
            }
        });
        assert_eq!(files_below(f.store.cache_dir()), vec![hash.clone()]);
        assert_eq!(f.store.read(&hash).expect("read").expect("there"), bytes);
    }

    #[test]
    fn removes_old_temporary_files_only() {
        let f = fixture();
        let (old, young) = (f.store.cache.join("temp/old"), f.store.cache.join("partial/young"));
        fs_err::write(&old, b"half").expect("write");
        fs_err::write(&young, b"half").expect("write");
        let yesterday = SystemTime::now() - LEFTOVER_AGE - Duration::from_mins(1);
        std::fs::File::options().write(true).open(&old).expect("open").set_modified(yesterday).expect("age");
        Store::open(f.store.cache_dir(), f.store.state_dir()).expect("open again");
        assert!(!old.exists() && young.exists());
    }

    #[test]
    fn record_is_replaced_atomically() {
        let f = fixture();
        assert_eq!(f.store.read_state("base/one.json").expect("read"), None);
        f.store.write_state("base/one.json", b"first, longer").expect("write");
        f.store.write_state("base/one.json", b"second").expect("write");
        assert_eq!(f.store.read_state("base/one.json").expect("read").as_deref(), Some(&b"second"[..]));
        assert_eq!(files_below(&f.store.state.join("base")), vec!["one.json"]);
    }

    #[test]
    fn error_names_file_in_place_of_directory() {
        let f = fixture();
        let path = Utf8PathBuf::from_path_buf(f.folder.path().join("plain")).expect("UTF-8");
        fs_err::write(&path, b"").expect("write");
        let error = Store::open(&path, &path).expect_err("no folder");
        assert!(error.to_string().contains("plain"), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
    }

    #[tokio::test]
    async fn lock_is_held_by_one_at_a_time() {
        let f = fixture();
        let held = f.store.lock("base").await.expect("lock");
        let second = tokio::time::timeout(Duration::from_millis(150), f.store.lock("base")).await;
        assert!(second.is_err(), "the second must wait");
        drop(held);
        f.store.lock("base").await.expect("free again");
    }

    #[tokio::test]
    async fn waiting_reports_the_holder_once_after_a_second() {
        let f = fixture();
        let held = f.store.lock("base").await.expect("lock");
        let mut reports = Vec::new();
        let waiting = f.store.lock_with("base", |holder| reports.push(holder.to_string()));
        let waited = tokio::time::timeout(Duration::from_millis(300), waiting).await;
        assert!(waited.is_err() && reports.is_empty(), "{reports:?}");
        assert_eq!(reports_of_the_held_lock(&f.store).await, ["another task of this command"]);
        drop(held);
        f.store.lock_with("base", |holder| panic!("{holder} holds a free lock")).await.expect("free");
    }

    /// Waits for the lock that another holds until its holder is reported, and some attempts longer; returns all reports.
    async fn reports_of_the_held_lock(store: &Store) -> Vec<String> {
        let (sender, mut reports) = tokio::sync::mpsc::unbounded_channel();
        let waiting = store.lock_with("base", |holder| drop(sender.send(holder.to_string())));
        tokio::pin!(waiting);
        let first = tokio::select! {
            _ = &mut waiting => panic!("it is held"),
            report = reports.recv() => report,
        };
        let waited = tokio::time::timeout(Duration::from_millis(300), waiting).await;
        assert!(waited.is_err(), "it is held");
        first.into_iter().chain(std::iter::from_fn(|| reports.try_recv().ok())).collect()
    }

    #[tokio::test]
    async fn holder_of_another_process_is_reported_with_its_pid() {
        let f = fixture();
        let path = f.store.state.join("locks/base");
        let script = format!("exec 9>>{path}; flock 9; echo $$ > {path}; echo held; exec sleep 600");
        let mut holder = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = String::new();
        let output = holder.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("held");
        let reports = reports_of_the_held_lock(&f.store).await;
        let pid = holder.id();
        holder.kill().and_then(|()| holder.wait()).expect("ended");
        assert_eq!(reports, [format!("process {pid}")]);
        f.store.lock("base").await.expect("the kernel released it");
    }
}
