//! Layers that only the engine has, those of a base from a registry: brought into the cache once, as they are.
#![expect(clippy::disallowed_methods, reason = "edge: reads the engine's archive")]

use camino::Utf8Path;

use super::error::LayerError;
use super::kept::adopt;
use crate::archive::saved_layers::layers_of;
use crate::engine::Engine;
use crate::store::Store;

/// Brings the layers of an image of the engine into the cache, each under the digest of its tar.
pub async fn keep_layers_of(engine: &dyn Engine, store: &Store, reference: &str) -> Result<(), LayerError> {
    let saved = store.temp_file()?;
    let path = Utf8Path::from_path(saved.path()).expect("the cache's path is UTF-8");
    engine.save(reference, path.to_owned()).await?;
    let (archive, store) = (fs_err::File::open(saved.path())?.into_file(), store.clone());
    let kept = tokio::task::spawn_blocking(move || {
        let layers = layers_of(archive, || store.temp_file().map_err(std::io::Error::other))?;
        for layer in layers {
            adopt(&store, layer)?;
        }
        Ok::<_, LayerError>(())
    });
    kept.await.map_err(std::io::Error::other)?
}
