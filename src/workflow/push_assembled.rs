//! An image that was put together here, straight from wheels and the cache into a registry: no engine compresses it again.

use std::sync::Arc;

use bytes::Bytes;

use crate::assemble::LAYOUT_VERSION;
use crate::model::image::manifest::{BlobDescriptor, MANIFEST_TYPE, manifest};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::registry::{Blob, BlobOrigin, ManifestDocument, Registry};
use crate::report::Reporter;
use crate::store::Store;
use crate::store::packed_layers::{PackedLayer, packed_layer, remember_packed};
use crate::workflow::assemble::{Recipe, RemadeLayer};
use crate::workflow::error::CommandError;
use crate::workflow::image_parts::{MissingParts, bring_base};
use crate::workflow::session::Session;

/// Puts an image into the repository of a reference, under its digest and these tags.
pub(crate) async fn push_assembled(
    session: &Session<'_>,
    recipe: &Recipe,
    target: &ImageRef,
    tags: &[&str],
) -> Result<Digest, CommandError> {
    bring_base(session, recipe).await?;
    push_recipe((&session.store, &session.registry), recipe, (target, tags), &session.reporter).await
}

/// The same from what the cache has.
pub(crate) async fn push_recipe(
    (store, registry): (&Store, &Registry),
    recipe: &Recipe,
    (target, tags): (&ImageRef, &[&str]),
    reporter: &Arc<dyn Reporter>,
) -> Result<Digest, CommandError> {
    let mut blobs = vec![config_blob(&recipe.config)];
    blobs.extend(recipe.layers.iter().map(|layer| {
        let known = packed_layer(store, layer.hex(), LAYOUT_VERSION);
        let layer = RemadeLayer { layer: layer.clone(), store: store.clone() };
        layer_blob(layer, known, target)
    }));
    check_complete((store, registry), recipe, &blobs[1..], target).await?;
    let pushed = registry.push_blobs(target, &blobs, reporter).await?;
    let descriptors: Vec<BlobDescriptor> = pushed.iter().map(|(blob, _)| blob.clone()).collect();
    for (layer, blob) in recipe.layers.iter().zip(&descriptors[1..]) {
        remember_packed(store, (layer.hex(), LAYOUT_VERSION), blob, &target.name())?;
    }
    let bytes = |origin| {
        let of_origin = pushed[1..].iter().filter(|(_, found)| *found == origin);
        of_origin.map(|(blob, _)| blob.size).sum::<u64>()
    };
    tracing::debug!(
        sent = bytes(BlobOrigin::Sent),
        mounted = bytes(BlobOrigin::Mounted),
        present = bytes(BlobOrigin::Present),
        %target,
        "pushed the layers"
    );
    let manifest = manifest(&descriptors[0], &descriptors[1..]);
    let document = ManifestDocument { media_type: MANIFEST_TYPE, bytes: manifest.into() };
    Ok(registry.put_manifest(target, &document, tags).await?)
}

fn config_blob(config: &str) -> Blob {
    let config = Bytes::from(config.to_owned());
    Blob {
        title: "configuration".to_owned(),
        known: Some(BlobDescriptor::of(&config)),
        content: Arc::new(config),
        mount_from: Vec::new(),
    }
}

fn layer_blob(layer: RemadeLayer, known: Option<PackedLayer>, target: &ImageRef) -> Blob {
    let repositories = known.iter().flat_map(|known| known.repositories.iter().rev());
    let parsed = repositories.filter_map(|name| name.parse::<ImageRef>().ok());
    let elsewhere = parsed
        .filter(|other| other.registry() == target.registry() && other.repository() != target.repository());
    Blob {
        title: layer.layer.title.clone(),
        mount_from: elsewhere.map(|other| other.repository().to_owned()).collect(),
        known: layer.layer.known().or(known.map(|known| known.blob)),
        content: Arc::new(layer),
    }
}

/// An error that names what is missing for the layers that the registry lacks.
async fn check_complete(
    (store, registry): (&Store, &Registry),
    recipe: &Recipe,
    blobs: &[Blob],
    target: &ImageRef,
) -> Result<(), CommandError> {
    let mut parts = Vec::new();
    for (layer, blob) in recipe.layers.iter().zip(blobs) {
        let layer = RemadeLayer { layer: layer.clone(), store: store.clone() };
        let missing = layer.missing();
        if missing.is_empty() {
            continue;
        }
        let is_there = match &blob.known {
            Some(known) => registry.has_blob(target, known).await?,
            None => false,
        };
        if !is_there {
            parts.extend(missing);
        }
    }
    if parts.is_empty() { Ok(()) } else { Err(MissingParts { purpose: "push", parts }.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use crate::fetch::{FetchSettings, Fetcher};
    use crate::model::sha256::sha256_hex;
    use crate::registry::test_registry::TestRegistry;
    use crate::report::NullReporter;
    use crate::settings::image_registry::RegistrySettings;
    use crate::workflow::assemble::{LayerSource, RecipeLayer};

    struct Fixture {
        server: TestRegistry,
        store: Store,
        _folder: tempfile::TempDir,
    }

    async fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        Fixture { server: TestRegistry::start().await, store, _folder: folder }
    }

    impl Fixture {
        /// A layer that the cache has.
        fn layer(&self, title: &str) -> RecipeLayer {
            let tar = title.repeat(100_000).into_bytes();
            let sha256 = sha256_hex(&tar);
            self.store.put(&sha256, &tar).expect("stored");
            let (title, diff_id) = (title.to_owned(), format!("sha256:{sha256}"));
            RecipeLayer { title, diff_id, packed: None, source: LayerSource::Kept }
        }

        async fn push(&self, recipe: &Recipe, tags: &[&str]) -> Result<Digest, CommandError> {
            let settings = FetchSettings::default();
            let fetch = Fetcher::new(&settings).expect("a client");
            let registry = Registry::new(fetch, RegistrySettings::default());
            let target = format!("{}/team/torch", self.server.host).parse().expect("a reference");
            let reporter: Arc<dyn Reporter> = Arc::new(NullReporter);
            push_recipe((&self.store, &registry), recipe, (&target, tags), &reporter).await
        }
    }

    fn recipe(layers: Vec<RecipeLayer>) -> Recipe {
        Recipe::new("{}".to_owned(), "debian:12".to_owned(), layers)
    }

    #[tokio::test]
    async fn image_is_complete_and_a_sibling_sends_its_own_layer_only() {
        let f = fixture().await;
        let image = recipe(vec![f.layer("system"), f.layer("torch")]);
        let digest = f.push(&image, &["1", "latest"]).await.expect("pushed");
        {
            let state = f.server.state();
            let document: serde_json::Value = serde_json::from_slice(&state.manifests["1"]).expect("JSON");
            assert_eq!(state.manifests["1"], state.manifests["latest"]);
            assert_eq!(Digest::of(&state.manifests[digest.as_str()]), digest);
            assert_eq!(document["config"]["digest"], Digest::of(b"{}").as_str());
            let layers = document["layers"].as_array().expect("layers");
            for (layer, made) in layers.iter().zip(&image.layers) {
                let packed = &state.blobs[layer["digest"].as_str().expect("a digest")];
                assert_eq!(layer["size"], packed.len());
                let mut tar = Vec::new();
                let mut plain = flate2::read::MultiGzDecoder::new(packed.as_slice());
                std::io::Read::read_to_end(&mut plain, &mut tar).expect("gzip");
                assert_eq!(sha256_hex(&tar), made.hex());
            }
            assert_eq!(layers.len(), 2);
        }
        let sent = f.server.count("PATCH");
        assert_eq!(f.push(&image, &["2"]).await.expect("pushed"), digest, "the same bytes each time");
        assert_eq!(f.server.count("PATCH"), sent);
        let sibling = recipe(vec![image.layers[0].clone(), image.layers[1].clone(), f.layer("user")]);
        assert_ne!(f.push(&sibling, &["3"]).await.expect("pushed"), digest);
        assert_eq!(f.server.count("PATCH"), sent + 1);
    }

    #[tokio::test]
    async fn parts_that_nobody_has_are_named_and_nothing_is_sent() {
        let f = fixture().await;
        let (there, gone) = (f.layer("system"), f.layer("torch"));
        f.push(&recipe(vec![there.clone()]), &["1"]).await.expect("pushed");
        let sent = f.server.count("PATCH");
        for layer in [&there, &gone] {
            f.store.discard(layer.hex()).expect("removed");
        }
        // What the registry has need not be made.
        f.push(&recipe(vec![there.clone()]), &["2"]).await.expect("pushed");
        let error = f.push(&recipe(vec![there, gone]), &["3"]).await.expect_err("missing");
        let text = "cannot push the image: not in the cache any more:\n  - the layer `torch`";
        assert_eq!((error.to_string().as_str(), error.exit()), (text, Exit::Outside));
        assert!(error.hints()[0].contains("build --locked"), "{:?}", error.hints());
        assert_eq!(f.server.count("PATCH"), sent);
        assert!(!f.server.state().manifests.contains_key("3"));
    }
}
