//! Files of envforge's own: the cache by SHA-256, the state folder, locks between processes.
//!
//! Owns atomic writes: a reader sees a whole file or none. Must not know what the files mean.
//!
//! ```text
//! CACHE/sha256/ab/abcdef…   a blob, complete and once verified
//! CACHE/partial/abcdef…     a download that is not finished; flock'ed by who writes it
//! CACHE/temp/…              files in the making; old ones are swept when the store is opened
//! STATE/locks/NAME          flock'ed while held
//! STATE/…                   records, written whole
//! ```
#![expect(clippy::disallowed_methods, reason = "edge: owns the cache and state folders")]

use std::fs::TryLockError;
use std::io::{ErrorKind, Write as _};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};

use crate::owner::{own_name, owner_of};
use crate::sha256::{is_sha256_hex, sha256_hex};

/// Leftovers younger than this may belong to a process that is still at work.
const LEFTOVER_AGE: Duration = Duration::from_hours(24);
/// How files in the making are called: in the cache, and beside the file they become.
const TEMPORARY: &str = "envforge-";
const HIDDEN: &str = ".envforge-";
/// How often a held lock is asked for again.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder could not be read or written; the error names it.
    #[error("{purpose}: {cause}")]
    File {
        /// What was being done: "cannot write the cache".
        purpose: &'static str,
        /// The system's words, with the path.
        cause: std::io::Error,
    },
    /// What was given as a SHA-256 is none.
    #[error("`{found}` is not a SHA-256 in lower-case hex")]
    NotADigest {
        /// What was given.
        found: String,
    },
    /// The bytes given are not those of the hash.
    #[error("the content has SHA-256 `{found}`, not `{wanted}`")]
    WrongContent {
        /// The hash asked for.
        wanted: String,
        /// The hash of the bytes.
        found: String,
    },
}

impl StoreError {
    fn file(purpose: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::File { purpose, cause }
    }
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::File { cause, .. } => {
                let cure = match cause.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some disk space",
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                        "make the folder writable for you"
                    }
                    _ => return Vec::new(),
                };
                vec![format!(
                    "{cure}, or name others: `ENVFORGE_CACHE_DIR` for downloads, `ENVFORGE_STATE_DIR` for locks and reports"
                )]
            }
            _ => Vec::new(),
        }
    }
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        3
    }
}

/// The cache and state folders.
#[derive(Debug, Clone)]
pub struct Store {
    cache: Utf8PathBuf,
    state: Utf8PathBuf,
}

impl Store {
    /// Opens (and makes, if need be) the two folders and sweeps old leftovers of processes that died.
    pub fn open(cache: &Utf8Path, state: &Utf8Path) -> Result<Self, StoreError> {
        let store = Self { cache: cache.to_owned(), state: state.to_owned() };
        for folder in [cache.join("sha256"), cache.join("partial"), cache.join("temp"), state.join("locks")] {
            fs_err::create_dir_all(folder).map_err(StoreError::file("cannot make envforge's folders"))?;
        }
        store.sweep_leftovers(SystemTime::now());
        Ok(store)
    }

    /// The cache folder.
    pub fn cache_dir(&self) -> &Utf8Path {
        &self.cache
    }

    /// The state folder.
    pub fn state_dir(&self) -> &Utf8Path {
        &self.state
    }

    fn sweep_leftovers(&self, now: SystemTime) {
        remove_remains(&self.cache.join("temp"), TEMPORARY);
        for folder in ["temp", "partial"] {
            let Ok(entries) = fs_err::read_dir(self.cache.join(folder)) else { continue };
            for entry in entries.flatten() {
                let age =
                    entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| now.duration_since(t).ok());
                if age.is_some_and(|age| age > LEFTOVER_AGE) {
                    tracing::debug!(path = %entry.path().display(), "removing a leftover");
                    // Sweeping is a courtesy: what cannot be removed is in nobody's way.
                    let _ = fs_err::remove_file(entry.path());
                }
            }
        }
    }

    /// Where the blob of that hash lies or would lie.
    pub fn blob_path(&self, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        if !is_sha256_hex(sha256) {
            return Err(StoreError::NotADigest { found: sha256.to_owned() });
        }
        Ok(self.cache.join("sha256").join(&sha256[..2]).join(sha256))
    }

    /// The blob of that hash, if the cache has it. It was verified when it came in.
    pub fn find(&self, sha256: &str) -> Result<Option<Utf8PathBuf>, StoreError> {
        let path = self.blob_path(sha256)?;
        Ok(path.is_file().then_some(path))
    }

    /// Reads a blob and verifies it again; one that was damaged on disk is removed and counts as absent.
    pub fn read(&self, sha256: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(path) = self.find(sha256)? else { return Ok(None) };
        let bytes = fs_err::read(&path).map_err(StoreError::file("cannot read the cache"))?;
        if sha256_hex(&bytes) == sha256 {
            return Ok(Some(bytes.into()));
        }
        tracing::warn!(%path, "a damaged file of the cache is removed");
        fs_err::remove_file(&path).map_err(StoreError::file("cannot remove a damaged file of the cache"))?;
        Ok(None)
    }

    /// Puts bytes into the cache under their hash, which is checked.
    pub fn put(&self, sha256: &str, bytes: &[u8]) -> Result<Utf8PathBuf, StoreError> {
        let path = self.blob_path(sha256)?;
        let found = sha256_hex(bytes);
        if found != sha256 {
            return Err(StoreError::WrongContent { wanted: sha256.to_owned(), found });
        }
        write_atomically(&path, bytes)?;
        Ok(path)
    }

    /// Moves a finished, verified file of the same disk into the cache under its hash.
    pub(crate) fn adopt(&self, file: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        let path = self.blob_path(sha256)?;
        make_parent(&path)?;
        fs_err::rename(file, &path).map_err(StoreError::file("cannot write the cache"))?;
        Ok(path)
    }

    /// Where an unfinished download of that hash lies.
    pub(crate) fn partial_path(&self, sha256: &str) -> Result<Utf8PathBuf, StoreError> {
        self.blob_path(sha256)?;
        Ok(self.cache.join("partial").join(sha256))
    }

    /// Makes the folder a file of the store is to lie in.
    pub(crate) fn make_folder_of(&self, path: &Utf8Path) -> Result<(), StoreError> {
        debug_assert!(path.starts_with(&self.cache) || path.starts_with(&self.state), "{path} is not ours");
        make_parent(path)
    }

    /// A file in the making, on the cache's disk; it is removed when dropped unless it was moved away.
    pub fn temp_file(&self) -> Result<tempfile::NamedTempFile, StoreError> {
        passing_file(TEMPORARY, &self.cache.join("temp"))
            .map_err(StoreError::file("cannot make a temporary file in the cache"))
    }

    /// A folder for files in the making, on the cache's disk; it is removed when dropped.
    pub(crate) fn temp_folder(&self) -> Result<tempfile::TempDir, StoreError> {
        let prefix = format!("{TEMPORARY}{}", own_name());
        tempfile::Builder::new()
            .prefix(&prefix)
            .rand_bytes(0)
            .tempdir_in(self.cache.join("temp"))
            .map_err(StoreError::file("cannot make a temporary folder in the cache"))
    }

    /// Writes a record of the state folder, whole. `relative` is a path below it.
    pub fn write_state(&self, relative: &str, bytes: &[u8]) -> Result<(), StoreError> {
        write_atomically(&self.state.join(relative), bytes)
    }

    /// Reads a record of the state folder, if there is one.
    pub fn read_state(&self, relative: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match fs_err::read(self.state.join(relative)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::file("cannot read the state folder")(error)),
        }
    }

    /// Waits until no other process (or task) holds the lock of that name, and holds it until dropped.
    /// The kernel gives it back when a process dies.
    pub async fn lock(&self, name: &str) -> Result<StoreLock, StoreError> {
        let path = self.state.join("locks").join(name);
        make_parent(&path)?;
        let file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(StoreError::file("cannot make a lock file"))?;
        wait_for_lock(file.file()).await.map_err(StoreError::file("cannot lock a file"))?;
        Ok(StoreLock { _file: file })
    }
}

/// A lock held; dropping it gives it back.
#[derive(Debug)]
pub struct StoreLock {
    _file: fs_err::File,
}

/// Waits for an exclusive lock. It polls: a blocked thread could not be ended by Ctrl-C.
pub(crate) async fn wait_for_lock(file: &std::fs::File) -> std::io::Result<()> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_POLL).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn make_parent(path: &Utf8Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Utf8Path::new("."));
    fs_err::create_dir_all(parent).map_err(StoreError::file("cannot make a folder"))
}

/// Writes a file so that a reader sees the old bytes or the new ones, whole, even if the machine goes down.
pub fn write_atomically(path: &Utf8Path, bytes: &[u8]) -> Result<(), StoreError> {
    make_parent(path)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    let named = |cause: std::io::Error| {
        let text = format!("`{path}`: {cause}");
        StoreError::File { purpose: "cannot write a file", cause: std::io::Error::new(cause.kind(), text) }
    };
    remove_remains(parent, HIDDEN);
    let mut file = passing_file(HIDDEN, parent).map_err(named)?;
    // Not through the guard, whose errors name the passing file.
    file.as_file_mut().write_all(bytes).map_err(named)?;
    file.as_file().sync_data().map_err(named)?;
    set_readable(file.as_file()).map_err(named)?;
    file.persist(path).map_err(|error| named(error.error))?;
    Ok(())
}

/// Copies a file so that it is there whole or not at all. No hard link: what happens to the copy is no matter of the file.
pub(crate) fn copy_atomically(from: &Utf8Path, to: &Utf8Path) -> std::io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs_err::create_dir_all(folder)?;
    let error = |kind, text: String| std::io::Error::new(kind, format!("`{to}` cannot be written: {text}"));
    // A bare one is of the new file: those of the other name it.
    let named = |cause: std::io::Error| match cause.raw_os_error() {
        Some(_) => error(cause.kind(), cause.to_string()),
        None => cause,
    };
    remove_remains(folder, HIDDEN);
    let mut source = fs_err::File::open(from)?;
    let mut file =
        passing_file(HIDDEN, folder).map_err(|cause| error(cause.kind(), cause.kind().to_string()))?;
    std::io::copy(&mut source, file.as_file_mut()).map_err(named)?;
    set_readable(file.as_file()).map_err(named)?;
    file.persist(to).map_err(|error| named(error.error))?;
    Ok(())
}

/// A file that its owner removes or moves away; if the owner is killed, [`remove_remains`] finds it by its name.
fn passing_file(prefix: &str, folder: &Utf8Path) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(&format!("{prefix}{}", own_name())).rand_bytes(0).tempfile_in(folder)
}

/// Removes files in the making whose owner has ended. A courtesy: what cannot be removed is in nobody's way.
fn remove_remains(folder: &Utf8Path, prefix: &str) {
    let Ok(entries) = fs_err::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else { continue };
        if owner_of(name).is_some_and(|owner| owner.is_gone()) {
            tracing::debug!(path = %entry.path().display(), "removing what a killed run left");
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ =
                if folder { fs_err::remove_dir_all(entry.path()) } else { fs_err::remove_file(entry.path()) };
        }
    }
}

/// Temporary files are born 0600; what stays gets the usual mode.
fn set_readable(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_blob_put_is_found_and_read_under_its_hash() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        assert_eq!(f.store.find(&hash).expect("find"), None);
        f.store.put(&hash, b"hello").expect("put");
        assert!(f.store.find(&hash).expect("find").is_some());
        assert_eq!(f.store.read(&hash).expect("read").expect("there"), "hello");
    }

    #[test]
    fn bytes_of_another_hash_are_refused_and_leave_nothing() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        let error = f.store.put(&hash, b"hullo").expect_err("refused");
        assert!(matches!(error, StoreError::WrongContent { .. }), "{error}");
        assert_eq!(files_below(f.store.cache_dir()), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_is_no_hash_cannot_leave_the_cache() {
        let f = fixture();
        let error = f.store.find("../../etc/passwd").expect_err("refused");
        assert!(matches!(error, StoreError::NotADigest { .. }), "{error}");
    }

    #[test]
    fn a_blob_damaged_on_disk_counts_as_absent() {
        let f = fixture();
        let hash = sha256_hex(b"hello");
        let path = f.store.put(&hash, b"hello").expect("put");
        fs_err::write(&path, b"hell").expect("damage");
        assert_eq!(f.store.read(&hash).expect("read"), None);
        assert_eq!(f.store.find(&hash).expect("find"), None);
    }

    #[test]
    fn many_writers_of_one_blob_leave_one_whole_file() {
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
    fn old_leftovers_are_swept_and_young_ones_kept() {
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
    fn a_record_is_replaced_whole_and_absent_is_none() {
        let f = fixture();
        assert_eq!(f.store.read_state("base/one.json").expect("read"), None);
        f.store.write_state("base/one.json", b"first, longer").expect("write");
        f.store.write_state("base/one.json", b"second").expect("write");
        assert_eq!(f.store.read_state("base/one.json").expect("read").as_deref(), Some(&b"second"[..]));
        assert_eq!(files_below(&f.store.state.join("base")), vec!["one.json"]);
    }

    #[test]
    fn a_file_where_a_folder_should_be_is_named() {
        let f = fixture();
        let path = Utf8PathBuf::from_path_buf(f.folder.path().join("plain")).expect("UTF-8");
        fs_err::write(&path, b"").expect("write");
        let error = Store::open(&path, &path).expect_err("no folder");
        assert!(error.to_string().contains("plain"), "{error}");
        assert_eq!(error.exit_code(), 3);
    }

    #[tokio::test]
    async fn a_lock_is_held_by_one_at_a_time() {
        let f = fixture();
        let held = f.store.lock("base").await.expect("lock");
        let second = tokio::time::timeout(LOCK_POLL * 3, f.store.lock("base")).await;
        assert!(second.is_err(), "the second must wait");
        drop(held);
        f.store.lock("base").await.expect("free again");
    }
}
