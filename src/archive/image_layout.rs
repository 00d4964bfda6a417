//! An OCI image layout in the making: a directory, or a tar of one, that exists complete or not at all.
#![expect(clippy::disallowed_methods, reason = "edge: writes the layout")]

use std::io::{self, BufWriter, Write};

use camino::{Utf8Path, Utf8PathBuf};

use crate::model::image::manifest::{BLOBS, BlobDescriptor, LAYOUT_FILE};
use crate::model::sha256::HashingWriter;

/// A layout that is being written next to its target. Dropped unfinished, it leaves nothing.
pub(crate) struct LayoutWriter {
    staged: tempfile::TempDir,
    target: Utf8PathBuf,
}

impl LayoutWriter {
    /// Starts a layout that becomes `target`: a tar if its name ends in `.tar`, else a directory, which may exist empty.
    ///
    /// An error of kind `AlreadyExists` means that the target holds something.
    pub(crate) fn create(target: &Utf8Path) -> io::Result<Self> {
        let is_free = match fs_err::read_dir(target) {
            Ok(mut entries) => entries.next().is_none() && !is_tar(target),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_free {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let parent = parent_of(target);
        fs_err::create_dir_all(parent)?;
        let staged = tempfile::Builder::new().prefix(".envforge-layout-").tempdir_in(parent)?;
        fs_err::create_dir_all(staged.path().join(BLOBS))?;
        Ok(Self { staged, target: target.to_owned() })
    }

    /// The directory that takes blobs.
    pub(crate) fn blobs(&self) -> BlobDirectory {
        let path = self.staged.path().join(BLOBS);
        BlobDirectory(Utf8PathBuf::from_path_buf(path).expect("the target's path is UTF-8"))
    }

    /// Completes the layout with its index and puts it in place.
    pub(crate) fn finish(self, index: &[u8]) -> io::Result<()> {
        let staged = Utf8Path::from_path(self.staged.path()).expect("the target's path is UTF-8");
        fs_err::write(staged.join("oci-layout"), LAYOUT_FILE)?;
        fs_err::write(staged.join("index.json"), index)?;
        if is_tar(&self.target) {
            let parent = staged.parent().expect("it has a name");
            let file = tempfile::Builder::new().prefix(".envforge-layout-").tempfile_in(parent)?;
            write_tar(staged, file.as_file())?;
            set_mode(file.path(), 0o644)?;
            file.persist_noclobber(&self.target).map_err(|error| error.error)?;
            return Ok(());
        }
        set_mode(self.staged.path(), 0o755)?;
        // A rename replaces an empty directory, never one that holds something.
        fs_err::rename(staged, &self.target)?;
        drop(self.staged.keep());
        Ok(())
    }
}

/// The directory of blobs of a layout in the making.
#[derive(Debug, Clone)]
pub(crate) struct BlobDirectory(Utf8PathBuf);

impl BlobDirectory {
    /// Writes a blob under its digest and returns its descriptor.
    pub(crate) fn add(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<BlobDescriptor> {
        let file = tempfile::NamedTempFile::new_in(&self.0)?;
        let mut out = HashingWriter::new(BufWriter::with_capacity(1 << 20, file.as_file()));
        write(&mut out)?;
        out.flush()?;
        let digest = format!("sha256:{}", out.finish());
        let size = file.as_file().metadata()?.len();
        set_mode(file.path(), 0o644)?;
        let name = digest.trim_start_matches("sha256:");
        file.persist(self.0.join(name)).map_err(|error| error.error)?;
        Ok(BlobDescriptor { digest: digest.parse().expect("a hash of ours is a digest"), size })
    }
}

/// The directory that holds a target.
pub(crate) fn parent_of(target: &Utf8Path) -> &Utf8Path {
    target.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."))
}

fn is_tar(target: &Utf8Path) -> bool {
    target.extension() == Some("tar")
}

/// Writes the files of a layout as a tar, always in the same order and with the same owner and times, and removes each blob that
/// was written: there is room for one copy of them.
fn write_tar(layout: &Utf8Path, out: &std::fs::File) -> io::Result<()> {
    let mut tar = tar::Builder::new(BufWriter::with_capacity(1 << 20, out));
    for folder in ["blobs/", "blobs/sha256/"] {
        let mut header = header(tar::EntryType::Directory, 0o755, 0);
        tar.append_data(&mut header, folder, io::empty())?;
    }
    let mut names = Vec::new();
    for entry in fs_err::read_dir(layout.join(BLOBS))? {
        names.push(format!("{BLOBS}/{}", entry?.file_name().to_string_lossy()));
    }
    names.sort();
    names.extend(["index.json", "oci-layout"].map(str::to_owned));
    for name in names {
        let path = layout.join(&name);
        let file = fs_err::File::open(&path)?;
        let mut header = header(tar::EntryType::Regular, 0o644, file.metadata()?.len());
        tar.append_data(&mut header, &name, file)?;
        fs_err::remove_file(&path)?;
    }
    tar.into_inner()?.flush()
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header
}

fn set_mode(path: &std::path::Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sha256::sha256_hex;

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
        fn write(&self, name: &str) -> io::Result<BlobDescriptor> {
            let layout = LayoutWriter::create(&self.root.join(name))?;
            let blob = layout.blobs().add(|out| out.write_all(b"layer"))?;
            layout.finish(b"{}")?;
            Ok(blob)
        }

        fn names(&self) -> Vec<String> {
            let names = fs_err::read_dir(&self.root).expect("readable");
            let mut names: Vec<_> = names
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn directory_has_blobs_under_their_digests() {
        let f = fixture();
        let blob = f.write("image").expect("written");
        assert_eq!((blob.digest.to_string(), blob.size), (format!("sha256:{}", sha256_hex(b"layer")), 5));
        let file = f.root.join("image/blobs/sha256").join(sha256_hex(b"layer"));
        assert_eq!(fs_err::read(file).expect("a blob"), b"layer");
        assert_eq!(fs_err::read_to_string(f.root.join("image/oci-layout")).expect("there"), LAYOUT_FILE);
        assert_eq!(f.names(), ["image"]);
    }

    #[test]
    fn tar_is_the_same_each_time() {
        let f = fixture();
        f.write("a.tar").expect("written");
        f.write("b.tar").expect("written");
        let bytes = |name: &str| fs_err::read(f.root.join(name)).expect("readable");
        assert_eq!(bytes("a.tar"), bytes("b.tar"));
        let mut archive = tar::Archive::new(fs_err::File::open(f.root.join("a.tar")).expect("there"));
        let names = archive
            .entries()
            .expect("a tar")
            .map(|entry| entry.expect("an entry").path().expect("a path").to_string_lossy().into_owned());
        let blob = format!("{BLOBS}/{}", sha256_hex(b"layer"));
        assert_eq!(names.collect::<Vec<_>>(), ["blobs/", "blobs/sha256/", &blob, "index.json", "oci-layout"]);
        assert_eq!(f.names(), ["a.tar", "b.tar"]);
    }

    #[test]
    fn existing_content_is_kept() {
        let f = fixture();
        fs_err::create_dir_all(f.root.join("full/x")).expect("made");
        fs_err::write(f.root.join("file.tar"), b"x").expect("made");
        fs_err::create_dir(f.root.join("folder.tar")).expect("made");
        fs_err::create_dir(f.root.join("empty")).expect("made");
        for name in ["full", "file.tar", "folder.tar"] {
            let error = f.write(name).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        f.write("empty").expect("written");
        assert_eq!(f.names(), ["empty", "file.tar", "folder.tar", "full"]);
    }

    #[test]
    fn failed_blob_and_unfinished_layout_leave_nothing() {
        let f = fixture();
        let layout = LayoutWriter::create(&f.root.join("image")).expect("started");
        let error = layout.blobs().add(|_| Err(io::Error::other("gone"))).expect_err("failed");
        assert_eq!(error.to_string(), "gone");
        drop(layout);
        assert_eq!(f.names(), [""; 0]);
    }
}
