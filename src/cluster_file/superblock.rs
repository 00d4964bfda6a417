//! The first 96 bytes of a squashfs.

use super::compressor::number;
use crate::model::file_compression::FileCompression;

/// Bytes of a superblock.
pub(super) const SIZE: u64 = 96;
/// Bytes of a block of content before it is compressed, as a power of two.
pub(super) const BLOCK_LOG: u16 = 20;
/// A table that is not there.
pub(super) const ABSENT: u64 = u64::MAX;

/// No table of extended attributes, and options of the compressor behind the superblock.
const FLAGS: u16 = 0x0200 | 0x0400;

/// What a superblock says; places are bytes from its beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Superblock {
    pub(super) inodes: u32,
    pub(super) fragments: u32,
    pub(super) compression: FileCompression,
    pub(super) ids: u16,
    pub(super) root: u64,
    pub(super) size: u64,
    pub(super) id_table: u64,
    pub(super) inode_table: u64,
    pub(super) directory_table: u64,
    pub(super) fragment_table: u64,
}

impl Superblock {
    /// Its bytes. The file system has no time of its own: it would tell when it was written, not what it holds.
    pub(super) fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(b"hsqs");
        bytes.extend_from_slice(&self.inodes.to_le_bytes());
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&(1_u32 << BLOCK_LOG).to_le_bytes());
        bytes.extend_from_slice(&self.fragments.to_le_bytes());
        for value in [number(self.compression), BLOCK_LOG, FLAGS, self.ids, 4, 0] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        for value in [
            self.root,
            self.size,
            self.id_table,
            ABSENT,
            self.inode_table,
            self.directory_table,
            self.fragment_table,
            ABSENT,
        ] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}
