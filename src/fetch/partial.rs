//! An unfinished download: a partial file on disk, locked by its writer.
#![expect(clippy::disallowed_methods, reason = "edge: removes links and pipes")]

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::download::Download;
use super::error::FetchError;
use super::transfer::Transfer;
use crate::model::sha256::{Sha256Hex, sha256_hex};
use crate::store::{Store, StoreError, wait_for_lock};

/// An unfinished download, locked by one process or task at a time.
pub(super) struct Partial {
    file: std::fs::File,
    pub(super) path: Utf8PathBuf,
    pub(super) length: u64,
    pub(super) hash: Sha256Hex,
}

impl Partial {
    /// Opens and locks the partial file; `None` if the blob is in the cache, possibly by another process.
    pub(super) async fn open(store: &Store, download: &Download) -> Result<Option<Self>, FetchError> {
        let path = store.partial_path(&download.sha256)?;
        Self::open_unless(path, || Ok(store.find(&download.sha256)?.is_some())).await
    }

    /// Opens and locks the partial file of a download that stays outside the cache. Its name is not that of a file with the
    /// same hash, which may be a locked one: then a server that knows the hash had that file removed.
    pub(super) async fn open_temporary(store: &Store, download: &Download) -> Result<Self, FetchError> {
        let path = store.partial_path(&sha256_hex(format!("temporary {}", download.sha256).as_bytes()))?;
        Ok(Self::open_unless(path, || Ok(false)).await?.expect("it is not looked for in the cache"))
    }

    async fn open_unless(
        path: Utf8PathBuf,
        is_there: impl Fn() -> Result<bool, FetchError>,
    ) -> Result<Option<Self>, FetchError> {
        loop {
            if is_there()? {
                return Ok(None);
            }
            let Some(mut file) = open_own(&path).map_err(|cause| broken(&path, &cause))? else { continue };
            wait_for_lock(&file).await.map_err(|cause| broken(&path, &cause))?;
            // The previous holder may have moved the file into the cache: then the open file is no longer at `path`.
            if !is_at(&file, &path) {
                continue;
            }
            let (length, hash) = hash_of(&mut file).map_err(|cause| broken(&path, &cause))?;
            return Ok(Some(Self { file, path, length, hash }));
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.file.write_all(bytes).map_err(|cause| broken(&self.path, &cause))?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn restart(&mut self, transfer: &Transfer) -> Result<(), FetchError> {
        let truncated = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        truncated.map_err(|cause| broken(&self.path, &cause))?;
        transfer.take_back(self.length);
        self.length = 0;
        self.hash = Sha256Hex::default();
        Ok(())
    }
}

/// Opens or creates a partial file. `None`: what was there was none and is removed. A restored cache may have a link there, which
/// would lead the download over a file of the user, or a pipe.
fn open_own(path: &Utf8Path) -> std::io::Result<Option<std::fs::File>> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(path);
    match opened {
        Ok(file) => {
            let found = file.metadata()?;
            // A second name is a file of somebody else's.
            if found.is_file() && found.nlink() <= 1 {
                return Ok(Some(file));
            }
        }
        Err(error) if [Some(Errno::LOOP), Some(Errno::NXIO)].contains(&Errno::from_io_error(&error)) => {}
        Err(error) => return Err(error),
    }
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(None),
    }
}

fn hash_of(file: &mut std::fs::File) -> std::io::Result<(u64, Sha256Hex)> {
    let (mut hash, mut length) = (Sha256Hex::default(), 0_u64);
    let mut buffer = vec![0_u8; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((length, hash)),
            count => {
                hash.update(&buffer[..count]);
                length += count as u64;
            }
        }
    }
}

fn is_at(file: &std::fs::File, path: &Utf8Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs_err::metadata(path)) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

fn broken(path: &Utf8Path, cause: &std::io::Error) -> FetchError {
    let cause = std::io::Error::new(cause.kind(), format!("`{path}`: {cause}"));
    StoreError::File { purpose: "cannot write the cache", cause }.into()
}
