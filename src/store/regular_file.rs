//! Files that a project or a user names: opened only if they are regular ones, so that no read waits for ever or has an effect.

use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileTypeExt as _;

use camino::Utf8Path;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{OFlags, fstatfs};

use crate::failure::reason;
use crate::model::bounded::{read_bounded, read_text_bounded, too_large};

/// File systems whose files the kernel makes while they are read: proc, sysfs, debugfs, tracefs. A read may wait or take
/// something away.
const OF_KERNEL: [i64; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];

/// Opens a regular file, through links. Anything else is an error at once: a pipe or a device may never end, and opening it may
/// do something.
pub(crate) fn open_regular(path: &Utf8Path) -> std::io::Result<fs_err::File> {
    refuse_special(path, &found(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("flags of open are small");
    let file = fs_err::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // The name may stand for another file by now.
    refuse_special(path, &file.metadata()?)?;
    let found = fstatfs(file.file())?;
    if OF_KERNEL.contains(&found.f_type) {
        return Err(refused(path, "a file of the kernel"));
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
pub(crate) fn read_regular(path: &Utf8Path, most: u64) -> std::io::Result<Vec<u8>> {
    read_whole(path, open_regular(path)?, most)
}

/// The same, if the opened file lies at that path without links; else an error: it is another one by now.
pub(crate) fn read_regular_at(path: &Utf8Path, most: u64) -> std::io::Result<Vec<u8>> {
    match open_at(path)? {
        Some(file) => read_whole(path, file, most),
        None => Err(Error::new(ErrorKind::InvalidInput, format!("`{path}` became another file"))),
    }
}

fn read_whole(path: &Utf8Path, file: fs_err::File, most: u64) -> std::io::Result<Vec<u8>> {
    let large = |error: Error| match error.kind() {
        ErrorKind::FileTooLarge => Error::new(error.kind(), format!("`{path}`: {error}")),
        _ => error,
    };
    if file.metadata()?.len() > most {
        return Err(large(too_large(most)));
    }
    read_bounded(file, most).map_err(large)
}

/// The same for a text.
pub(crate) fn read_regular_text(path: &Utf8Path, most: u64) -> std::io::Result<String> {
    let not_text = |_| Error::new(ErrorKind::InvalidData, format!("`{path}` is not UTF-8"));
    String::from_utf8(read_regular(path, most)?).map_err(not_text)
}

/// The same for a text, if the opened file lies at that path without links; `None`: it is another one by now.
pub(crate) fn read_text_at(path: &Utf8Path, most: u64) -> std::io::Result<Option<String>> {
    open_at(path)?.map(|file| read_text_bounded(file, most)).transpose()
}

/// Opens a regular file that lies at that path without links; `None`: it is another one.
fn open_at(path: &Utf8Path) -> std::io::Result<Option<fs_err::File>> {
    let file = open_regular(path)?;
    // The name may lead elsewhere before and after: what was opened decides.
    let place = fs_err::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok((place == path.as_std_path()).then_some(file))
}

/// What lies at a path, through links.
fn found(path: &Utf8Path) -> std::io::Result<std::fs::Metadata> {
    std::fs::metadata(path).map_err(|error| Error::new(error.kind(), format!("`{path}`: {}", reason(&error))))
}

/// The same as [`read_typed_text`], for a file that is read once more later. `None`: it is a pipe, which can be read once.
pub(crate) fn read_typed_text_early(path: &Utf8Path, most: u64) -> std::io::Result<Option<String>> {
    if found(path)?.file_type().is_fifo() { Ok(None) } else { read_regular_text(path, most).map(Some) }
}

/// The same for a file that a person typed, which may be a pipe as well (`<(command)` of a shell). Its writer may be slow: who drops
/// the future waits no longer.
pub(crate) async fn read_typed_text(path: &Utf8Path, most: u64) -> std::io::Result<String> {
    if !found(path)?.file_type().is_fifo() {
        return read_regular_text(path, most);
    }
    let pipe = path.to_owned();
    let read = move || read_text_bounded(fs_err::OpenOptions::new().read(true).open(pipe)?, most);
    let ended = tokio::task::spawn_blocking(read).await.map_err(Error::other)?;
    ended.map_err(|error| Error::new(error.kind(), format!("`{path}`: {error}")))
}

fn refuse_special(path: &Utf8Path, found: &std::fs::Metadata) -> std::io::Result<()> {
    let kind = found.file_type();
    match kind {
        _ if kind.is_file() => Ok(()),
        _ if kind.is_dir() => Err(Error::new(ErrorKind::IsADirectory, format!("`{path}` is a directory"))),
        _ if kind.is_fifo() => Err(refused(path, "a pipe")),
        _ if kind.is_socket() => Err(refused(path, "a socket")),
        _ => Err(refused(path, "a device")),
    }
}

fn refused(path: &Utf8Path, kind: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("`{path}` is not a regular file: it is {kind}"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes files")]
mod tests {
    use std::io::Write as _;

    use camino::Utf8PathBuf;

    use super::*;

    fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        (folder, path)
    }

    #[test]
    fn regular_file_is_read_up_to_its_bound_through_links() {
        let (_folder, path) = folder();
        fs_err::write(path.join("a"), "12345").expect("ours");
        std::os::unix::fs::symlink("a", path.join("b")).expect("ours");
        for name in ["a", "b"] {
            assert_eq!(read_regular_text(&path.join(name), 5).expect("fits"), "12345");
            let error = read_regular(&path.join(name), 4).expect_err("too large");
            assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
        }
        let error = read_regular(&path.join("gone"), 4).expect_err("absent");
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }

    #[test]
    fn file_behind_a_link_is_another_one_than_that_of_its_path() {
        let (_folder, path) = folder();
        let path = path.canonicalize_utf8().expect("ours");
        fs_err::create_dir(path.join("d")).expect("ours");
        fs_err::write(path.join("d/a"), "A=1").expect("ours");
        std::os::unix::fs::symlink("a", path.join("d/b")).expect("ours");
        std::os::unix::fs::symlink("d", path.join("e")).expect("ours");
        assert_eq!(read_text_at(&path.join("d/a"), 9).expect("read").as_deref(), Some("A=1"));
        assert_eq!(read_regular_at(&path.join("d/a"), 9).expect("read"), b"A=1");
        for link in ["d/b", "e/a"] {
            assert_eq!(read_text_at(&path.join(link), 9).expect("read"), None, "{link}");
            let error = read_regular_at(&path.join(link), 9).expect_err("another file");
            assert!(error.to_string().ends_with("became another file"), "{error}");
        }
    }

    #[tokio::test]
    async fn typed_file_may_be_a_pipe_which_is_bounded_and_not_waited_for() {
        let (_folder, path) = folder();
        let pipe = path.join("pipe");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, pipe.as_std_path(), fifo, 0o600.into(), 0).expect("ours");
        let write = |bytes: &'static str| {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                fs_err::OpenOptions::new().write(true).open(pipe)?.write_all(bytes.as_bytes())
            })
        };
        let writer = write("A=1\n");
        assert_eq!(read_typed_text(&pipe, 4).await.expect("read"), "A=1\n");
        writer.join().expect("ours").expect("written");
        let writer = write("A=12\n");
        let error = read_typed_text(&pipe, 4).await.expect_err("too large").to_string();
        assert!(error.contains(pipe.as_str()), "{error}");
        drop(writer.join());

        let waits = read_typed_text(&pipe, 4);
        let patience = std::time::Duration::from_millis(50);
        tokio::time::timeout(patience, waits).await.expect_err("nobody writes");
        // The thread that still waits for a writer ends.
        drop(fs_err::OpenOptions::new().write(true).open(&pipe));
        let error = read_typed_text(Utf8Path::new("/dev/zero"), 4).await.expect_err("a device");
        assert!(error.to_string().contains("is not a regular file"), "{error}");
    }

    /// None of them may be waited for: this test would not end.
    #[test]
    fn whatever_may_never_end_is_refused_at_once() {
        let (_folder, path) = folder();
        let pipe = path.join("pipe");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, pipe.as_std_path(), fifo, 0o600.into(), 0).expect("ours");
        let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).expect("ours");
        let files = [
            pipe.as_str(),
            path.join("socket").as_str(),
            "/dev/zero",
            "/dev/tty",
            "/proc/kmsg",
            "/proc/version",
        ]
        .map(str::to_owned);
        for (number, file) in files.iter().enumerate() {
            let link = path.join(number.to_string());
            std::os::unix::fs::symlink(file, &link).expect("ours");
            for path in [Utf8Path::new(file), &link] {
                let error = read_regular(path, 1 << 20).expect_err("refused");
                // Without the rights the kernel refuses its files first.
                let is_named = error.to_string().contains("is not a regular file");
                assert!(is_named || error.kind() == ErrorKind::PermissionDenied, "{error}");
            }
        }
    }
}
