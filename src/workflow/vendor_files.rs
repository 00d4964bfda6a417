//! The files of a vendor directory: found by hash, read and compared.
#![expect(clippy::disallowed_methods, reason = "edge: reads and hashes files")]

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::model::lock::Lock;
use crate::model::lock::vendor_files::{VendorFile, place};
use crate::model::sha256::{Sha256Hex, is_sha256_hex};
use crate::workflow::error::CommandError;

/// Locks lie here, by their hash.
pub(crate) const LOCKS: &str = "locks";

/// Not what its name says.
pub(crate) const DAMAGED: &str = "damaged";

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
}

pub(crate) fn list(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |all, line| all + "\n  - " + line)
}

impl Failure for VendorError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::NotVendored { .. } => "fill it online: envforge vendor DIR".to_owned(),
            Self::Damaged { .. } => {
                "run `envforge vendor DIR` online to restore missing files (delete damaged files first)"
                    .to_owned()
            }
        }]
    }
}

/// Something that is not as the locks of the folder say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct VendorProblem {
    /// `damaged`, `missing`, `gone`, `yanked`, `changed`.
    pub(crate) what: &'static str,
    pub(crate) file: String,
    /// Where a damaged file lies in the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

impl VendorProblem {
    /// What is wrong with the file of that hash: `damaged` or `missing`.
    pub(crate) fn of(what: &'static str, file: String, sha256: &str) -> Self {
        Self { what, file, path: (what == DAMAGED).then(|| place(sha256)) }
    }

    pub(crate) fn text(&self) -> String {
        let place = self.path.as_ref().map(|path| format!(" ({path})")).unwrap_or_default();
        format!("{} is {}{place}", self.file, self.what)
    }
}

/// Reads a file of the folder and compares its hash with its name.
pub(crate) fn verified(folder: &Utf8Path, item: VendorFile<'_>) -> Result<Utf8PathBuf, VendorProblem> {
    let sha256 = item.sha256();
    verify_file(folder, sha256).map_err(|what| VendorProblem::of(what, item.file().to_owned(), sha256))
}

/// Where the file of that hash lies in the folder; an error says that it is `missing` or `damaged`.
pub(crate) fn verify_file(folder: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, &'static str> {
    let path = folder.join(place(sha256));
    let mut file = fs_err::File::open(&path).map_err(|_| "missing")?;
    let found = hash(&mut file).map_err(|_| DAMAGED)?;
    if found == sha256 { Ok(path) } else { Err(DAMAGED) }
}

/// The SHA-256 of a whole file, hex.
pub(crate) fn hash(file: &mut fs_err::File) -> std::io::Result<String> {
    let mut hash = Sha256Hex::default();
    std::io::copy(file, &mut hash)?;
    Ok(hash.finish())
}

/// The locks of a folder, and those that are not what their names say. Other files beside them are no locks.
pub(crate) fn locks_of(folder: &Utf8Path) -> Result<(Vec<Lock>, Vec<VendorProblem>), CommandError> {
    let (mut all, mut damaged) = (Vec::new(), Vec::new());
    for entry in fs_err::read_dir(folder.join(LOCKS)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(hash) = name.strip_suffix(".lock").filter(|hash| is_sha256_hex(hash)) else { continue };
        let shown = entry.path().display().to_string();
        match Lock::from_bytes(&shown, &fs_err::read(entry.path())?) {
            Ok(lock) if lock.matches_hash(hash) => all.push(lock),
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
