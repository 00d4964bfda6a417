//! A squashfs, version 4.0: superblock, content, tables.
//!
//! Files of a block and more have blocks of their own; smaller ones lie together in blocks, each content once.

use std::collections::HashMap;
use std::io::{Error, Result, Seek, SeekFrom, Write};
use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::blocks::{BlockSender, write_blocks};
use super::compressor::options;
use super::error::ClusterFileError;
use super::metadata::Metadata;
use super::superblock::{BLOCK_LOG, SIZE, Superblock};
use super::tables::{Tables, check, tables};
use crate::archive::tree::Tree;
use crate::model::file_compression::FileCompression;

/// Bytes of a block of content.
const BLOCK: usize = 1 << BLOCK_LOG;
/// A file system ends at a multiple of this, for loop devices.
const PAGE: u64 = 4096;

/// The content of a file, by the caller's number: names with the same number are hard links.
pub(crate) type Slot = u32;

/// How a squashfs is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SquashfsOptions {
    pub(crate) compression: FileCompression,
    /// Threads that compress; the bytes are the same with any number.
    pub(crate) cores: usize,
    /// Bytes before the superblock, which the caller fills.
    pub(crate) front: u64,
}

/// A file whose content was written.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenFile {
    pub(super) size: u64,
    pub(super) blocks: Range<usize>,
    /// The fragment that holds it, and the byte there.
    pub(super) fragment: Option<(u32, u32)>,
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
        let mut contents = Contents {
            sender,
            files: HashMap::new(),
            fragment: Vec::with_capacity(BLOCK),
            fragments: Vec::new(),
            known: HashMap::new(),
            small: Vec::new(),
        };
        fill(&mut contents)?;
        contents.end_fragment()?;
        Ok::<_, E>((contents.files, contents.fragments))
    })?;
    let made = tables(tree, &files, &blocks, compression)?;
    let Tables { inodes, directories, ids, root, count } = made;
    let end = blocks.last().map_or(start, |last| last.start + u64::from(last.size & !super::blocks::PLAIN));
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

/// Takes the content of each file.
pub(crate) struct Contents<'a> {
    sender: &'a mut BlockSender,
    files: HashMap<Slot, WrittenFile>,
    /// Small files that wait for their block to be full.
    fragment: Vec<u8>,
    /// The numbers of the blocks that hold small files.
    fragments: Vec<usize>,
    /// Contents that were written, by size and SHA-256.
    known: HashMap<(u64, [u8; 32]), WrittenFile>,
    /// The content of a small file while it is read.
    small: Vec<u8>,
}

impl Contents<'_> {
    /// Takes the content of a file of that size, which `write` gives in parts. With a known SHA-256 a content that was written already
    /// is not asked for again.
    ///
    /// # Panics
    /// If `write` gives another number of bytes.
    pub(crate) fn add<E: From<Error>>(
        &mut self,
        slot: Slot,
        (size, sha256): (u64, Option<[u8; 32]>),
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let known = sha256.and_then(|sha256| self.known.get(&(size, sha256)).cloned());
        let file = match known {
            Some(file) => file,
            None if size < BLOCK as u64 => self.add_small(size, write)?,
            None => self.add_large(size, write)?,
        };
        if let Some(sha256) = sha256 {
            self.known.entry((size, sha256)).or_insert_with(|| file.clone());
        }
        self.files.insert(slot, file);
        Ok(())
    }

    fn add_large<E: From<Error>>(
        &mut self,
        size: u64,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<WrittenFile, E> {
        let (first, mut taken) = (self.sender.next(), 0);
        let sender = &mut *self.sender;
        write(&mut |mut part| {
            taken += part.len() as u64;
            while !part.is_empty() {
                let block = sender.buffer()?;
                let count = part.len().min(BLOCK - block.len());
                block.extend_from_slice(&part[..count]);
                part = &part[count..];
                if block.len() == BLOCK {
                    sender.send()?;
                }
            }
            Ok(())
        })?;
        assert_eq!(taken, size, "a file has its size");
        if !size.is_multiple_of(BLOCK as u64) {
            self.sender.send()?;
        }
        Ok(WrittenFile { size, blocks: first..self.sender.next(), fragment: None })
    }

    fn add_small<E: From<Error>>(
        &mut self,
        size: u64,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<WrittenFile, E> {
        let mut small = std::mem::take(&mut self.small);
        small.clear();
        write(&mut |part| {
            small.extend_from_slice(part);
            Ok(())
        })?;
        assert_eq!(small.len() as u64, size, "a file has its size");
        let file = self.place(&small)?;
        self.small = small;
        Ok(file)
    }

    /// Puts a small file where it lies already, or at the end of the block that is being filled.
    fn place(&mut self, content: &[u8]) -> Result<WrittenFile> {
        let size = content.len() as u64;
        if content.is_empty() {
            return Ok(WrittenFile::default());
        }
        let key = (size, Sha256::digest(content).into());
        if let Some(file) = self.known.get(&key) {
            return Ok(file.clone());
        }
        if self.fragment.len() + content.len() > BLOCK {
            self.end_fragment()?;
        }
        let number = u32::try_from(self.fragments.len()).expect("some thousand");
        let offset = u32::try_from(self.fragment.len()).expect("a block has 1 MiB");
        self.fragment.extend_from_slice(content);
        let file = WrittenFile { size, blocks: 0..0, fragment: Some((number, offset)) };
        self.known.insert(key, file.clone());
        Ok(file)
    }

    fn end_fragment(&mut self) -> Result<()> {
        if self.fragment.is_empty() {
            return Ok(());
        }
        self.sender.buffer()?.extend_from_slice(&self.fragment);
        self.fragments.push(self.sender.send()?);
        self.fragment.clear();
        Ok(())
    }
}

#[cfg(test)]
#[path = "squashfs_tests.rs"]
mod tests;
