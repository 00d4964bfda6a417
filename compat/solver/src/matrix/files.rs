//! A matrix from a folder of files, and its compact form.
#![expect(clippy::disallowed_methods, reason = "the one place that reads files")]

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::parse::{CompatError, parse};
use super::tables::Matrix;

/// Why a folder gives no matrix.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The folder or a file in it cannot be read.
    #[error("cannot read `{}`: {cause}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// No file of the folder ends with `.toml`.
    #[error("no `.toml` file in `{}`", .0.display())]
    Empty(PathBuf),
    /// A file is faulty.
    #[error(transparent)]
    Faulty(#[from] CompatError),
}

impl Matrix {
    /// Reads and lints the matrix in the `.toml` files of a folder, not of folders in it. Errors: what cannot be read, no such file,
    /// every fault with file and row.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, FolderError> {
        let folder = folder.as_ref();
        let failed = |path: &Path, cause| FolderError::Read { path: path.to_owned(), cause };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|cause| failed(folder, cause))? {
            let path = entry.map_err(|cause| failed(folder, cause))?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let text = std::fs::read_to_string(&path).map_err(|cause| failed(&path, cause))?;
                files.push((name, text));
            }
        }
        if files.is_empty() {
            return Err(FolderError::Empty(folder.to_owned()));
        }
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Ok(parse(&files)?)
    }

    /// Returns the compact form, for [`Matrix::from_postcard`] of the same version of this crate.
    pub fn to_postcard(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    /// Reads the compact form, without lint. Bytes of another version are an error or a wrong matrix: keep the version beside them.
    pub fn from_postcard(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}

/// The repository's own matrix, read once.
#[cfg(test)]
impl Matrix {
    pub(crate) fn embedded() -> &'static Self {
        static MATRIX: std::sync::LazyLock<Matrix> = std::sync::LazyLock::new(|| {
            Matrix::read(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("a sound matrix")
        });
        &MATRIX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_without_files_and_a_missing_one_are_told_apart() {
        let without = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        assert!(matches!(Matrix::read(without), Err(FolderError::Empty(_))));
        let error = Matrix::read("no/such/folder").expect_err("missing").to_string();
        assert!(error.starts_with("cannot read `no/such/folder`: "), "{error}");
    }

    #[test]
    fn compact_form_is_the_matrix() {
        let matrix = Matrix::embedded();
        let bytes = matrix.to_postcard().expect("bytes");
        assert_eq!(&Matrix::from_postcard(&bytes).expect("a matrix"), matrix);
        assert!(Matrix::from_postcard(&bytes[..bytes.len() / 2]).is_err());
    }
}
