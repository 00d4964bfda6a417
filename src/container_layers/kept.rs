//! Finished layers in the cache: a record by the key of their inputs, the tar under its hash.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::io::{BufReader, Write};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::limits::LARGEST_RECORD;
use crate::archive::saved_layers::SavedLayer;
use crate::assemble::{AssembleError, LayerPlan, TarDigest, write_plain};
use crate::engine::LayerContent;
use crate::model::bounded::read_bounded;
use crate::model::sha256::is_sha256_hex;
use crate::store::{Store, StoreError, write_atomically};

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
    let read = fs_err::File::open(record(store, key)).and_then(|file| read_bounded(file, LARGEST_RECORD));
    let Ok(bytes) = read else { return Ok(None) };
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
    write_atomically(&record(store, key), &text)?;
    Ok(kept)
}

/// Moves a layer into the cache, under the hash of its tar alone.
pub(super) fn adopt(store: &Store, layer: SavedLayer) -> Result<KeptLayer, StoreError> {
    let SavedLayer { sha256, size, file } = layer;
    let failed = |cause| StoreError::File { purpose: "cannot write the cache", cause };
    file.as_file().sync_data().map_err(failed)?;
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

fn record(store: &Store, key: &str) -> Utf8PathBuf {
    store.cache_dir().join("layers").join(format!("{key}.json"))
}

impl KeptLayer {
    /// SHA-256 of its tar: `sha256:…`.
    pub fn diff_id(&self) -> String {
        format!("sha256:{}", self.sha256)
    }

    /// Its tar, for an engine.
    pub fn content(&self, store: &Store) -> Result<impl LayerContent + use<>, StoreError> {
        Ok(LayerFile(store.blob_path(&self.sha256)?))
    }
}

struct LayerFile(Utf8PathBuf);

impl LayerContent for LayerFile {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let mut file = BufReader::with_capacity(1 << 20, fs_err::File::open(&self.0)?);
        std::io::copy(&mut file, out).map(drop)
    }
}
