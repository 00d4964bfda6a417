//! Digests of layers that were assembled before: one small file per layer.
//!
//! A record can be checked only by assembling the layer, and a false one would make a build use another layer that the engine has
//! under that digest. So records are sealed: one that was not written here is none, nor is one with an impossible shape.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::record_file::{LAYOUT_VERSION, read_record};
use super::write::{LayerDigests, TarDigest};
use crate::model::sha256::{is_sha256_hex, sha256_hex};
use crate::store::{SealedRecords, Store, StoreError};

/// Everything that decides the bytes of a layer of wheels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerKey<'a> {
    layout: u32,
    python_minor: u8,
    wheels: Vec<WheelKey<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct WheelKey<'a> {
    sha256: &'a str,
    left_out: BTreeSet<&'a str>,
}

impl<'a> LayerKey<'a> {
    /// Returns the key of a layer without wheels.
    pub fn new(python_minor: u8) -> Self {
        Self { layout: LAYOUT_VERSION, python_minor, wheels: Vec::new() }
    }

    /// Adds a wheel by its SHA-256 with the paths it leaves out.
    #[must_use]
    pub fn wheel(mut self, sha256: &'a str, left_out: BTreeSet<&'a str>) -> Self {
        self.wheels.push(WheelKey { sha256, left_out });
        self
    }

    /// Returns the SHA-256 of the key, hex. The order of wheels does not matter.
    pub fn hash(&self) -> String {
        let mut sorted = self.clone();
        sorted.wheels.sort_by(|one, other| one.sha256.cmp(other.sha256));
        sha256_hex(&serde_json::to_vec(&sorted).expect("plain values are JSON"))
    }
}

/// A record as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    key: String,
    diff_id: String,
    size: u64,
    gzip: String,
    gzip_size: u64,
}

/// Digests of layers in the cache.
#[derive(Debug, Clone)]
pub struct DigestCache {
    records: SealedRecords,
}

impl DigestCache {
    /// Returns the records of a store.
    pub fn of(store: &Store) -> Self {
        Self { records: SealedRecords::new(store, "layers/digests") }
    }

    /// Returns the recorded digests of a layer; a record that was not written here counts as absent.
    pub fn find(&self, key: &LayerKey<'_>) -> Option<LayerDigests> {
        let key = key.hash();
        let name = name_of(&key);
        let digests = digests(read_record::<Record>(&self.records, &name)?, &key);
        if digests.is_none() {
            tracing::warn!(name, "ignoring a damaged record");
        }
        digests
    }

    /// Records the digests of a layer.
    pub fn put(&self, key: &LayerKey<'_>, digests: &LayerDigests) -> Result<(), StoreError> {
        let LayerDigests { plain: TarDigest { diff_id, size }, gzip, gzip_size } = digests.clone();
        let key = key.hash();
        let name = name_of(&key);
        let record = Record { key, diff_id, size, gzip, gzip_size };
        self.records.write(&name, &serde_json::to_vec(&record).expect("plain values are JSON"))
    }
}

fn name_of(key: &str) -> String {
    format!("{key}.json")
}

/// Returns the digests of a record of that key, if its shape is possible.
fn digests(record: Record, wanted: &str) -> Option<LayerDigests> {
    let Record { key, diff_id, size, gzip, gzip_size } = record;
    let is_digest = |text: &str| text.strip_prefix("sha256:").is_some_and(is_sha256_hex);
    // A tar is a number of blocks, at least the two at its end.
    let possible = key == wanted
        && is_digest(&diff_id)
        && is_digest(&gzip)
        && size >= 1024
        && size.is_multiple_of(512)
        && gzip_size > 0;
    possible.then_some(LayerDigests { plain: TarDigest { diff_id, size }, gzip, gzip_size })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test forges files")]
mod tests {
    use super::*;

    fn sample() -> LayerDigests {
        let digest = |of: &str| format!("sha256:{}", sha256_hex(of.as_bytes()));
        LayerDigests {
            plain: TarDigest { diff_id: digest("plain"), size: 10_240 },
            gzip: digest("gzip"),
            gzip_size: 99,
        }
    }

    fn cache() -> (DigestCache, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&path.join("cache"), &path.join("state")).expect("a store");
        (DigestCache::of(&store), folder)
    }

    #[test]
    fn record_is_found_again_under_its_key_only() {
        let (cache, _folder) = cache();
        let key = LayerKey::new(11).wheel("aa", BTreeSet::new());
        assert_eq!(cache.find(&key), None);
        cache.put(&key, &sample()).expect("written");
        assert_eq!(cache.find(&key), Some(sample()));
        assert_eq!(cache.find(&LayerKey::new(12).wheel("aa", BTreeSet::new())), None);
    }

    #[test]
    fn key_is_decided_by_python_wheels_and_left_out_paths() {
        let none = BTreeSet::new;
        let keys = [
            LayerKey::new(11),
            LayerKey::new(12),
            LayerKey::new(11).wheel("aa", none()),
            LayerKey::new(11).wheel("bb", none()),
            LayerKey::new(11).wheel("aa", none()).wheel("bb", none()),
            LayerKey::new(11).wheel("aa", BTreeSet::from(["x"])).wheel("bb", none()),
            LayerKey::new(11).wheel("aa", none()).wheel("bb", BTreeSet::from(["x"])),
        ];
        let hashes: BTreeSet<String> = keys.iter().map(LayerKey::hash).collect();
        assert_eq!(hashes.len(), keys.len());
        let other_order = LayerKey::new(11).wheel("bb", none()).wheel("aa", none());
        assert_eq!(other_order.hash(), keys[4].hash());
        let vector = r#"{"layout":1,"python_minor":11,"wheels":[{"sha256":"aa","left_out":["x"]},{"sha256":"bb","left_out":[]}]}"#;
        assert_eq!(keys[5].hash(), sha256_hex(vector.as_bytes()));
    }

    #[test]
    fn forged_record_is_absent() {
        let (cache, _folder) = cache();
        let key = LayerKey::new(11);
        cache.put(&key, &sample()).expect("written");
        let path = cache.records.path(&name_of(&key.hash())).expect("a key");
        let good = fs_err::read_to_string(&path).expect("readable");
        let other = format!("sha256:{}", sha256_hex(b"a layer of somebody else"));
        fs_err::write(&path, good.replace(&sample().plain.diff_id, &other)).expect("written");
        assert_eq!(cache.find(&key), None);
        let (_, unsealed) = good.split_once('\n').expect("a seal");
        fs_err::write(&path, unsealed).expect("written");
        assert_eq!(cache.find(&key), None);
    }

    #[test]
    fn record_of_impossible_shape_is_absent() {
        let (cache, _folder) = cache();
        let key = LayerKey::new(11);
        let name = name_of(&key.hash());
        cache.put(&key, &sample()).expect("written");
        let good = cache.records.read(&name, 1 << 10).expect("sealed");
        let good = String::from_utf8(good).expect("JSON");
        for (from, to) in [
            ("10240", "10241"),
            ("10240", "512"),
            (":99", ":0"),
            ("sha256:", "sha512:"),
            ("\"gzip_size\"", "\"other\""),
            (&key.hash()[..8], "00000000"),
            ("}", ""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            cache.records.write(&name, bad.as_bytes()).expect("written");
            assert_eq!(cache.find(&key), None, "{from} -> {to}");
        }
        cache.records.write(&name, good.as_bytes()).expect("written");
        assert_eq!(cache.find(&key), Some(sample()));
    }
}
