//! Finished layers in the cache: a record by the key of their inputs, the tar under its hash.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::io::{BufReader, ErrorKind, Write};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::limits::LARGEST_RECORD;
use crate::archive::saved_layers::SavedLayer;
use crate::assemble::{AssembleError, LayerPlan, TarDigest, write_plain};
use crate::engine::LayerContent;
use crate::model::sha256::{HashingWriter, is_sha256_hex};
use crate::store::{SealedRecords, Store, StoreError};

/// A layer in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLayer {
    /// SHA-256 of its tar, hex.
    pub sha256: String,
    /// Size of its tar in bytes.
    pub size: u64,
}

/// The layers of a key (SHA-256, hex), if every one of them is in the cache.
pub(super) fn find(store: &Store, key: &str) -> Result<Option<Vec<KeptLayer>>, StoreError> {
    recorded(store, &records(store), key)
}

/// Layers of a key (SHA-256, hex) that were taken from another machine, if every one of them is in the cache. They may be used
/// only where the lock records them, too.
pub fn taken_before(store: &Store, key: &str) -> Result<Option<Vec<KeptLayer>>, StoreError> {
    recorded(store, &taken(store), key)
}

/// Remembers layers that were taken from another machine under a key. They do not count as made here.
pub fn remember_taken(store: &Store, key: &str, layers: &[KeptLayer]) -> Result<(), StoreError> {
    let text = serde_json::to_vec(layers).expect("hashes and numbers");
    taken(store).write(&name_of(key), &text)
}

fn recorded(store: &Store, records: &SealedRecords, key: &str) -> Result<Option<Vec<KeptLayer>>, StoreError> {
    let Some(bytes) = records.read(&name_of(key), LARGEST_RECORD) else { return Ok(None) };
    // A record that cannot be read is none: the layers are made again.
    let Ok(layers) = serde_json::from_slice::<Vec<KeptLayer>>(&bytes) else { return Ok(None) };
    for layer in &layers {
        let is_there = is_sha256_hex(&layer.sha256) && store.find(&layer.sha256)?.is_some();
        if !is_there {
            return Ok(None);
        }
    }
    Ok(Some(layers))
}

/// Moves finished layers into the cache under a key.
pub(super) fn keep(store: &Store, key: &str, layers: Vec<SavedLayer>) -> Result<Vec<KeptLayer>, StoreError> {
    let kept = layers.into_iter().map(|layer| adopt(store, layer)).collect::<Result<Vec<_>, _>>()?;
    let text = serde_json::to_vec(&kept).expect("hashes and numbers");
    records(store).write(&name_of(key), &text)?;
    Ok(kept)
}

/// Moves a layer into the cache, under the hash of its tar alone.
pub(super) fn adopt(store: &Store, layer: SavedLayer) -> Result<KeptLayer, StoreError> {
    let SavedLayer { sha256, size, file } = layer;
    let path = Utf8Path::from_path(file.path()).expect("the cache's path is UTF-8").to_owned();
    store.adopt(&path, &sha256)?;
    // The file has moved; its guard finds nothing to remove.
    drop(file);
    Ok(KeptLayer { sha256, size })
}

/// Writes a layer of given files into the cache.
pub fn keep_plan(store: &Store, plan: &LayerPlan) -> Result<KeptLayer, AssembleError> {
    let mut file = store.temp_file()?;
    let TarDigest { diff_id, size } = write_plain(plan, file.as_file_mut(), &mut |_| {})?;
    let sha256 = diff_id.trim_start_matches("sha256:").to_owned();
    Ok(adopt(store, SavedLayer { sha256, size, file })?)
}

fn records(store: &Store) -> SealedRecords {
    SealedRecords::new(store, "layers")
}

fn taken(store: &Store) -> SealedRecords {
    SealedRecords::new(store, "layers/taken")
}

fn name_of(key: &str) -> String {
    format!("{key}.json")
}

impl KeptLayer {
    /// SHA-256 of its tar: `sha256:…`.
    pub fn diff_id(&self) -> String {
        format!("sha256:{}", self.sha256)
    }

    /// Its tar, for an engine.
    pub fn content(&self, store: &Store) -> Result<impl LayerContent + use<>, StoreError> {
        Ok(LayerFile { path: store.blob_path(&self.sha256)?, sha256: self.sha256.clone() })
    }
}

/// A tar of the cache, hashed while it is given away.
struct LayerFile {
    path: Utf8PathBuf,
    sha256: String,
}

impl LayerContent for LayerFile {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let file = fs_err::File::open(&self.path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => std::io::Error::new(error.kind(), AssembleError::layer_gone(&self.sha256)),
            _ => error,
        })?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut hashed = HashingWriter::new(out);
        std::io::copy(&mut file, &mut hashed)?;
        let found = hashed.finish();
        if found == self.sha256 {
            return Ok(());
        }
        let (file, wanted) = ("a layer of the cache".to_owned(), self.sha256.clone());
        Err(std::io::Error::other(AssembleError::WrongHash { file, wanted, found }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sha256::sha256_hex;

    struct Fixture {
        store: Store,
        key: String,
        layer: KeptLayer,
        _folder: tempfile::TempDir,
    }

    /// A layer in the cache, under a key.
    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let mut file = store.temp_file().expect("a file");
        file.write_all(b"a tar").expect("written");
        let saved = SavedLayer { sha256: sha256_hex(b"a tar"), size: 5, file };
        let key = "ab".repeat(32);
        let layer = keep(&store, &key, vec![saved]).expect("kept").remove(0);
        Fixture { store, key, layer, _folder: folder }
    }

    #[test]
    fn kept_layer_is_found_and_written_with_its_digest() {
        let f = fixture();
        assert_eq!(find(&f.store, &f.key).expect("readable"), Some(vec![f.layer.clone()]));
        let mut out = Vec::new();
        f.layer.content(&f.store).expect("a path").write_to(&mut out).expect("written");
        assert_eq!(out, b"a tar");
    }

    #[test]
    fn layer_of_other_bytes_is_an_error_when_it_is_used() {
        let f = fixture();
        fs_err::write(f.store.blob_path(&f.layer.sha256).expect("a path"), b"other").expect("ours");
        let error =
            f.layer.content(&f.store).expect("a path").write_to(&mut Vec::new()).expect_err("refused");
        let error = error.downcast::<AssembleError>().expect("recognized");
        assert!(
            matches!(&error, AssembleError::WrongHash { wanted, .. } if *wanted == f.layer.sha256),
            "{error}"
        );
    }

    #[test]
    fn layer_that_vanished_is_named_when_it_is_used() {
        let f = fixture();
        let content = f.layer.content(&f.store).expect("a path");
        fs_err::remove_file(f.store.blob_path(&f.layer.sha256).expect("a path")).expect("ours");
        let error = content.write_to(&mut Vec::new()).expect_err("it is gone");
        let error = error.downcast::<AssembleError>().expect("recognized");
        assert!(matches!(&error, AssembleError::Gone { .. }), "{error}");
        assert_eq!(find(&f.store, &f.key).expect("readable"), None, "it is made again");
    }

    #[test]
    fn record_that_names_another_layer_of_the_cache_is_none() {
        let f = fixture();
        let other = f.store.put(&sha256_hex(b"hostile"), b"hostile").expect("stored");
        let forged = vec![KeptLayer { sha256: other.file_name().expect("a name").to_owned(), size: 7 }];
        let text = serde_json::to_vec(&forged).expect("JSON");
        fs_err::write(records(&f.store).path(&name_of(&f.key)).expect("a key"), &text).expect("ours");
        assert_eq!(find(&f.store, &f.key).expect("readable"), None);
    }

    #[test]
    fn link_in_place_of_a_layer_is_none() {
        let f = fixture();
        let path = f.store.blob_path(&f.layer.sha256).expect("a path");
        let elsewhere = f.store.cache_dir().join("elsewhere");
        fs_err::rename(&path, &elsewhere).expect("ours");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("ours");
        assert_eq!(find(&f.store, &f.key).expect("readable"), None);
    }
}
