//! A file in the making, next to its place: it is there whole or not at all.
#![expect(clippy::disallowed_methods, reason = "edge: writes the file")]

use std::fs::{File, Permissions};
use std::io::Result;
use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;

/// A file without its name. Dropped unfinished, it leaves nothing.
pub(crate) struct StagedFile(tempfile::NamedTempFile);

impl StagedFile {
    /// Starts a file in that directory, which is made if it is absent.
    pub(crate) fn create(folder: &Utf8Path) -> Result<Self> {
        fs_err::create_dir_all(folder)?;
        Ok(Self(tempfile::Builder::new().prefix(".envforge-file-").tempfile_in(folder)?))
    }

    pub(crate) fn file(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// Puts the file in its place, readable for everybody. A file that is there is an error of kind `AlreadyExists`, or replaced.
    pub(crate) fn put(self, target: &Utf8Path, replace: bool) -> Result<()> {
        self.0.as_file().set_permissions(Permissions::from_mode(0o644))?;
        let put = if replace { self.0.persist(target) } else { self.0.persist_noclobber(target) };
        put.map(drop).map_err(|error| error.error)
    }
}
