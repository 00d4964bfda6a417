//! An image that was put together here, straight from wheels and the cache into a registry: no engine compresses it again.

use std::sync::Arc;

use bytes::Bytes;

use crate::assemble::LAYOUT_VERSION;
use crate::model::image::manifest::{BlobDescriptor, MANIFEST_TYPE, manifest};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;
use crate::registry::{Blob, BlobOrigin, ManifestDocument, Registry};
use crate::report::Reporter;
use crate::store::Store;
use crate::store::packed_layers::{PackedLayer, packed_layer, remember_packed};
use crate::workflow::assemble::{Recipe, RemadeLayer, ZstdLayer};
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
    let pushed = Pushed { recipe, compression: session.layer_compression };
    push_recipe((&session.store, &session.registry), pushed, (target, tags), &session.reporter).await
}

/// What is pushed.
#[derive(Clone, Copy)]
pub(crate) struct Pushed<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) compression: LayerCompression,
}

/// The name of a compressed form in records: whatever changes its bytes changes it.
fn form(compression: LayerCompression) -> String {
    match compression {
        LayerCompression::Gzip => LAYOUT_VERSION.to_string(),
        LayerCompression::Zstd(level) => format!("zstd-{level}-{}", zstd::zstd_safe::version_number()),
    }
}

/// Pushes an image by its recipe: layers that the registry lacks are made from what the cache has.
pub(crate) async fn push_recipe(
    (store, registry): (&Store, &Registry),
    Pushed { recipe, compression }: Pushed<'_>,
    (target, tags): (&ImageRef, &[&str]),
    reporter: &Arc<dyn Reporter>,
) -> Result<Digest, CommandError> {
    let form = form(compression);
    let mut blobs = vec![config_blob(&recipe.config)];
    blobs.extend(recipe.layers.iter().map(|layer| {
        let known = packed_layer(store, layer.hex(), &form);
        let layer = RemadeLayer { layer: layer.clone(), store: store.clone() };
        layer_blob((layer, compression), known, target)
    }));
    check_complete((store, registry), recipe, &blobs[1..], target).await?;
    let pushed = registry.push_blobs(target, &blobs, reporter).await?;
    let descriptors: Vec<BlobDescriptor> = pushed.iter().map(|(blob, _)| blob.clone()).collect();
    for (layer, blob) in recipe.layers.iter().zip(&descriptors[1..]) {
        remember_packed(store, (layer.hex(), &form), blob, &target.name())?;
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
    let manifest = manifest(&descriptors[0], &descriptors[1..], compression);
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

fn layer_blob(
    (layer, compression): (RemadeLayer, LayerCompression),
    known: Option<PackedLayer>,
    target: &ImageRef,
) -> Blob {
    let repositories = known.iter().flat_map(|known| known.repositories.iter().rev());
    let parsed = repositories.filter_map(|name| name.parse::<ImageRef>().ok());
    let elsewhere = parsed
        .filter(|other| other.registry() == target.registry() && other.repository() != target.repository());
    let is_gzip = compression == LayerCompression::Gzip;
    Blob {
        title: layer.layer.title.clone(),
        mount_from: elsewhere.map(|other| other.repository().to_owned()).collect(),
        known: layer.layer.known().filter(|_| is_gzip).or(known.map(|known| known.blob)),
        content: match compression {
            LayerCompression::Gzip => Arc::new(layer),
            LayerCompression::Zstd(level) => Arc::new(ZstdLayer { layer, level }),
        },
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
#[expect(clippy::disallowed_methods, reason = "tests damage the cache")]
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
            self.push_as(recipe, tags, LayerCompression::Gzip).await
        }

        async fn push_as(
            &self,
            recipe: &Recipe,
            tags: &[&str],
            compression: LayerCompression,
        ) -> Result<Digest, CommandError> {
            let settings = FetchSettings::default();
            let fetch = Fetcher::new(&settings).expect("a client");
            let registry = Registry::new(fetch, RegistrySettings::default());
            let target = format!("{}/team/torch", self.server.host).parse().expect("a reference");
            let reporter: Arc<dyn Reporter> = Arc::new(NullReporter);
            let pushed = Pushed { recipe, compression };
            push_recipe((&self.store, &registry), pushed, (&target, tags), &reporter).await
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
    async fn both_forms_of_a_layer_lie_in_a_repository_and_are_known_apart() {
        let f = fixture().await;
        let image = recipe(vec![f.layer("system"), f.layer("torch")]);
        let gzip = f.push(&image, &["1"]).await.expect("pushed");
        let zstd = f.push_as(&image, &["2"], LayerCompression::Zstd(3)).await.expect("pushed");
        assert_ne!(gzip, zstd);
        let sent = f.server.count("PATCH");
        {
            let state = f.server.state();
            let document: serde_json::Value = serde_json::from_slice(&state.manifests["2"]).expect("JSON");
            for (layer, made) in document["layers"].as_array().expect("layers").iter().zip(&image.layers) {
                assert_eq!(layer["mediaType"], "application/vnd.oci.image.layer.v1.tar+zstd");
                let packed = &state.blobs[layer["digest"].as_str().expect("a digest")];
                assert_eq!(sha256_hex(&zstd::decode_all(packed.as_slice()).expect("zstd")), made.hex());
            }
        }
        assert_eq!(f.push_as(&image, &["3"], LayerCompression::Zstd(3)).await.expect("pushed"), zstd);
        assert_eq!(f.push(&image, &["4"]).await.expect("pushed"), gzip);
        assert_eq!(f.server.count("PATCH"), sent, "nothing is sent twice");
        let path = f.store.blob_path(image.layers[0].hex()).expect("a path");
        fs_err::write(path, "other").expect("damaged");
        let error = f.push_as(&image, &["5"], LayerCompression::Zstd(4)).await.expect_err("damaged");
        assert!(error.to_string().contains("the cache has other content"), "{error}");
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
