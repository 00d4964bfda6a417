//! Compressed layers by the digest of their tar: digest and size, and the repositories that have them.
//!
//! A record is sealed, as those of assembled layers are: one that was not written here is none.

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::folders::Store;
use super::sealed::SealedRecords;
use crate::model::image::manifest::BlobDescriptor;

/// The most of a record, bytes.
const LARGEST: u64 = 1 << 20;
/// Repositories that are remembered, newest last.
const REPOSITORIES: usize = 8;

/// What is known of a compressed layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedLayer {
    /// Its descriptor.
    pub(crate) blob: BlobDescriptor,
    /// `host/name` of the repositories that took it.
    pub(crate) repositories: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    digest: String,
    size: u64,
    repositories: Vec<String>,
}

/// Returns what is known of a layer, by the digest of its tar (hex) and the compressed form.
pub(crate) fn packed_layer(store: &Store, sha256: &str, form: &str) -> Option<PackedLayer> {
    // What cannot be read is made again.
    let text = records(store).read(&name_of(sha256, form), LARGEST)?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    let Record { digest, size, repositories } = record;
    Some(PackedLayer { blob: BlobDescriptor { digest: digest.parse().ok()?, size }, repositories })
}

/// Records that a repository (`host/name`) has a layer in that form.
pub(crate) fn remember_packed(
    store: &Store,
    (sha256, form): (&str, &str),
    blob: &BlobDescriptor,
    repository: &str,
) -> Result<(), StoreError> {
    let known = packed_layer(store, sha256, form).filter(|known| known.blob == *blob);
    let mut repositories = known.map(|known| known.repositories).unwrap_or_default();
    if repositories.last().is_some_and(|last| last == repository) {
        return Ok(());
    }
    repositories.retain(|known| known != repository);
    repositories.push(repository.to_owned());
    repositories.drain(..repositories.len().saturating_sub(REPOSITORIES));
    let record = Record { digest: blob.digest.to_string(), size: blob.size, repositories };
    let text = serde_json::to_vec(&record).expect("plain values are JSON");
    records(store).write(&name_of(sha256, form), &text)
}

fn records(store: &Store) -> SealedRecords {
    SealedRecords::new(store, "layers/packed")
}

fn name_of(sha256: &str, form: &str) -> String {
    format!("{sha256}-{form}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_is_known_with_its_newest_repositories() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let (blob, other) = (BlobDescriptor::of(b"gzip"), BlobDescriptor::of(b"another gzip"));
        assert_eq!(packed_layer(&store, "aa", "1"), None);
        for number in [1, 2, 3, 4, 5, 6, 7, 8, 9, 2] {
            remember_packed(&store, ("aa", "1"), &blob, &format!("box/{number}")).expect("written");
        }
        let known = packed_layer(&store, "aa", "1").expect("known");
        assert_eq!(known.blob, blob);
        let wanted = [3, 4, 5, 6, 7, 8, 9, 2].map(|number| format!("box/{number}"));
        assert_eq!(known.repositories, wanted);
        assert_eq!(packed_layer(&store, "aa", "2"), None);
        remember_packed(&store, ("aa", "1"), &other, "box/1").expect("written");
        assert_eq!(packed_layer(&store, "aa", "1").expect("known").repositories, ["box/1"]);
        let forged = format!(r#"{{"digest":"{}","size":4,"repositories":[]}}"#, blob.digest);
        let place = records(&store).path(&name_of("aa", "1")).expect("a key");
        // Without a seal, and with the seal of nobody.
        for text in [forged.clone(), format!("{}\n{forged}", "A".repeat(44))] {
            crate::store::write_atomically(&place, text.as_bytes()).expect("written");
            assert_eq!(packed_layer(&store, "aa", "1"), None, "{text}");
        }
    }
}
