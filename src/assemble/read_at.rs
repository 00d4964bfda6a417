//! Reading at a position, so that several threads can share one open wheel.

use std::io;

/// Bytes of known length that are read at any position.
pub(crate) trait ReadAt {
    /// Fills the buffer with the bytes from that position on.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()>;

    /// Returns some of the bytes; `length` is trusted.
    fn bytes_at(&self, position: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_at(&mut bytes, position)?;
        Ok(bytes)
    }
}

impl ReadAt for std::fs::File {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, position)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<()> {
        let start = usize::try_from(position).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(self.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
