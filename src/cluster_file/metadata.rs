//! Tables of a squashfs: blocks of 8 KiB, each compressed.

use std::io::Result;

use super::compressor::Compressor;
use crate::model::file_compression::FileCompression;

/// Bytes of a whole block before it is compressed.
const BLOCK: usize = 8192;
/// Says in the length of a block that it is not compressed.
const PLAIN: u16 = 1 << 15;

/// Where something begins: the block, in bytes from the beginning of the table as it is written, and the byte in its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: u32,
    pub(super) offset: u16,
}

impl Place {
    /// As inodes are referred to.
    pub(super) fn reference(self) -> u64 {
        u64::from(self.block) << 16 | u64::from(self.offset)
    }
}

/// A table in the making.
pub(super) struct Metadata {
    written: Vec<u8>,
    block: Vec<u8>,
    packed: Vec<u8>,
    compressor: Compressor,
    /// Where each block begins.
    starts: Vec<u32>,
}

impl Metadata {
    pub(super) fn new(compression: FileCompression) -> Result<Self> {
        let compressor = Compressor::new(compression)?;
        Ok(Self {
            written: Vec::new(),
            block: Vec::new(),
            packed: Vec::new(),
            compressor,
            starts: Vec::new(),
        })
    }

    /// Where the next byte will be.
    pub(super) fn place(&self) -> Place {
        let offset = u16::try_from(self.block.len()).expect("a block has 8 KiB");
        Place { block: self.end(), offset }
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let count = bytes.len().min(BLOCK - self.block.len());
            self.block.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            if self.block.len() == BLOCK {
                self.end_block()?;
            }
        }
        Ok(())
    }

    /// The table as it is written, and where in it each block begins.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, Vec<u32>)> {
        self.end_block()?;
        Ok((self.written, self.starts))
    }

    fn end(&self) -> u32 {
        u32::try_from(self.written.len()).expect("a table of an image has some megabytes")
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.starts.push(self.end());
        let smaller = self.compressor.compress(&self.block, &mut self.packed)?;
        let (bytes, mark) = if smaller { (&self.packed, 0) } else { (&self.block, PLAIN) };
        let length = u16::try_from(bytes.len()).expect("a block has 8 KiB");
        self.written.extend_from_slice(&(length | mark).to_le_bytes());
        self.written.extend_from_slice(bytes);
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_8_kib_and_places_lead_to_them() {
        let mut table = Metadata::new(FileCompression::Zstd(1)).expect("a table");
        assert_eq!(table.place(), Place { block: 0, offset: 0 });
        table.write(&[7; BLOCK]).expect("written");
        let second = table.place();
        assert_eq!(second.offset, 0, "a full block is written");
        table.write(b"abc").expect("written");
        let third = table.place();
        assert_eq!((third.block, third.offset), (second.block, 3));
        assert_eq!(third.reference(), u64::from(second.block) << 16 | 3);
        let (bytes, starts) = table.finish().expect("written");
        assert_eq!(starts, [0, second.block]);
        let length = u16::from_le_bytes([bytes[0], bytes[1]]);
        assert_eq!(usize::from(length) + 2, second.block as usize, "compressed: {length}");
        let packed = zstd::decode_all(&bytes[2..second.block as usize]).expect("zstd");
        assert!(packed == [7; BLOCK]);
        assert_eq!(
            bytes[second.block as usize..],
            [3, 0x80, b'a', b'b', b'c'],
            "too short to become smaller"
        );
    }
}
