//! What a wheel puts where: paths, modes and hashes, without bytes.
//!
//! Kept by the wheel's hash, so that a wheel whose layer is known is not read again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::AssembleError;
use super::install::{Installation, InstalledContent};
use super::record_file::{LAYOUT_VERSION, read_record};
use crate::model::lock::LockedWheel;
use crate::model::sha256::{hex, sha256_hex};
use crate::store::{SealedRecords, Store, StoreError};

/// Version of the record: raised when lists have more than before.
const LIST_VERSION: u32 = 2;

/// The paths that a wheel gives to an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    distribution: String,
    /// Bytes of all files, as the wheel lists them: each is compared when it is read.
    unpacked: u64,
    files: BTreeMap<String, ListedFile>,
}

/// A file or directory of a wheel. Two are the same if everything here is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedFile {
    mode: u32,
    /// SHA-256 of a file, hex; `None` for a directory. That of RECORD is compared with the content when a layer is written.
    sha256: Option<String>,
}

impl ListedFile {
    pub(super) fn is_folder(&self) -> bool {
        self.sha256.is_none()
    }
}

impl Listing {
    /// Lists the files of a wheel.
    pub fn of(installation: &Installation) -> Result<Self, AssembleError> {
        let (mut files, mut unpacked) = (BTreeMap::new(), 0_u64);
        for file in installation.files() {
            let sha256 = match &file.content {
                InstalledContent::FromWheel { sha256: Some(sha256), .. } => Some(hex(sha256)),
                InstalledContent::FromWheel { entry, .. } => Some(installation.wheel().sha256_of(*entry)?),
                InstalledContent::Generated(content) => Some(sha256_hex(content)),
                InstalledContent::Folder => None,
            };
            files.insert(file.path.clone(), ListedFile { mode: file.mode, sha256 });
            unpacked = unpacked.saturating_add(installation.size_of(file));
        }
        Ok(Self { distribution: installation.wheel().distribution().to_owned(), unpacked, files })
    }

    /// The bytes of its files.
    pub fn unpacked(&self) -> u64 {
        self.unpacked
    }

    /// The paths of its files that have the name of a library: some part of it is `.so`.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        let is_library = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.contains(".so"));
        let files = self.files.iter().filter(|(_, file)| !file.is_folder());
        files.map(|(path, _)| path.as_str()).filter(is_library)
    }

    /// The normalised name of its distribution.
    pub(super) fn distribution(&self) -> &str {
        &self.distribution
    }

    /// Its files and directories by path.
    pub(super) fn files(&self) -> &BTreeMap<String, ListedFile> {
        &self.files
    }
}

/// Lists of wheels in the cache.
#[derive(Debug, Clone)]
pub struct ListingCache {
    records: SealedRecords,
    python_minor: u8,
}

impl ListingCache {
    /// Returns the lists of a store, for environments of Python 3 with that minor version.
    pub fn of(store: &Store, python_minor: u8) -> Self {
        Self { records: SealedRecords::new(store, "layers/wheels"), python_minor }
    }

    /// Returns the list of a wheel; one that was not written here counts as absent.
    pub fn find(&self, wheel: &LockedWheel) -> Option<Listing> {
        let listing: Listing = read_record(&self.records, &self.name(wheel))?;
        Some(listing).filter(|listing| listing.distribution == wheel.name)
    }

    /// Keeps the list of a wheel.
    pub fn put(&self, wheel: &LockedWheel, listing: &Listing) -> Result<(), StoreError> {
        self.records.write(&self.name(wheel), &serde_json::to_vec(listing).expect("plain values are JSON"))
    }

    fn name(&self, wheel: &LockedWheel) -> String {
        let LockedWheel { name, sha256, .. } = wheel;
        let inputs = format!("{LAYOUT_VERSION} {LIST_VERSION} {} {name} {sha256}", self.python_minor);
        let key = sha256_hex(inputs.as_bytes());
        format!("{sha256}-{}.json", &key[..16])
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test forges a file")]
mod tests {
    use super::*;
    use crate::assemble::made_wheel::MadeWheel;
    use crate::assemble::samples::{SITE, install, locked};
    use crate::model::lock::WheelLayer;

    #[test]
    fn list_has_every_path_with_mode_and_hash() {
        let made = MadeWheel::new("demo").file("demo/a.py", b"a").file("demo/empty/", b"");
        let listing = Listing::of(&install(&made).expect("installed")).expect("listed");
        let file = &listing.files()[&format!("{SITE}/demo/a.py")];
        assert_eq!((file.mode, file.sha256.clone()), (0o644, Some(sha256_hex(b"a"))));
        assert!(listing.files()[&format!("{SITE}/demo/empty")].is_folder());
        let record = &listing.files()[&format!("{SITE}/demo-1.0.dist-info/RECORD")];
        assert!(!record.is_folder());
    }

    #[test]
    fn list_has_the_unpacked_size_of_its_wheel() {
        let zeros = vec![0; 1 << 20];
        let made = MadeWheel::new("demo").file("demo/zeros", &zeros);
        let listing = Listing::of(&install(&made).expect("installed")).expect("listed");
        let packed = made.build().len() as u64;
        assert!(packed < 10_000, "{packed}");
        assert!((1 << 20..1 << 21).contains(&listing.unpacked()), "{}", listing.unpacked());
    }

    #[test]
    fn kept_list_is_found_for_its_wheel_and_python_only() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&path.join("cache"), &path.join("state")).expect("a store");
        let cache = ListingCache::of(&store, 11);
        let made = MadeWheel::new("demo").file("demo/a.py", b"a");
        let listing = Listing::of(&install(&made).expect("installed")).expect("listed");
        let wheel = locked("demo", WheelLayer::Stack, b"1");
        assert_eq!(cache.find(&wheel), None);
        cache.put(&wheel, &listing).expect("written");
        assert_eq!(cache.find(&wheel), Some(listing.clone()));
        assert_eq!(cache.find(&locked("demo", WheelLayer::Stack, b"2")), None);
        assert_eq!(ListingCache::of(&store, 12).find(&wheel), None);
        cache.records.write(&cache.name(&wheel), b"{").expect("written");
        assert_eq!(cache.find(&wheel), None, "a damaged list is none");
        let forged = serde_json::to_vec(&listing).expect("JSON");
        fs_err::write(cache.records.path(&cache.name(&wheel)).expect("a key"), forged).expect("written");
        assert_eq!(cache.find(&wheel), None, "a list without a seal is none");
    }
}
