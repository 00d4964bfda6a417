//! Reading one entry of a wheel: its raw bytes and its content in one pass, checked against the central directory.

use std::io;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::limits::Limit;
use super::read_at::ReadAt;
use super::zip_entry::{Method, ZipEntry};

/// Bytes read at a time.
const CHUNK: usize = 128 << 10;
/// Bytes inflated at a time.
const PLAIN: usize = 256 << 10;

/// Buffers and state for reading entries one after the other.
pub(super) struct EntryReader {
    packed: Vec<u8>,
    plain: Vec<u8>,
    inflate: Decompress,
}

/// A part of an entry: raw bytes as they are in the wheel, and content. They do not belong to each other.
pub(super) struct Part<'a> {
    pub(super) packed: &'a [u8],
    pub(super) plain: &'a [u8],
}

/// Why an entry was not read completely.
#[derive(Debug)]
pub(super) enum EntryError<E> {
    /// The wheel could not be read.
    Io(io::Error),
    /// The content is not what the central directory promises.
    Damaged(&'static str),
    /// The receiver failed.
    Receiver(E),
}

impl Default for EntryReader {
    fn default() -> Self {
        Self { packed: vec![0; CHUNK], plain: vec![0; PLAIN], inflate: Decompress::new(false) }
    }
}

impl EntryReader {
    /// Gives every part of an entry to the receiver; an entry without error has its size and CRC-32.
    pub(super) fn read<E>(
        &mut self,
        source: &(impl ReadAt + ?Sized),
        entry: &ZipEntry,
        mut receive: impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(), EntryError<E>> {
        self.inflate.reset(false);
        let (mut crc, mut left, mut at) = (Crc::new(), entry.packed, entry.start);
        let mut ended = false;
        while left > 0 {
            let length = self.fill(source, at, left).map_err(EntryError::Io)?;
            at += length as u64;
            left -= length as u64;
            let packed = &self.packed[..length];
            match entry.method {
                Method::Stored => {
                    crc.update(packed);
                    receive(Part { packed, plain: packed }).map_err(EntryError::Receiver)?;
                }
                Method::Deflated => ended = self.inflate(length, entry.size, &mut crc, &mut receive)?,
            }
            if ended && left > 0 {
                return Err(EntryError::Damaged("its DEFLATE stream ends early"));
            }
        }
        if entry.method == Method::Deflated && !ended {
            return Err(EntryError::Damaged("its DEFLATE stream is truncated"));
        }
        if entry.method == Method::Deflated && self.inflate.total_out() != entry.size {
            return Err(EntryError::Damaged("it has another size than the zip lists"));
        }
        if crc.sum() != entry.crc32 {
            return Err(EntryError::Damaged("CRC-32 mismatch"));
        }
        Ok(())
    }

    /// Gives the raw bytes of an entry to the receiver. Nothing is inflated, so nothing is checked.
    pub(super) fn read_packed<E>(
        &mut self,
        source: &(impl ReadAt + ?Sized),
        entry: &ZipEntry,
        mut receive: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), EntryError<E>> {
        let (mut left, mut at) = (entry.packed, entry.start);
        while left > 0 {
            let length = self.fill(source, at, left).map_err(EntryError::Io)?;
            at += length as u64;
            left -= length as u64;
            receive(&self.packed[..length]).map_err(EntryError::Receiver)?;
        }
        Ok(())
    }

    /// Fills the first buffer from the `left` bytes that begin at an offset; returns how many it holds.
    fn fill(&mut self, source: &(impl ReadAt + ?Sized), at: u64, left: u64) -> io::Result<usize> {
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        source.read_at(&mut self.packed[..length], at)?;
        Ok(length)
    }

    /// Inflates the bytes of the first buffer and returns whether the stream has ended, exactly at their end.
    fn inflate<E>(
        &mut self,
        length: usize,
        size: u64,
        crc: &mut Crc,
        receive: &mut impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<bool, EntryError<E>> {
        let mut packed = &self.packed[..length];
        loop {
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(packed, &mut self.plain, FlushDecompress::None)
                .map_err(|_| EntryError::Damaged("invalid DEFLATE stream"))?;
            let used = usize::try_from(self.inflate.total_in() - before_in).unwrap_or(packed.len());
            let made = usize::try_from(self.inflate.total_out() - before_out).unwrap_or(PLAIN);
            if self.inflate.total_out() > size {
                return Err(EntryError::Damaged("it is larger than the zip lists"));
            }
            let plain = &self.plain[..made];
            crc.update(plain);
            receive(Part { packed: &packed[..used], plain }).map_err(EntryError::Receiver)?;
            packed = &packed[used..];
            match status {
                Status::StreamEnd if packed.is_empty() => return Ok(true),
                Status::StreamEnd => return Err(EntryError::Damaged("its DEFLATE stream ends early")),
                // A full buffer may leave content behind that needs no further input.
                _ if packed.is_empty() && made < PLAIN => return Ok(false),
                _ if used == 0 && made == 0 => return Err(EntryError::Damaged("invalid DEFLATE stream")),
                _ => {}
            }
        }
    }

    /// Returns the complete content of an entry that is not larger than the limit.
    pub(super) fn content(
        &mut self,
        source: &(impl ReadAt + ?Sized),
        entry: &ZipEntry,
        limit: Limit,
    ) -> Result<Vec<u8>, EntryError<std::convert::Infallible>> {
        if entry.size > limit.bytes {
            return Err(EntryError::Damaged(limit.reason));
        }
        let mut content = Vec::new();
        self.read(source, entry, |part| {
            content.extend_from_slice(part.plain);
            Ok(())
        })?;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::Write as _;

    use super::*;

    fn deflated(content: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(content).expect("a vector");
        packer.finish().expect("a vector")
    }

    fn entry(content: &[u8], packed: usize, method: Method) -> ZipEntry {
        let mut crc = Crc::new();
        crc.update(content);
        ZipEntry {
            name: "a".to_owned(),
            executable: false,
            method,
            crc32: crc.sum(),
            packed: packed as u64,
            size: content.len() as u64,
            start: 0,
        }
    }

    fn read(bytes: &[u8], entry: &ZipEntry) -> Result<(Vec<u8>, Vec<u8>), EntryError<Infallible>> {
        let (mut packed, mut plain) = (Vec::new(), Vec::new());
        EntryReader::default().read(bytes, entry, |part| {
            packed.extend_from_slice(part.packed);
            plain.extend_from_slice(part.plain);
            Ok(())
        })?;
        Ok((packed, plain))
    }

    fn damage(bytes: &[u8], entry: &ZipEntry) -> &'static str {
        match read(bytes, entry) {
            Err(EntryError::Damaged(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn entries_of_any_size_are_read_with_their_raw_bytes() {
        for size in [0, 1, CHUNK - 1, CHUNK, PLAIN, PLAIN + 1, 3 * PLAIN] {
            let content: Vec<u8> = (0..size).map(|at| u8::try_from(at * at % 251).unwrap_or(0)).collect();
            let bytes = deflated(&content);
            let expected = (bytes.clone(), content.clone());
            assert_eq!(
                read(&bytes, &entry(&content, bytes.len(), Method::Deflated)).expect("read"),
                expected
            );
            let mut packed = Vec::new();
            let listed = entry(&content, bytes.len(), Method::Deflated);
            let all = EntryReader::default().read_packed(bytes.as_slice(), &listed, |part| {
                packed.extend_from_slice(part);
                Ok::<_, Infallible>(())
            });
            assert!(all.is_ok() && packed == bytes, "{size}");
            let stored = read(&content, &entry(&content, size, Method::Stored)).expect("read");
            assert_eq!(stored, (content.clone(), content));
        }
        let zeros = vec![0; 5 * PLAIN];
        let bytes = deflated(&zeros);
        assert_eq!(read(&bytes, &entry(&zeros, bytes.len(), Method::Deflated)).expect("read").1, zeros);
    }

    #[test]
    fn stream_that_does_not_end_with_the_entry_is_damaged() {
        let content = vec![7; 100_000];
        let bytes = deflated(&content);
        let good = entry(&content, bytes.len(), Method::Deflated);
        let cut = ZipEntry { packed: good.packed - 1, ..good.clone() };
        assert!(damage(&bytes, &cut).contains("truncated"));
        let longer = [bytes.as_slice(), b"x"].concat();
        assert!(damage(&longer, &entry(&content, longer.len(), Method::Deflated)).contains("ends early"));
        let far = [bytes.as_slice(), vec![0; 2 * CHUNK].as_slice()].concat();
        assert!(damage(&far, &entry(&content, far.len(), Method::Deflated)).contains("ends early"));
        assert!(damage(&bytes, &ZipEntry { size: 99_999, ..good.clone() }).contains("larger"));
        assert!(damage(&bytes, &ZipEntry { size: 100_001, ..good.clone() }).contains("another size"));
        assert!(damage(&bytes, &ZipEntry { crc32: 1, ..good }).contains("CRC-32"));
        assert!(damage(&[], &entry(b"", 0, Method::Deflated)).contains("truncated"));
        assert!(damage(b"\xff\xff", &entry(b"", 2, Method::Deflated)).contains("invalid"));
        assert!(damage(b"no", &entry(b"on", 2, Method::Stored)).contains("CRC-32"));
    }

    #[test]
    fn missing_bytes_and_failing_receivers_are_errors() {
        let short = read(b"a", &entry(b"ab", 2, Method::Stored));
        assert!(matches!(short, Err(EntryError::Io(_))), "{short:?}");
        let bytes = deflated(b"x");
        let full = entry(b"x", bytes.len(), Method::Deflated);
        let failed = EntryReader::default().read(bytes.as_slice(), &full, |_| Err("full"));
        assert!(matches!(failed, Err(EntryError::Receiver("full"))), "{failed:?}");
    }
}
