//! Paths that several distributions of an image have.
//!
//! Owns the winner: the last by normalised name, so that the image has the same content whatever layers its wheels are in.

use std::collections::{BTreeMap, BTreeSet};

use super::error::AssembleError;
use super::listing::{ListedFile, Listing};
use crate::model::entry_name::{parents, quoted};
use crate::model::whiteout::{DELETES, deletes};

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
    /// directory of another is an error, and so is a name that deletes files: then each path of each wheel that is not left out
    /// is an entry of its own in the image, in whatever layers the wheels are.
    pub fn find(all: &[Listing]) -> Result<Self, AssembleError> {
        // Also where the list comes from the cache: one of an earlier release may have such names.
        let deleting = |listing: &Listing| -> Vec<String> {
            let names = listing.files().keys().filter(|path| deletes(path.as_bytes()));
            names.map(|path| format!("{} of `{}`: {DELETES}", quoted(path), listing.distribution())).collect()
        };
        let reasons: Vec<String> = all.iter().flat_map(deleting).collect();
        if !reasons.is_empty() {
            return Err(AssembleError::Layer { reasons });
        }
        let mut all: Vec<&Listing> = all.iter().collect();
        all.sort_by(|one, other| one.distribution().cmp(other.distribution()));
        let mut owners = BTreeMap::<&str, Vec<(&str, &ListedFile)>>::new();
        let mut folders = BTreeMap::<&str, &str>::new();
        for listing in all {
            let name = listing.distribution();
            for (path, file) in listing.files() {
                folders.extend(parents(path).map(|folder| (folder, name)));
                if file.is_folder() {
                    folders.insert(path, name);
                } else {
                    owners.entry(path).or_default().push((name, file));
                }
            }
        }
        let mut found = Vec::new();
        for (path, owners) in owners {
            let Some(((winner, wanted), others)) = owners.split_last() else { continue };
            if let Some(folder) = folders.get(path) {
                let (file_owner, folder_owner) = ((*winner).to_owned(), (*folder).to_owned());
                return Err(AssembleError::FileAndFolder { path: path.to_owned(), file_owner, folder_owner });
            }
            let losers = others.iter().filter(|(_, file)| file != wanted);
            found.extend(losers.map(|(loser, _)| Conflict {
                path: path.to_owned(),
                loser: (*loser).to_owned(),
                winner: (*winner).to_owned(),
            }));
        }
        Ok(Self(found))
    }

    /// The same for wheels whose conflicts were found before: distributions, each with a path that it leaves out.
    pub fn known<'a>(left_out: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let conflict = |(loser, path): (&str, &str)| Conflict {
            path: path.to_owned(),
            loser: loser.to_owned(),
            winner: String::new(),
        };
        Self(left_out.into_iter().map(conflict).collect())
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

#[cfg(test)]
#[path = "conflicts_tests.rs"]
mod tests;
