//! How an image that was put together here is made again, layer by layer, for a registry: a record in the cache.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::assemble::LAYOUT_VERSION;
use crate::model::image::manifest::BlobDescriptor;
use crate::model::lock::LockedWheel;
use crate::model::sha256::{is_sha256_hex, sha256_hex};
use crate::store::{SealedRecords, Store, StoreError};

/// The most of a recipe, bytes: one of 126 wheels has some 60 KB.
const LARGEST: u64 = 16 << 20;

/// An image that was put together here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    /// Version of the form of layers.
    layout: u32,
    /// Its configuration, as JSON.
    pub(crate) config: String,
    /// The reference of its base in the engine.
    pub(crate) base: String,
    /// Its layers, lowest first.
    pub(crate) layers: Vec<RecipeLayer>,
}

/// A layer of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipeLayer {
    /// What it holds.
    pub(crate) title: String,
    /// SHA-256 of its tar: `sha256:…`.
    pub(crate) diff_id: String,
    /// Digest and size of its compressed form, if they are known.
    pub(crate) packed: Option<(String, u64)>,
    /// What it is made of.
    pub(crate) source: LayerSource,
}

/// What a layer is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LayerSource {
    /// A layer of the base: of the cache under its digest, of an archive, or of the engine alone.
    Base {
        /// The archive of a bootstrapped base, which is its one layer.
        archive: Option<Utf8PathBuf>,
    },
    /// A tar of the cache, under its digest.
    Kept,
    /// Wheels.
    Wheels {
        /// The minor version of the image's Python.
        minor: u8,
        /// In any order.
        wheels: Vec<RecipeWheel>,
    },
    /// The byte code of wheels, which the cache has for each of them.
    ByteCode {
        /// What tells the image's Python from any other build of Python.
        python: String,
        /// In the order of their files.
        wheels: Vec<RecipeWheel>,
    },
}

/// A wheel in a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipeWheel {
    pub(crate) locked: LockedWheel,
    /// Where it lies, unless that is the cache.
    pub(crate) path: Option<Utf8PathBuf>,
    /// The paths that another distribution wins.
    pub(crate) left_out: Vec<String>,
}

impl Recipe {
    /// Returns the recipe of an image.
    pub(crate) fn new(config: String, base: String, layers: Vec<RecipeLayer>) -> Self {
        Self { layout: LAYOUT_VERSION, config, base, layers }
    }

    /// Keeps it for the image of that id.
    pub(crate) fn keep(&self, store: &Store, image: &str) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self).expect("plain values are JSON");
        records(store).write(&name_of(image), &text)
    }

    /// The recipe of an image; `None`: it was not put together here, or by another version.
    pub(crate) fn of(store: &Store, image: &str) -> Option<Self> {
        let recipe: Self = serde_json::from_slice(&records(store).read(&name_of(image), LARGEST)?).ok()?;
        let is_digest = |text: &str| text.strip_prefix("sha256:").is_some_and(is_sha256_hex);
        let is_whole = |layer: &RecipeLayer| {
            is_digest(&layer.diff_id) && layer.packed.as_ref().is_none_or(|(digest, _)| is_digest(digest))
        };
        (recipe.layout == LAYOUT_VERSION && recipe.layers.iter().all(is_whole)).then_some(recipe)
    }
}

impl RecipeLayer {
    /// SHA-256 of its tar, hex.
    pub(crate) fn hex(&self) -> &str {
        self.diff_id.trim_start_matches("sha256:")
    }

    /// The descriptor of its compressed form, if that is known.
    pub(crate) fn known(&self) -> Option<BlobDescriptor> {
        let (digest, size) = self.packed.clone()?;
        Some(BlobDescriptor { digest: digest.parse().ok()?, size })
    }
}

fn records(store: &Store) -> SealedRecords {
    SealedRecords::new(store, "layers/recipes")
}

fn name_of(image: &str) -> String {
    // An engine names its images as it likes.
    format!("{}.json", sha256_hex(image.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipe_is_found_by_the_image_and_a_damaged_one_is_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let diff_id = format!("sha256:{}", sha256_hex(b"tar"));
        let layer =
            RecipeLayer { title: "system".to_owned(), diff_id, packed: None, source: LayerSource::Kept };
        let recipe = Recipe::new("{}".to_owned(), "debian".to_owned(), vec![layer.clone()]);
        recipe.keep(&store, "sha256:image").expect("written");
        assert_eq!(Recipe::of(&store, "sha256:image").as_ref(), Some(&recipe));
        assert_eq!(Recipe::of(&store, "sha256:other"), None);
        let place = records(&store).path(&name_of("sha256:forged")).expect("a key");
        crate::store::write_atomically(&place, &serde_json::to_vec(&recipe).expect("JSON")).expect("written");
        assert_eq!(Recipe::of(&store, "sha256:forged"), None, "a recipe without a seal is none");
        for damaged in [
            Recipe { layout: 0, ..recipe.clone() },
            Recipe {
                layers: vec![RecipeLayer { diff_id: "../../x".to_owned(), ..layer.clone() }],
                ..recipe.clone()
            },
            Recipe { layers: vec![RecipeLayer { packed: Some(("x".to_owned(), 1)), ..layer }], ..recipe },
        ] {
            damaged.keep(&store, "sha256:image").expect("written");
            assert_eq!(Recipe::of(&store, "sha256:image"), None);
        }
    }
}
