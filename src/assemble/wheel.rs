//! A locked wheel, open and verified.
//!
//! Owns the order of trust: the whole file is hashed before its first entry is used, and a wheel with an unexpected entry is
//! refused with every reason.
#![expect(clippy::disallowed_methods, reason = "edge: reads wheels")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;

use camino::Utf8Path;

use super::dist_info::find_dist_info;
use super::entry_reader::{EntryError, EntryReader};
use super::error::AssembleError;
use super::limits::Limit;
use super::zip_directory::{ZipError, read_entries};
use super::zip_entry::ZipEntry;
use crate::model::lock::LockedWheel;
use crate::model::sha256::Sha256Hex;

const CHUNK: usize = 1 << 20;

/// A locked wheel, open and verified: its bytes have the locked hash, and its entries are listed.
#[derive(Debug)]
pub struct Wheel {
    source: File,
    file: String,
    distribution: String,
    sha256: String,
    size: u64,
    entries: Vec<ZipEntry>,
    /// `torch-2.8.0` of `torch-2.8.0.dist-info`.
    stem: String,
}

impl Wheel {
    /// Opens a wheel, verifies its hash and lists its entries.
    pub fn open(path: &Utf8Path, locked: &LockedWheel) -> Result<Self, AssembleError> {
        let read = |cause| AssembleError::Read { file: locked.file.clone(), cause };
        // Errors of the file name the path; those of later reads name the wheel.
        let mut source = fs_err::File::open(path).map_err(read)?.into_file();
        let (mut hash, mut size, mut chunk) = (Sha256Hex::default(), 0, vec![0; CHUNK]);
        loop {
            let count = source.read(&mut chunk).map_err(read)?;
            if count == 0 {
                break;
            }
            hash.update(&chunk[..count]);
            size += count as u64;
        }
        let found = hash.finish();
        if found != locked.sha256 {
            let (file, wanted) = (locked.file.clone(), locked.sha256.clone());
            return Err(AssembleError::WrongHash { file, wanted, found });
        }
        let refused = |reasons| AssembleError::Refused { file: locked.file.clone(), reasons };
        let entries = read_entries(&source, size).map_err(|error| match error {
            ZipError::Io(cause) => read(cause),
            ZipError::Refused(reasons) => refused(reasons),
        })?;
        let names = entries.iter().map(|entry| entry.name.as_str());
        let stem = find_dist_info(names, &locked.name, &locked.version).map_err(refused)?;
        Ok(Self {
            source,
            file: locked.file.clone(),
            distribution: locked.name.clone(),
            sha256: found,
            size,
            entries,
            stem,
        })
    }

    /// The wheel's file name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The normalised name of its distribution.
    pub fn distribution(&self) -> &str {
        &self.distribution
    }

    /// SHA-256 of its bytes, hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// `torch-2.8.0` of `torch-2.8.0.dist-info`.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    pub(super) fn entries(&self) -> &[ZipEntry] {
        &self.entries
    }

    pub(super) fn source(&self) -> &File {
        &self.source
    }

    /// Returns the indexes of the entries that are files, by name.
    pub(super) fn files(&self) -> BTreeMap<&str, usize> {
        let files = self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_folder());
        files.map(|(at, entry)| (entry.name.as_str(), at)).collect()
    }

    /// Returns the content of an entry that is not larger than the limit.
    pub(super) fn content(
        &self,
        reader: &mut EntryReader,
        entry: usize,
        limit: Limit,
    ) -> Result<Vec<u8>, AssembleError> {
        reader.content(&self.source, &self.entries[entry], limit).map_err(|error| match error {
            EntryError::Io(cause) => self.unreadable(cause),
            EntryError::Damaged(reason) => self.refused_entry(entry, reason),
            EntryError::Receiver(never) => match never {},
        })
    }

    /// Returns the SHA-256 of an entry, hex, without holding its content.
    pub(super) fn sha256_of(&self, entry: usize) -> Result<String, AssembleError> {
        let mut hash = Sha256Hex::default();
        let read = EntryReader::default().read(&self.source, &self.entries[entry], |part| {
            hash.update(part.plain);
            Ok::<_, std::convert::Infallible>(())
        });
        read.map(|()| hash.finish()).map_err(|error| match error {
            EntryError::Io(cause) => self.unreadable(cause),
            EntryError::Damaged(reason) => self.refused_entry(entry, reason),
            EntryError::Receiver(never) => match never {},
        })
    }

    pub(super) fn unreadable(&self, cause: std::io::Error) -> AssembleError {
        AssembleError::Read { file: self.file.clone(), cause }
    }

    /// The error of a wheel that is not installed for these reasons.
    pub fn refused(&self, reasons: Vec<String>) -> AssembleError {
        AssembleError::Refused { file: self.file.clone(), reasons }
    }

    pub(super) fn refused_entry(&self, entry: usize, reason: &str) -> AssembleError {
        let name = crate::model::entry_name::quoted(&self.entries[entry].name);
        self.refused(vec![format!("{name}: {reason}")])
    }
}

#[cfg(test)]
#[path = "wheel_tests.rs"]
mod tests;
