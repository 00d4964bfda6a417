//! A file in the making, next to its place: it is there whole or not at all.
#![expect(clippy::disallowed_methods, reason = "edge: writes the file")]

use std::fs::{File, Permissions};
use std::io::Result;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use camino::Utf8Path;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use tempfile::{Builder, NamedTempFile};

/// What the name of a file in the making begins with, where it has one.
pub(crate) const STAGED: &str = ".envforge-file-";

/// Who may read the file, as far as the user's umask allows: other users of a cluster start it.
const READABLE: u32 = 0o666;

/// A file in the making. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub(crate) enum StagedFile {
    /// One without a name: a process that is killed leaves nothing, either.
    Unnamed(File),
    /// One with a name, on file systems that have no other: NFS, Lustre.
    Named(NamedTempFile),
}

impl StagedFile {
    /// Starts a file in that directory, which is made if it is absent.
    pub(crate) fn create(folder: &Utf8Path) -> Result<Self> {
        fs_err::create_dir_all(folder)?;
        match unnamed(folder) {
            Some(file) => Ok(Self::Unnamed(file)),
            None => Self::named(folder),
        }
    }

    fn named(folder: &Utf8Path) -> Result<Self> {
        let readable = Permissions::from_mode(READABLE);
        Ok(Self::Named(Builder::new().prefix(STAGED).permissions(readable).tempfile_in(folder)?))
    }

    pub(crate) fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Puts the file in its place. A file that is there is an error of kind `AlreadyExists`, or replaced.
    pub(crate) fn put(self, target: &Utf8Path, replace: bool) -> Result<()> {
        match self {
            Self::Unnamed(file) if replace => {
                // A link replaces nothing.
                let folder = target.parent().unwrap_or(Utf8Path::new("/"));
                let named = Builder::new().prefix(STAGED).make_in(folder, |path| link(&file, path))?;
                named.persist(target).map_err(|error| error.error)
            }
            Self::Unnamed(file) => link(&file, target.as_std_path()),
            Self::Named(file) => {
                let put = if replace { file.persist(target) } else { file.persist_noclobber(target) };
                put.map(drop).map_err(|error| error.error)
            }
        }
    }
}

/// A file without a name that can be given one; `None`: the file system has none, or there is no /proc.
fn unnamed(folder: &Utf8Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder.as_std_path(), flags, Mode::from_raw_mode(READABLE)).ok()?);
    Path::new(&place(&file)).exists().then_some(file)
}

/// Gives a file without a name its name.
fn link(file: &File, path: &Path) -> Result<()> {
    Ok(linkat(CWD, place(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The path of an open file. A link to the file itself would need a capability.
fn place(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write as _};

    use super::*;

    fn names(folder: &Utf8Path) -> Vec<String> {
        let entries = fs_err::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn start(folder: &Utf8Path, is_named: bool) -> StagedFile {
        let mut staged =
            if is_named { StagedFile::named(folder) } else { StagedFile::create(folder) }.expect("started");
        staged.file().write_all(b"new").expect("written");
        staged
    }

    /// With and without a name it is put in its place, whole, and what is there is kept or replaced.
    #[test]
    fn file_is_put_in_its_place_and_replaces_another_where_that_is_meant() {
        for is_named in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = Utf8Path::from_path(folder.path()).expect("UTF-8");
            let target = folder.join("a.sif");
            start(folder, is_named).put(&target, false).expect("put");
            assert_eq!(fs_err::read(&target).expect("there"), b"new");
            let mode = fs_err::metadata(&target).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o644);
            fs_err::write(&target, "old").expect("ours");
            let error = start(folder, is_named).put(&target, false).expect_err("it exists");
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs_err::read(&target).expect("there"), b"old");
            start(folder, is_named).put(&target, true).expect("replaced");
            assert_eq!(fs_err::read(&target).expect("there"), b"new");
            drop(start(folder, is_named));
            assert_eq!(names(folder), ["a.sif"]);
        }
    }

    /// A process that is killed drops nothing: what has no name is gone with it.
    #[test]
    fn file_in_the_making_has_no_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Utf8Path::from_path(folder.path()).expect("UTF-8").join("made");
        let staged = start(&folder, false);
        assert!(matches!(staged, StagedFile::Unnamed(_)), "this file system has files without a name");
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
        drop(staged);
        let named = start(&folder, true);
        assert!(names(&folder)[0].starts_with(STAGED), "{:?}", names(&folder));
        drop(named);
        assert!(names(&folder).is_empty());
    }
}
