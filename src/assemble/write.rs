//! A layer as bytes: the plain tar and, from the same pass over the wheels, its compressed form.
//!
//! Owns the checks of content: each file of a wheel must have the size and CRC-32 of the zip and the SHA-256 of RECORD. When a
//! check fails, bytes were written already: the receiver must discard them.

use std::io::{self, BufWriter, Read, Write};

use sha2::{Digest as _, Sha256};

use super::entry_reader::{EntryError, EntryReader};
use super::error::AssembleError;
use super::install::RECORD_MISMATCH;
use super::layer::{LayerContent, LayerFile, LayerPlan};
use super::splice::Splicer;
use super::tar_header::{Access, BLOCK, Kind, header};
use super::wheel::Wheel;
use super::zip_entry::Method;
use crate::model::sha256::Sha256Hex;

/// Files of wheels below this size are deflated again, together with their headers.
const SMALL_FILE: u64 = 4 << 10;
const BUFFER: usize = 256 << 10;

/// The digest of a plain tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarDigest {
    /// `sha256:…` of the tar: the layer's diff ID.
    pub diff_id: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The digests of both forms of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerDigests {
    /// Of the plain tar.
    pub plain: TarDigest,
    /// `sha256:…` of the compressed form.
    pub gzip: String,
    /// Size of the compressed form in bytes.
    pub gzip_size: u64,
}

/// Writes the plain tar of a layer. `progress` receives the number of bytes after each file.
pub fn write_plain(
    plan: &LayerPlan,
    out: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<TarDigest, AssembleError> {
    let mut layer = LayerWriter::new(Some(Hashed::new(out)), NO_GZIP);
    layer.write(plan, progress)?;
    Ok(tar_digest(layer.finish()?.0.expect("it was given")))
}

/// Writes the plain tar of a layer whose digest is known for a receiver that compares it, as engines do. Sizes and CRC-32 are
/// checked here, RECORD was when the digest was computed.
pub fn write_known(plan: &LayerPlan, out: impl Write) -> Result<(), AssembleError> {
    let mut layer = LayerWriter { records: false, ..LayerWriter::new(Some(out), NO_GZIP) };
    layer.write(plan, &mut |_| {})?;
    layer.finish().map(drop)
}

/// Writes the compressed form of a layer whose digest is known for a receiver that compares it, as registries and image stores
/// do. DEFLATE streams are copied without being inflated: their content was checked when the digest was computed.
pub fn write_known_gzip(plan: &LayerPlan, out: impl Write) -> Result<(), AssembleError> {
    let gzip = Splicer::new(BufWriter::with_capacity(BUFFER, out));
    let mut layer = LayerWriter { records: false, ..LayerWriter::new(NO_PLAIN, Some(gzip)) };
    layer.write(plan, &mut |_| {})?;
    let gzip = layer.finish()?.1.expect("it was given");
    gzip.finish().and_then(flushed).map(drop).map_err(AssembleError::Write)
}

/// No compressed form.
const NO_GZIP: Option<Splicer<io::Sink>> = None;
/// No plain form.
const NO_PLAIN: Option<io::Sink> = None;

/// Writes both forms of a layer in one pass over its wheels. `progress` receives the number of bytes of the plain tar after
/// each file.
pub fn write_layer(
    plan: &LayerPlan,
    plain: impl Write,
    gzip: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<LayerDigests, AssembleError> {
    let gzip = Splicer::new(BufWriter::with_capacity(BUFFER, Hashed::new(gzip)));
    let mut layer = LayerWriter::new(Some(Hashed::new(plain)), Some(gzip));
    layer.write(plan, progress)?;
    let (plain, gzip) = layer.finish()?;
    let plain = tar_digest(plain.expect("it was given"));
    let gzip = gzip.expect("it was given").finish().and_then(flushed).map_err(AssembleError::Write)?;
    let (gzip, gzip_size) = gzip.finish();
    Ok(LayerDigests { plain, gzip, gzip_size })
}

/// Compresses a layer that is a tar already, as [`write_layer`] compresses files that it was given: the same tar gives the
/// same bytes.
pub fn pack_tar(mut tar: impl Read, gzip: impl Write) -> Result<LayerDigests, AssembleError> {
    let mut splicer = Splicer::new(BufWriter::with_capacity(BUFFER, Hashed::new(gzip)));
    let mut plain = Hashed::new(io::sink());
    let mut buffer = vec![0; BUFFER];
    let mut pack = || loop {
        match tar.read(&mut buffer)? {
            0 => return Ok(()),
            count => plain.write_all(&buffer[..count]).and_then(|()| splicer.small(&buffer[..count]))?,
        }
    };
    pack().map_err(AssembleError::Write)?;
    let gzip = splicer.finish().and_then(flushed).map_err(AssembleError::Write)?;
    let ((diff_id, size), (gzip, gzip_size)) = (plain.finish(), gzip.finish());
    Ok(LayerDigests { plain: TarDigest { diff_id, size }, gzip, gzip_size })
}

fn tar_digest<W: Write>(plain: Hashed<W>) -> TarDigest {
    let (diff_id, size) = plain.finish();
    TarDigest { diff_id, size }
}

/// Flushes a buffer and its receiver.
fn flushed<W: Write>(out: BufWriter<W>) -> io::Result<W> {
    let mut inner = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    inner.flush()?;
    Ok(inner)
}

/// A receiver that is hashed and counted.
struct Hashed<W> {
    out: W,
    hash: Sha256Hex,
    size: u64,
}

impl<W: Write> Hashed<W> {
    fn new(out: W) -> Self {
        Self { out, hash: Sha256Hex::default(), size: 0 }
    }

    fn finish(self) -> (String, u64) {
        (format!("sha256:{}", self.hash.finish()), self.size)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The two forms being written.
struct LayerWriter<P: Write, G> {
    plain: Option<BufWriter<P>>,
    gzip: Option<Splicer<G>>,
    reader: EntryReader,
    written: u64,
    /// Whether files are compared with RECORD.
    records: bool,
}

impl<P: Write, G: Write> LayerWriter<P, G> {
    fn new(plain: Option<P>, gzip: Option<Splicer<G>>) -> Self {
        let plain = plain.map(|plain| BufWriter::with_capacity(BUFFER, plain));
        Self { plain, gzip, reader: EntryReader::default(), written: 0, records: true }
    }

    fn write(&mut self, plan: &LayerPlan, progress: &mut dyn FnMut(u64)) -> Result<(), AssembleError> {
        for (path, file) in plan.files() {
            self.entry(path, file)?;
            progress(self.written);
        }
        // Two empty blocks end a tar.
        self.small(&[0; 2 * BLOCK]).map_err(AssembleError::Write)
    }

    fn finish(self) -> Result<(Option<P>, Option<Splicer<G>>), AssembleError> {
        Ok((self.plain.map(flushed).transpose().map_err(AssembleError::Write)?, self.gzip))
    }

    fn entry(&mut self, path: &str, file: &LayerFile) -> Result<(), AssembleError> {
        let access = Access { mode: file.mode, uid: file.uid, gid: file.gid };
        let size = file.size();
        let kind = match &file.content {
            LayerContent::Folder => Kind::Folder,
            LayerContent::Symlink(target) => Kind::Symlink(target),
            LayerContent::File(_) | LayerContent::FromWheel { .. } => Kind::File(size),
        };
        self.small(&header(path, kind, access)).map_err(AssembleError::Write)?;
        match &file.content {
            LayerContent::Folder | LayerContent::Symlink(_) => {}
            LayerContent::File(bytes) => self.small(bytes).map_err(AssembleError::Write)?,
            LayerContent::FromWheel { wheel, entry, sha256 } => self.copy(wheel, *entry, *sha256)?,
        }
        let padding = size.next_multiple_of(BLOCK as u64) - size;
        let padding = &[0; BLOCK][..usize::try_from(padding).unwrap_or(0)];
        self.small(padding).map_err(AssembleError::Write)
    }

    /// Writes bytes to both forms, deflating them here.
    fn small(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.plain.as_mut().map_or(Ok(()), |plain| plain.write_all(bytes))?;
        self.gzip.as_mut().map_or(Ok(()), |gzip| gzip.small(bytes))
    }

    /// Copies a file of a wheel: its content to the plain form, its DEFLATE stream to the compressed one.
    fn copy(&mut self, wheel: &Wheel, at: usize, sha256: Option<[u8; 32]>) -> Result<(), AssembleError> {
        let entry = &wheel.entries()[at];
        let own_member = entry.size >= SMALL_FILE;
        if let Some(gzip) = self.gzip.as_mut().filter(|_| own_member) {
            gzip.begin().map_err(AssembleError::Write)?;
        }
        if own_member && self.plain.is_none() {
            self.copy_packed(wheel, at)?;
        } else {
            self.copy_content(wheel, at, sha256.filter(|_| self.records))?;
        }
        if let Some(gzip) = self.gzip.as_mut().filter(|_| own_member) {
            let ended = if entry.method == Method::Stored { gzip.end_stored() } else { Ok(()) };
            ended.and_then(|()| gzip.end(entry.crc32, entry.size)).map_err(AssembleError::Write)?;
        }
        Ok(())
    }

    /// Copies the DEFLATE stream of a file of a wheel as it is.
    fn copy_packed(&mut self, wheel: &Wheel, at: usize) -> Result<(), AssembleError> {
        let entry = &wheel.entries()[at];
        let gzip = self.gzip.as_mut().expect("one of the forms is written");
        let read = self.reader.read_packed(wheel.source(), entry, |part| add_part(gzip, entry.method, part));
        self.written += entry.size;
        read.map_err(|error| failed(wheel, at, error))
    }

    /// Copies the content of a file of a wheel, inflated and checked.
    fn copy_content(
        &mut self,
        wheel: &Wheel,
        at: usize,
        sha256: Option<[u8; 32]>,
    ) -> Result<(), AssembleError> {
        let entry = &wheel.entries()[at];
        let Self { plain, gzip, reader, written, .. } = self;
        let mut hash = sha256.map(|_| Sha256::new());
        let read = reader.read(wheel.source(), entry, |part| {
            if let Some(hash) = &mut hash {
                hash.update(part.plain);
            }
            *written += part.plain.len() as u64;
            plain.as_mut().map_or(Ok(()), |plain| plain.write_all(part.plain))?;
            match gzip {
                None => Ok(()),
                Some(gzip) if entry.size < SMALL_FILE => gzip.small(part.plain),
                Some(gzip) => add_part(gzip, entry.method, part.packed),
            }
        });
        read.map_err(|error| failed(wheel, at, error))?;
        if hash.map(|hash| <[u8; 32]>::from(hash.finalize())) != sha256 {
            return Err(wheel.refused_entry(at, RECORD_MISMATCH));
        }
        Ok(())
    }
}

/// Reads the files of layers, one after the other.
#[derive(Default)]
pub struct FileReader(EntryReader);

impl FileReader {
    /// Gives the content of a file in parts; a directory and a link have none. A file of a wheel has the size and CRC-32 of the zip;
    /// RECORD was compared when the layer was made.
    pub fn read(
        &mut self,
        file: &LayerFile,
        give: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), AssembleError> {
        match &file.content {
            LayerContent::Folder | LayerContent::Symlink(_) => Ok(()),
            LayerContent::File(bytes) => give(bytes).map_err(AssembleError::Write),
            LayerContent::FromWheel { wheel, entry, .. } => {
                let read = self.0.read(wheel.source(), &wheel.entries()[*entry], |part| give(part.plain));
                read.map_err(|error| failed(wheel, *entry, error))
            }
        }
    }
}

/// Adds raw bytes of a file to the member that it has for itself.
fn add_part<W: Write>(gzip: &mut Splicer<W>, method: Method, packed: &[u8]) -> io::Result<()> {
    match method {
        Method::Stored => gzip.stored(packed),
        Method::Deflated => gzip.raw(packed),
    }
}

/// The error of a file of a wheel that was not copied.
fn failed(wheel: &Wheel, at: usize, error: EntryError<io::Error>) -> AssembleError {
    match error {
        EntryError::Io(cause) => wheel.unreadable(cause),
        EntryError::Damaged(reason) => wheel.refused_entry(at, reason),
        EntryError::Receiver(cause) => AssembleError::Write(cause),
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
