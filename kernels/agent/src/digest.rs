//! `agent digest`: the content digest of a file system, walked from the inside.
//!
//! One thread lists, the others look at what was listed; the order of the paths alone decides the result. A path that
//! cannot be read is an error: a digest of a part is none.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::num::NonZero;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::sha256::Sha256;
use super::xattr;
use envforge_protocol::content::{ContentEntry, ContentKind, is_left_out, record};

/// More threads than this wait for the disk, not for each other.
const MOST_THREADS: usize = 8;
const BUFFER: usize = 1 << 20;

/// The records of everything below `root` that counts, in order: the digest is their SHA-256.
pub(crate) fn records(root: &Path) -> Result<Vec<u8>> {
    let mut paths = Vec::new();
    list(root, &mut Vec::new(), &mut paths)?;
    paths.sort_unstable();
    Ok(looked_at(root, &paths)?.concat())
}

/// The SHA-256 of some bytes, hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hash.finish()
}

/// Every path below a folder that counts, relative to the root. `inside` is the folder, empty for the root itself.
fn list(root: &Path, inside: &mut Vec<u8>, paths: &mut Vec<Vec<u8>>) -> Result<()> {
    let folder = absolute(root, inside);
    for entry in std::fs::read_dir(&folder).map_err(|error| at(&folder, &error))? {
        let entry = entry.map_err(|error| at(&folder, &error))?;
        let before = inside.len();
        if before > 0 {
            inside.push(b'/');
        }
        inside.extend_from_slice(&entry.file_name().into_vec());
        if !is_left_out(inside) {
            paths.push(inside.clone());
            if entry.file_type().map_err(|error| at(&folder, &error))?.is_dir() {
                list(root, inside, paths)?;
            }
        }
        inside.truncate(before);
    }
    Ok(())
}

/// The record of each path, by as many threads as there are processors.
fn looked_at(root: &Path, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let threads = std::thread::available_parallelism().map_or(2, NonZero::get).min(MOST_THREADS);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); paths.len()]));
    let work = || -> Result<()> {
        let (mut names, mut buffer) = (Vec::new(), vec![0; BUFFER]);
        while let Some((number, path)) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            paths.get(number).map(|path| (number, path))
        } {
            let whole = absolute(root, path);
            let entry = entry(&whole, &mut names, &mut buffer).map_err(|error| at(&whole, &error))?;
            let record = record(path, &entry);
            found.lock().map_err(|_| Error::other("a thread panicked"))?[number] = record;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(Error::other("a thread panicked")))
        };
        running.into_iter().map(ended).collect::<Result<Vec<()>>>()
    })?;
    found.into_inner().map_err(|_| Error::other("a thread panicked"))
}

fn entry(path: &Path, names: &mut Vec<u8>, buffer: &mut [u8]) -> Result<ContentEntry> {
    let data = std::fs::symlink_metadata(path)?;
    let xattrs = xattr::counted(path, names)?;
    let kind = kind(path, &data, buffer)?;
    let (uid, gid) = (data.uid().into(), data.gid().into());
    Ok(ContentEntry { kind, mode: data.mode() & 0o7777, uid, gid, xattrs })
}

fn kind(path: &Path, data: &Metadata, buffer: &mut [u8]) -> Result<ContentKind> {
    let kind = data.file_type();
    let (major, minor) = device(data.rdev());
    Ok(if kind.is_file() {
        let (size, sha256) = file(path, buffer)?;
        ContentKind::File { size, sha256 }
    } else if kind.is_dir() {
        ContentKind::Directory
    } else if kind.is_symlink() {
        ContentKind::Symlink { target: std::fs::read_link(path)?.into_os_string().into_vec() }
    } else if kind.is_char_device() {
        ContentKind::Character(major, minor)
    } else if kind.is_block_device() {
        ContentKind::Block(major, minor)
    } else if kind.is_fifo() {
        ContentKind::Pipe
    } else {
        return Err(Error::new(ErrorKind::InvalidData, "unsupported file type: socket"));
    })
}

/// The SHA-256 of a regular file, hex; anything else is an error and not opened: to open a pipe waits.
pub(crate) fn sha256_of(path: &Path) -> Result<String> {
    let data = std::fs::metadata(path)?;
    if !data.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a file"));
    }
    // Some of the kernel's files never end, and say that they are empty.
    hashed(File::open(path)?.take(data.len()), &mut vec![0; BUFFER]).map(|(_, hash)| hash)
}

fn file(path: &Path, buffer: &mut [u8]) -> Result<(u64, String)> {
    hashed(File::open(path)?, buffer)
}

fn hashed(mut file: impl Read, buffer: &mut [u8]) -> Result<(u64, String)> {
    let (mut size, mut hash) = (0, Sha256::new());
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok((size, hash.finish())),
            Ok(count) => {
                size += count as u64;
                hash.update(&buffer[..count]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Major and minor of a device number, as Linux packs them.
fn device(number: u64) -> (u32, u32) {
    let major = ((number >> 32) & 0xffff_f000) | ((number >> 8) & 0xfff);
    let minor = ((number >> 12) & 0xffff_ff00) | (number & 0xff);
    (u32::try_from(major).unwrap_or_default(), u32::try_from(minor).unwrap_or_default())
}

fn absolute(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}

fn at(path: &Path, error: &Error) -> Error {
    Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(root: &Path) -> String {
        sha256(&records(root).expect("records"))
    }

    /// A tree with files that count and files that do not.
    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        for name in ["a", "etc", "tmp", "proc", "opt/envforge"] {
            std::fs::create_dir_all(root.join(name)).expect("directory");
        }
        for (name, content) in [("a/x", "1"), ("etc/hosts", "mine"), ("etc/motd", ""), ("tmp/x", "3")] {
            std::fs::write(root.join(name), content).expect("file");
        }
        directory
    }

    #[test]
    fn published_test_vector_has_its_digest() {
        let entries = envforge_protocol::content::test_vector();
        let records: Vec<u8> = entries.iter().flat_map(|(path, entry)| record(path, entry)).collect();
        assert_eq!(sha256(&records), envforge_protocol::content::TEST_VECTOR);
    }

    #[test]
    fn records_parse_back() {
        let directory = tree();
        let records = records(directory.path()).expect("records");
        let entries = envforge_protocol::content::parse_records(&records).expect("records");
        let paths: Vec<_> = entries.keys().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        assert_eq!(paths, ["a", "a/x", "etc", "etc/motd", "opt", "tmp"]);
    }

    #[test]
    fn left_out_paths_do_not_count() {
        let folder = tree();
        let root = folder.path();
        let before = digest(root);
        for name in ["tmp/y", "proc/y", "etc/hosts", "etc/hostname", "opt/envforge/agent", ".dockerenv"] {
            std::fs::write(root.join(name), "changed").expect("file");
        }
        assert_eq!(digest(root), before);
        std::fs::write(root.join("opt/envforger"), "").expect("file");
        assert_ne!(digest(root), before);
    }

    #[test]
    fn hash_of_a_file_is_that_of_its_bytes_and_a_device_is_refused() {
        let folder = tree();
        assert_eq!(sha256_of(&folder.path().join("a/x")).expect("a file"), sha256(b"1"));
        let link = folder.path().join("endless");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        assert!(sha256_of(&link).expect_err("a device").to_string().contains("not a file"));
        assert!(sha256_of(folder.path()).is_err());
    }

    #[test]
    fn error_names_a_socket() {
        let folder = tree();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("sock")).expect("socket");
        let error = records(folder.path()).expect_err("refused").to_string();
        assert!(error.contains("/sock`: unsupported file type"), "{error}");
    }

    #[test]
    fn device_numbers_unpack() {
        assert_eq!(device(0x0103), (1, 3));
        assert_eq!(device(0x1001_0301), (259, 65537));
    }
}
