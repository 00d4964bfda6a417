//! A squashfs, version 4.0: superblock, content, tables.

use std::io::{Error, Result, Seek, SeekFrom, Write};

use super::blocks::{PLAIN, write_blocks};
use super::compressor::options;
use super::contents::{Contents, Slot};
use super::error::ClusterFileError;
use super::metadata::Metadata;
use super::superblock::{SIZE, Superblock};
use super::tables::{Tables, check, tables};
use crate::archive::tree::Tree;
use crate::model::file_compression::FileCompression;

/// A file system ends at a multiple of this, for loop devices.
const PAGE: u64 = 4096;

/// How a squashfs is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SquashfsOptions {
    pub(crate) compression: FileCompression,
    /// Threads that compress; the bytes are the same with any number.
    pub(crate) cores: usize,
    /// Bytes before the superblock, which the caller fills.
    pub(crate) front: u64,
}

/// Writes the tree with the contents that `fill` gives to the beginning of `out`, and returns the size of the squashfs: a multiple of
/// 4,096 bytes.
///
/// # Errors
/// The paths that a squashfs of ours does not hold, the error of writing, or that of `fill`.
///
/// # Panics
/// If `fill` leaves out a file of the tree.
pub(crate) fn write_squashfs<E: From<ClusterFileError> + From<Error>>(
    out: &mut (impl Write + Seek + Send),
    options_: SquashfsOptions,
    tree: &Tree<Slot>,
    fill: impl FnOnce(&mut Contents<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<u64, E> {
    let SquashfsOptions { compression, cores, front } = options_;
    check(tree)?;
    out.seek(SeekFrom::Start(front + SIZE))?;
    let options = options(compression);
    out.write_all(&plain_block(&options))?;
    let start = SIZE + 2 + options.len() as u64;
    let ((files, fragments), blocks) = write_blocks(out, start, (compression, cores), |sender| {
        let mut contents = Contents::new(sender);
        fill(&mut contents)?;
        Ok::<_, E>(contents.finish()?)
    })?;
    let made = tables(tree, &files, &blocks, compression)?;
    let Tables { inodes, directories, ids, root, count } = made;
    let end = blocks.last().map_or(start, |last| last.start + u64::from(last.size & !PLAIN));
    let mut end = Position { out, at: end };
    let inode_table = end.at;
    end.write(&inodes)?;
    let directory_table = end.at;
    end.write(&directories)?;
    let entries = fragments.iter().flat_map(|number| {
        let block = blocks[*number];
        [&block.start.to_le_bytes()[..], &block.size.to_le_bytes(), &0_u32.to_le_bytes()].concat()
    });
    let fragment_table = end.table(&entries.collect::<Vec<_>>(), compression)?;
    let id_bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let id_table = end.table(&id_bytes, compression)?;
    let size = end.at;
    let padded = size.next_multiple_of(PAGE);
    end.write(&vec![0; usize::try_from(padded - size).expect("below a page")])?;
    let superblock = Superblock {
        inodes: count,
        fragments: u32::try_from(fragments.len()).expect("some thousand"),
        compression,
        ids: u16::try_from(ids.len()).expect("the tables have as many"),
        root,
        size,
        id_table,
        inode_table,
        directory_table,
        fragment_table,
    };
    out.seek(SeekFrom::Start(front))?;
    out.write_all(&superblock.bytes())?;
    Ok(padded)
}

/// A block of a table that is not compressed.
fn plain_block(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("some bytes");
    [&(length | 1 << 15).to_le_bytes()[..], bytes].concat()
}

/// Where the file system ends so far.
struct Position<'a, W> {
    out: &'a mut W,
    at: u64,
}

impl<W: Write> Position<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes a table with the list of its blocks, and returns where that list begins.
    fn table(&mut self, bytes: &[u8], compression: FileCompression) -> Result<u64> {
        let mut table = Metadata::new(compression)?;
        table.write(bytes)?;
        let (written, starts) = table.finish()?;
        let start = self.at;
        self.write(&written)?;
        let list = self.at;
        let places: Vec<u8> = starts.iter().flat_map(|at| (start + u64::from(*at)).to_le_bytes()).collect();
        self.write(&places)?;
        Ok(list)
    }
}

#[cfg(test)]
#[path = "squashfs_tests.rs"]
mod tests;
