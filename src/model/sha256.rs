//! SHA-256 as lower-case hex, the one spelling used for every pinned byte.
//!
//! Owns the spelling. Does no I/O: callers feed bytes.

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of some bytes, hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

/// Whether a text is a SHA-256 in its one spelling: 64 lower-case hex digits.
pub fn is_sha256_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A hasher of bytes.
#[derive(Debug, Clone, Default)]
pub struct Sha256Hex(Sha256);

impl Sha256Hex {
    /// Hashes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    /// Returns the SHA-256 of all bytes, hex.
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

impl std::io::Write for Sha256Hex {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A writer that hashes the bytes it passes on.
#[derive(Debug)]
pub struct HashingWriter<W> {
    out: W,
    hash: Sha256Hex,
}

impl<W> HashingWriter<W> {
    /// Wraps a writer.
    pub fn new(out: W) -> Self {
        Self { out, hash: Sha256Hex::default() }
    }
    /// Returns the SHA-256 of the written bytes, hex.
    pub fn finish(self) -> String {
        self.hash.finish()
    }
}

impl<W: std::io::Write> std::io::Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A reader that hashes the bytes it gives.
#[derive(Debug)]
pub struct HashingReader<R> {
    reader: R,
    hash: Sha256Hex,
}

impl<R> HashingReader<R> {
    /// Wraps a reader.
    pub fn new(reader: R) -> Self {
        Self { reader, hash: Sha256Hex::default() }
    }
    /// Returns the SHA-256 of the bytes that were read, hex.
    pub fn finish(self) -> String {
        self.hash.finish()
    }
}

impl<R: std::io::Read> std::io::Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_abc_is_the_published_one() {
        let mut fed = Sha256Hex::default();
        fed.update(b"a");
        fed.update(b"bc");
        let published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fed.finish(), published);
        assert_eq!(sha256_hex(b"abc"), published);
    }

    #[test]
    fn writer_hashes_only_bytes_that_were_written() {
        let mut place = [0; 3];
        let mut writer = HashingWriter::new(place.as_mut_slice());
        assert_eq!(std::io::Write::write(&mut writer, b"abcd").expect("memory"), 3);
        assert_eq!(writer.finish(), sha256_hex(b"abc"));
        assert_eq!(&place, b"abc");
    }

    #[test]
    fn accepts_only_lower_case_hex() {
        assert!(is_sha256_hex(&sha256_hex(b"")));
        assert!(!is_sha256_hex(&sha256_hex(b"").to_uppercase()));
        assert!(!is_sha256_hex("../../etc/passwd"));
        assert!(!is_sha256_hex("abc"));
    }
}
