//! The build context as a streamed tar: files are read from disk in chunks.
//!
//! Equal contexts produce equal bytes: sorted, times 0, owner root.
#![expect(clippy::disallowed_methods, reason = "reads the files of the context")]

use std::io::{self, Read, Write};

use bytes::{Buf as _, Bytes};
use futures_util::Stream;
use tokio::sync::mpsc;

use super::walk::{Item, walk};
use crate::engine::sent_file::{Comparison, Refusal};
use crate::model::image::context::{ContextContent, ContextEntry};

/// Bytes of one chunk; the channel's depth limits the memory use.
const CHUNK: usize = 256 * 1024;

/// Streams the tar of these entries. An error ends the stream, so that a partial context is never complete.
pub(super) fn stream(
    entries: &[ContextEntry],
    refusal: &Refusal,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (items, refusal) = (walk(entries), refusal.clone());
    let (sender, mut chunks) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let out = io::BufWriter::with_capacity(CHUNK, Chunks(sender.clone()));
        if let Err(error) = write(&items, out, &refusal) {
            // The receiver is gone if the build has ended.
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures_util::stream::poll_fn(move |cx| chunks.poll_recv(cx))
}

/// A writer to a channel.
struct Chunks(mpsc::Sender<io::Result<Bytes>>);

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = Ok(Bytes::copy_from_slice(bytes));
        self.0.blocking_send(chunk).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(items: &[Item], out: impl Write, refusal: &Refusal) -> io::Result<()> {
    let mut tar = tar::Builder::new(out);
    for item in items {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        let Some(entry) = &item.entry else {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            tar.append_data(&mut header, &item.path, io::empty())?;
            continue;
        };
        header.set_mode(entry.mode & 0o777);
        header.set_size(entry.size());
        match &entry.content {
            ContextContent::Bytes(bytes) => tar.append_data(&mut header, &entry.path, bytes.as_ref())?,
            ContextContent::File { path, size, sha256 } => {
                let file =
                    fs_err::File::open(path).inspect_err(|error| refusal.absent(path, sha256, error))?;
                let comparison = Comparison::new(path, sha256, refusal);
                let exact = Exactly { file, left: *size, comparison: Some(comparison), ready: Bytes::new() };
                tar.append_data(&mut header, &entry.path, exact)?;
            }
        }
    }
    tar.into_inner()?.flush()
}

/// A file with the size and hash recorded in the context.
struct Exactly {
    file: fs_err::File,
    left: u64,
    /// Until the file was compared.
    comparison: Option<Comparison>,
    ready: Bytes,
}

impl Exactly {
    /// The next piece; an empty one is the end.
    fn piece(&mut self) -> io::Result<Bytes> {
        let Some(comparison) = &mut self.comparison else { return Ok(Bytes::new()) };
        while self.left > 0 {
            let mut piece = vec![0; CHUNK];
            let length = (&mut self.file).take(self.left).read(&mut piece)?;
            if length == 0 {
                let text = format!("`{}` was truncated while sending", self.file.path().display());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            self.left -= length as u64;
            piece.truncate(length);
            if let Some(piece) = comparison.push(piece.into()) {
                return Ok(piece);
            }
        }
        let last = comparison.finish()?.unwrap_or_default();
        self.comparison = None;
        Ok(last)
    }
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() && !buffer.is_empty() {
            self.ready = self.piece()?;
        }
        let length = self.ready.len().min(buffer.len());
        self.ready.split_to(length).copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sha256::sha256_hex;
    use camino::Utf8PathBuf;
    use futures_util::StreamExt;

    async fn collect(entries: &[ContextEntry]) -> io::Result<Vec<u8>> {
        let mut chunks = std::pin::pin!(stream(entries, &Refusal::default()));
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next().await {
            all.extend_from_slice(&chunk?);
        }
        Ok(all)
    }

    fn file(size: u64, bytes: &[u8]) -> (tempfile::TempDir, ContextEntry) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("f")).unwrap();
        fs_err::write(&path, bytes).unwrap();
        let content = ContextContent::File { path, size, sha256: sha256_hex(bytes) };
        (folder, ContextEntry { path: "debs/f".to_owned(), mode: 0o644, content })
    }

    #[tokio::test]
    async fn stream_sorts_directories_and_files() {
        let big = vec![7; 3 * CHUNK + 5];
        let (_folder, deb) = file(big.len() as u64, &big);
        let program = ContextEntry::program("Dockerfile", "FROM x");
        let bytes = collect(&[deb.clone(), program.clone()]).await.unwrap();
        assert_eq!(bytes, collect(&[program, deb]).await.unwrap());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.mtime().unwrap(), header.uid().unwrap()), (0, 0));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap(), header.size().unwrap())
            })
            .collect();
        let size = big.len() as u64;
        let wanted = [("Dockerfile", 0o755, 6), ("debs", 0o755, 0), ("debs/f", 0o644, size)];
        assert_eq!(seen, wanted.map(|(path, mode, size)| (path.to_owned(), mode, size)));
    }

    #[tokio::test]
    async fn file_of_other_content_ends_the_stream() {
        let (_folder, mut changed) = file(5, b"12345");
        let ContextContent::File { sha256, .. } = &mut changed.content else { panic!("a file") };
        *sha256 = sha256_hex(b"54321");
        let error = collect(&[changed]).await.unwrap_err();
        assert!(error.to_string().ends_with("has other content than expected"), "{error}");
    }

    #[tokio::test]
    async fn missing_or_truncated_file_ends_the_stream() {
        let (_folder, short) = file(10, b"short");
        let error = collect(&[short]).await.unwrap_err();
        assert!(error.to_string().contains("was truncated"), "{error}");
        let (folder, gone) = file(5, b"12345");
        drop(folder);
        assert!(collect(&[gone]).await.is_err());
    }
}
