//! The contents of files, cut into blocks.
//!
//! Files of a block and more have blocks of their own; smaller ones lie together in blocks, each content once.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::blocks::BlockSender;
use super::superblock::BLOCK_LOG;

/// Bytes of a block of content.
pub(super) const BLOCK: usize = 1 << BLOCK_LOG;

/// The content of a file, by the caller's number: names with the same number are hard links.
pub(crate) type Slot = u32;

/// A file whose content was written.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenFile {
    pub(super) size: u64,
    pub(super) blocks: Range<usize>,
    /// The fragment that holds it, and the byte there.
    pub(super) fragment: Option<(u32, u32)>,
}

/// The error of a file that has another size than its tree says.
fn changed() -> Error {
    Error::new(ErrorKind::InvalidData, "a file of the cache changed while it was read")
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

impl<'a> Contents<'a> {
    pub(super) fn new(sender: &'a mut BlockSender) -> Self {
        Self {
            sender,
            files: HashMap::new(),
            fragment: Vec::with_capacity(BLOCK),
            fragments: Vec::new(),
            known: HashMap::new(),
            small: Vec::new(),
        }
    }

    /// What was written of each file, and the blocks that hold small ones.
    pub(super) fn finish(mut self) -> Result<(HashMap<Slot, WrittenFile>, Vec<usize>)> {
        self.end_fragment()?;
        Ok((self.files, self.fragments))
    }

    /// Takes the content of a file of that size, which `write` gives in parts. With a known SHA-256 a content that was written already
    /// is not asked for again.
    ///
    /// # Errors
    /// That of `write`, and one of kind `InvalidData` if it gives another number of bytes.
    pub(crate) fn add<E: From<Error>>(
        &mut self,
        slot: Slot,
        (size, sha256): (u64, Option<[u8; 32]>),
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let known = sha256.and_then(|sha256| self.known.get(&(size, sha256)).cloned());
        let file = match known {
            Some(file) => file,
            None if size < BLOCK as u64 => self.add_small((size, sha256), write)?,
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
        if taken != size {
            return Err(changed().into());
        }
        if !size.is_multiple_of(BLOCK as u64) {
            self.sender.send()?;
        }
        Ok(WrittenFile { size, blocks: first..self.sender.next(), fragment: None })
    }

    fn add_small<E: From<Error>>(
        &mut self,
        (size, sha256): (u64, Option<[u8; 32]>),
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<WrittenFile, E> {
        let mut small = std::mem::take(&mut self.small);
        small.clear();
        write(&mut |part| {
            small.extend_from_slice(part);
            Ok(())
        })?;
        if small.len() as u64 != size {
            return Err(changed().into());
        }
        let file = self.place(&small, sha256)?;
        self.small = small;
        Ok(file)
    }

    /// Puts a small file where it lies already, or at the end of the block that is being filled.
    fn place(&mut self, content: &[u8], sha256: Option<[u8; 32]>) -> Result<WrittenFile> {
        let size = content.len() as u64;
        if content.is_empty() {
            return Ok(WrittenFile::default());
        }
        let key = (size, sha256.unwrap_or_else(|| Sha256::digest(content).into()));
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
