//! Cache of bases built from package lists.
//!
//! Owns the record in the state directory and the archive in the cache. One record per list, suite and processor.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::error::BaseError;
use crate::engine::ImageInfo;
use crate::model::lock::LockedDeb;
use crate::model::sha256::sha256_hex;
use crate::model::versions::Machine;
use crate::store::{Store, StoreError};

/// The script that installs the packages; part of the key of a list, because it decides the content too.
pub(super) const SECOND_STAGE: &str = include_str!("second_stage.sh");
/// Counts up when the same packages are made into another base than before.
const RECIPE: u32 = 2;
/// Image ids that are remembered: one per engine a machine talks to.
const IMAGES: usize = 8;

/// The cached base of a package list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedBase {
    /// Content digest, hex.
    pub(super) content: String,
    /// File name of the archive in the cache's directory `base`.
    archive: String,
    /// Size of the archive.
    size: u64,
    /// SHA-256 of the archive, hex: the one layer of an image imported from it.
    pub(super) sha256: String,
    /// Ids of images imported from it, newest last.
    pub(super) images: Vec<String>,
}

/// Returns the key of a package list: the same for the same packages and recipe.
pub(super) fn list_key(suite: &str, machine: Machine, packages: &[LockedDeb]) -> String {
    let mut hashes: Vec<String> = packages.iter().map(|deb| format!("{} {}", deb.name, deb.sha256)).collect();
    hashes.sort_unstable();
    let recipe = sha256_hex(SECOND_STAGE.as_bytes());
    sha256_hex(format!("{RECIPE} {recipe} {suite} {machine}\n{}", hashes.join("\n")).as_bytes())
}

impl CachedBase {
    pub(super) fn new(suite: &str, content: &str, sha256: &str) -> Self {
        let archive = format!("base-{suite}-{}.tar", &content[..16]);
        Self { content: content.to_owned(), archive, size: 0, sha256: sha256.to_owned(), images: Vec::new() }
    }

    /// The record of a list, if there is a readable one.
    pub(super) fn read(store: &Store, key: &str) -> Result<Option<Self>, BaseError> {
        let bytes = store.read_state(&path(key))?;
        // An unreadable record is ignored: the base is built again.
        Ok(bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .filter(|record: &Self| record.content.len() == 64 && !record.archive.contains('/')))
    }

    pub(super) fn write(&self, store: &Store, key: &str) -> Result<(), BaseError> {
        let text = serde_json::to_string(self).expect("a record is plain text and numbers");
        Ok(store.write_state(&path(key), text.as_bytes())?)
    }

    pub(super) fn archive_path(&self, store: &Store) -> Utf8PathBuf {
        store.cache_dir().join("base").join(&self.archive)
    }

    /// The archive, if it is there as it was written.
    pub(super) fn archive(&self, store: &Store) -> Option<Utf8PathBuf> {
        let path = self.archive_path(store);
        let size = fs_err::metadata(&path).map(|metadata| metadata.len()).ok();
        (size == Some(self.size)).then_some(path)
    }

    /// Moves the finished archive into the cache.
    pub(super) fn keep_archive(
        &mut self,
        store: &Store,
        file: tempfile::NamedTempFile,
    ) -> Result<(), BaseError> {
        let broken = |cause| StoreError::File { purpose: "cannot store the archive of the base", cause };
        let path = self.archive_path(store);
        store.make_folder_of(&path)?;
        self.size = file.as_file().metadata().map_err(broken)?.len();
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(readable).map_err(broken)?;
        file.as_file().sync_data().map_err(broken)?;
        file.persist(&path).map_err(|error| broken(error.error))?;
        Ok(())
    }

    /// Whether an image holds this base and nothing else: it was imported here, or its one layer is the archive.
    /// Other state directories import the same base on the same engine.
    pub(super) fn is_image(&self, image: &ImageInfo) -> bool {
        let plain = image.env.is_empty() && image.user.is_empty() && image.labels.is_empty();
        self.images.contains(&image.id) || plain && image.layers == [format!("sha256:{}", self.sha256)]
    }

    pub(super) fn add_image(&mut self, id: &str) {
        self.images.push(id.to_owned());
        let old = self.images.len().saturating_sub(IMAGES);
        self.images.drain(..old);
    }
}

fn path(key: &str) -> String {
    format!("base/{key}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deb(name: &str, byte: &str) -> LockedDeb {
        LockedDeb {
            name: name.to_owned(),
            version: "1".to_owned(),
            architecture: "amd64".to_owned(),
            sha256: byte.repeat(32),
            size: 1,
            path: "pool/x.deb".to_owned(),
        }
    }

    fn store() -> (Store, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        (Store::open(&root.join("cache"), &root.join("state")).expect("store"), folder)
    }

    #[test]
    fn key_depends_on_packages_not_on_order_or_path() {
        let (a, b) = (deb("a", "aa"), deb("b", "bb"));
        let key = |list: &[LockedDeb]| list_key("bookworm", Machine::X86_64, list);
        let moved = LockedDeb { path: "pool/updates/x.deb".to_owned(), ..a.clone() };
        assert_eq!(key(&[a.clone(), b.clone()]), key(&[b.clone(), moved]));
        assert_ne!(key(&[a.clone(), b.clone()]), key(&[a.clone(), deb("b", "cc")]));
        let one = std::slice::from_ref(&a);
        assert_ne!(key(one), list_key("trixie", Machine::X86_64, one));
        assert_ne!(key(one), list_key("bookworm", Machine::Aarch64, one));
    }

    #[test]
    fn cached_base_requires_its_complete_archive() {
        let (store, _folder) = store();
        let mut record = CachedBase::new("bookworm", &"ab".repeat(32), &"cd".repeat(32));
        let mut file = store.temp_file().expect("file");
        std::io::Write::write_all(&mut file, b"archive").expect("write");
        record.keep_archive(&store, file).expect("kept");
        record.add_image("sha256:1");
        record.write(&store, "key").expect("written");
        let read = CachedBase::read(&store, "key").expect("read").expect("there");
        assert_eq!(read, record);
        let path = read.archive(&store).expect("archive");
        assert_eq!(path.file_name(), Some("base-bookworm-abababababababab.tar"));
        std::fs::OpenOptions::new().write(true).open(&path).expect("open").set_len(3).expect("cut");
        assert_eq!(read.archive(&store), None);
    }

    #[test]
    fn unreadable_record_is_ignored() {
        let (store, _folder) = store();
        for text in ["", "{", "{\"content\":\"ab\",\"archive\":\"x\",\"images\":[]}"] {
            store.write_state("base/key.json", text.as_bytes()).expect("write");
            assert_eq!(CachedBase::read(&store, "key").expect("read"), None);
        }
    }

    #[test]
    fn image_matches_by_id_or_by_its_only_layer() {
        let mut record = CachedBase::new("trixie", &"ab".repeat(32), &"cd".repeat(32));
        let image = |id: &str, layer: &str, env: &[&str]| ImageInfo {
            sizes: Vec::new(),
            id: id.to_owned(),
            tags: Vec::new(),
            digests: Vec::new(),
            size: 0,
            labels: std::collections::BTreeMap::new(),
            env: env.iter().map(|text| (*text).to_owned()).collect(),
            user: String::new(),
            layers: vec![format!("sha256:{}", layer.repeat(32))],
            history: Vec::new(),
            triggers: Vec::new(),
            architecture: "amd64".to_owned(),
        };
        assert!(record.is_image(&image("sha256:1", "cd", &[])));
        assert!(!record.is_image(&image("sha256:1", "ee", &[])));
        assert!(!record.is_image(&image("sha256:1", "cd", &["LD_PRELOAD=/x"])));
        record.add_image("sha256:1");
        assert!(record.is_image(&image("sha256:1", "ee", &[])));
    }

    #[test]
    fn only_the_newest_image_ids_are_kept() {
        let mut record = CachedBase::new("trixie", &"ab".repeat(32), &"cd".repeat(32));
        (0..20).for_each(|number| record.add_image(&number.to_string()));
        assert_eq!(record.images.len(), IMAGES);
        assert_eq!(record.images.last().map(String::as_str), Some("19"));
    }
}
