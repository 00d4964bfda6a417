//! Paths that several distributions of an image have.
//!
//! Owns the winner: the last by normalised name, so that the image has the same content whatever layers its wheels are in.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use super::entry_name::parents;
use super::entry_reader::EntryReader;
use super::error::AssembleError;
use super::install::{Installation, InstalledContent, InstalledFile};

/// A path for which two distributions have different files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The path in the image.
    pub path: String,
    /// The distribution whose file is left out.
    pub loser: String,
    /// The distribution whose file is installed.
    pub winner: String,
}

/// The conflicts of all wheels of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    /// Compares the files of all wheels of an image. Equal files are no conflict; a file of one distribution that is a
    /// directory of another is an error.
    pub fn find(all: &[&Installation]) -> Result<Self, AssembleError> {
        let mut all = all.to_vec();
        all.sort_by(|one, other| one.wheel().distribution().cmp(other.wheel().distribution()));
        let mut owners = BTreeMap::<&str, Vec<(&Installation, &InstalledFile)>>::new();
        let mut folders = BTreeMap::<&str, &str>::new();
        for installation in all {
            let name = installation.wheel().distribution();
            for file in installation.files() {
                folders.extend(parents(&file.path).map(|folder| (folder, name)));
                if file.content == InstalledContent::Folder {
                    folders.insert(&file.path, name);
                } else {
                    owners.entry(&file.path).or_default().push((installation, file));
                }
            }
        }
        let mut found = Vec::new();
        let mut reader = EntryReader::default();
        for (path, owners) in owners {
            let Some((winner, others)) = owners.split_last() else { continue };
            if let Some(folder) = folders.get(path) {
                let (file_owner, folder_owner) = (winner.0.wheel().distribution(), *folder);
                let (file_owner, folder_owner) = (file_owner.to_owned(), folder_owner.to_owned());
                return Err(AssembleError::FileAndFolder { path: path.to_owned(), file_owner, folder_owner });
            }
            if others.is_empty() {
                continue;
            }
            let wanted = identity(&mut reader, *winner)?;
            for loser in others {
                if identity(&mut reader, *loser)? != wanted {
                    let name = |owner: &Installation| owner.wheel().distribution().to_owned();
                    found.push(Conflict {
                        path: path.to_owned(),
                        loser: name(loser.0),
                        winner: name(winner.0),
                    });
                }
            }
        }
        Ok(Self(found))
    }

    /// Every conflict, sorted by path.
    pub fn all(&self) -> &[Conflict] {
        &self.0
    }

    /// Returns the paths that a distribution leaves out because another one wins.
    pub fn left_out(&self, distribution: &str) -> BTreeSet<&str> {
        let of_it = self.0.iter().filter(|conflict| conflict.loser == distribution);
        of_it.map(|conflict| conflict.path.as_str()).collect()
    }
}

/// What two files must have in common to be one: mode and content.
fn identity(
    reader: &mut EntryReader,
    (installation, file): (&Installation, &InstalledFile),
) -> Result<(u32, [u8; 32]), AssembleError> {
    let hash = match &file.content {
        InstalledContent::Folder => [0; 32],
        InstalledContent::Generated(content) => Sha256::digest(content).into(),
        InstalledContent::FromWheel { entry, .. } => {
            Sha256::digest(installation.wheel().content(reader, *entry)?).into()
        }
    };
    Ok((file.mode, hash))
}

#[cfg(test)]
#[path = "conflicts_tests.rs"]
mod tests;
