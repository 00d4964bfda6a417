//! The files of a vendor directory: found by hash, read and compared.
#![expect(clippy::disallowed_methods, reason = "edge: reads and hashes files")]

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::error::StoreError;
use super::limits::LARGEST_LOCK;
use crate::failure::{Exit, Failure};
use crate::model::bounded::read_bounded;
use crate::model::lock::vendor_files::{VendorFile, place};
use crate::model::lock::{Lock, LockError};
use crate::model::sha256::{Sha256Hex, is_sha256_hex};

/// The directory of locks, by their hash.
pub(crate) const LOCKS: &str = "locks";

/// The content does not match the name.
pub(crate) const DAMAGED: &str = "damaged";
/// There is nothing of that name.
pub(crate) const MISSING: &str = "missing";

/// Why a vendor directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VendorError {
    /// The directory holds no lock file.
    #[error("`{folder}` is not a vendor directory: no lock file found")]
    NotVendored {
        /// The directory.
        folder: String,
    },
    /// Files of the directory are missing or damaged.
    #[error("vendor directory `{folder}` is incomplete or damaged:{}", list(wrong))]
    Damaged {
        /// The directory.
        folder: String,
        /// The problems, one line each.
        wrong: Vec<String>,
    },
    /// Finished layers of the directory are missing or damaged.
    #[error("vendor directory `{folder}` is incomplete or damaged:{}", list(wrong))]
    Layers {
        /// The directory.
        folder: String,
        /// The problems, one line each.
        wrong: Vec<String>,
    },
    /// The archive of a base image would set other tags than its own.
    #[error("`{file}` is not the archive of a base: expected one image with the tag `{tag}`, found: {found}")]
    Archive {
        /// The archive.
        file: String,
        /// The tag of the base.
        tag: String,
        /// What is in it.
        found: String,
    },
    /// A lock file of the directory is of a newer envforge.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file of the directory cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the directory cannot be read; the cause names it.
    #[error("cannot read the vendor directory: {0}")]
    Unreadable(std::io::Error),
}

pub(crate) fn list(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |all, line| all + "\n  - " + line)
}

impl Failure for VendorError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotVendored { .. } | Self::Damaged { .. } | Self::Layers { .. } | Self::Archive { .. } => {
                Exit::Usage
            }
            Self::Store(error) => error.exit(),
            Self::Lock(error) => error.exit(),
            Self::Unreadable(error) => error.exit(),
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NotVendored { .. } => "fill it online: envforge vendor DIR",
            Self::Damaged { .. } => {
                "run `envforge vendor DIR` online to restore missing files (delete damaged files first)"
            }
            Self::Layers { folder, .. } => {
                return vec![format!(
                    "run `envforge vendor {folder} --layers` online to restore layers (delete damaged files first)"
                )];
            }
            Self::Store(error) => return error.hints(),
            Self::Archive { .. } => "delete it and run `envforge vendor DIR` online",
            Self::Lock(error) => return error.hints(),
            Self::Unreadable(error) => return error.hints(),
        };
        vec![hint.to_owned()]
    }
}

/// A file that differs from the locks of the directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VendorProblem {
    /// `damaged`, `missing`, `gone`, `yanked`, `changed`.
    pub(crate) what: &'static str,
    pub(crate) file: String,
    /// The path of a damaged file in the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

impl VendorProblem {
    /// The problem of the file with that hash: `damaged` or `missing`.
    pub(crate) fn of(what: &'static str, file: String, sha256: &str) -> Self {
        Self { what, file, path: (what == DAMAGED).then(|| place(sha256)) }
    }

    pub(crate) fn text(&self) -> String {
        let place = self.path.as_ref().map(|path| format!(" ({path})")).unwrap_or_default();
        format!("{} is {}{place}", self.file, self.what)
    }
}

/// Verifies a file of the directory by its hash.
pub(crate) fn verified(folder: &Utf8Path, item: VendorFile<'_>) -> Result<Utf8PathBuf, VendorProblem> {
    let sha256 = item.sha256();
    verify_file(folder, sha256).map_err(|what| VendorProblem::of(what, item.file().to_owned(), sha256))
}

/// Returns the path of the file with that hash; the error is `missing` or `damaged`.
pub(crate) fn verify_file(folder: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, &'static str> {
    let path = folder.join(place(sha256));
    // A device or pipe may never end, or never begin.
    if !fs_err::metadata(&path).map_err(|_| MISSING)?.is_file() {
        return Err(DAMAGED);
    }
    let mut file = fs_err::File::open(&path).map_err(|_| MISSING)?;
    let found = hash(&mut file).map_err(|_| DAMAGED)?;
    if found == sha256 { Ok(path) } else { Err(DAMAGED) }
}

/// The SHA-256 of a whole file, hex.
pub(crate) fn hash(file: &mut fs_err::File) -> std::io::Result<String> {
    let mut hash = Sha256Hex::default();
    std::io::copy(file, &mut hash)?;
    Ok(hash.finish())
}

/// Returns the locks of a directory, and those that do not match their names. Other files are ignored.
pub(crate) fn locks_of(folder: &Utf8Path) -> Result<(Vec<Lock>, Vec<VendorProblem>), VendorError> {
    let (mut all, mut damaged) = (Vec::new(), Vec::new());
    for entry in fs_err::read_dir(folder.join(LOCKS)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(hash) = name.strip_suffix(".lock").filter(|hash| is_sha256_hex(hash)) else { continue };
        let shown = entry.path().display().to_string();
        let is_file = fs_err::metadata(entry.path()).is_ok_and(|found| found.is_file());
        let read = || read_bounded(fs_err::File::open(entry.path())?, LARGEST_LOCK);
        let bytes = match if is_file { read() } else { Ok(Vec::new()) } {
            // No lock is as large: it is reported as damaged.
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Vec::new(),
            bytes => bytes.map_err(VendorError::Unreadable)?,
        };
        match Lock::from_bytes(&shown, &bytes) {
            Ok(lock) if lock.hash() == hash => all.push(lock),
            Err(error) if error.is_of_newer() => return Err(error.into()),
            _ => {
                let path = format!("{LOCKS}/{name}");
                let file = "a lock".to_owned();
                damaged.push(VendorProblem { what: DAMAGED, file, path: Some(path) });
            }
        }
    }
    damaged.sort_by(|one, other| one.path.cmp(&other.path));
    Ok((all, damaged))
}
