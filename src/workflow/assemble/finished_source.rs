//! Where finished layers come from: a vendor directory, or the team's registry. Brings those that count into the cache.

use crate::container_layers::{KeptLayer, LARGEST_FINISHED, LayerError, keep_packed};
use crate::fetch::FetchError;
use crate::model::image::config::ConfiguredLayers;
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_ref::ImageRef;
use crate::registry::RegistryError;
use crate::store::vendor_dir::{VendorError, VendorProblem, verify_file};
use crate::store::vendor_layers;
use crate::workflow::assemble::finished::FinishedLayers;
use crate::workflow::assemble::finished_error::FinishedLayerError;
use crate::workflow::assemble::layer::blocking;
use crate::workflow::assemble::listed_layers::{ListedLayers, Place};
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::reference_of;

/// Bytes that a compressed layer may have beyond its tar.
const EXCESS: u64 = 1 << 20;

impl FinishedLayers {
    pub(super) fn in_folder(&self, key: &str) -> Result<Option<ListedLayers>, CommandError> {
        let Some(folder) = &self.sources.folder else { return Ok(None) };
        let Some(layers) = vendor_layers::read(folder, key)? else { return Ok(None) };
        let diff_ids = layers.iter().map(|sha256| format!("sha256:{sha256}")).collect();
        Ok(Some(ListedLayers { place: Place::Folder(folder.clone()), diff_ids }))
    }

    pub(super) async fn in_registry(&self, key: &str) -> Result<Option<ListedLayers>, CommandError> {
        let Some(repository) = self.sources.repository() else { return Ok(None) };
        let image = reference_of(repository, key);
        let published = match self.registry.published(&image).await {
            Ok(published) => published,
            Err(RegistryError::Kind { kind, .. }) => {
                return Err(FinishedLayerError::Invalid { from: image.to_string(), found: kind }.into());
            }
            Err(error) => {
                self.sources.fail(error, &*self.reporter)?;
                None
            }
        };
        let Some(published) = published else { return Ok(None) };
        let invalid = |found: String| FinishedLayerError::Invalid { from: image.to_string(), found };
        let config: ConfiguredLayers =
            serde_json::from_slice(&published.config).map_err(|error| invalid(error.to_string()))?;
        let diff_ids: Vec<String> = config.rootfs.diff_ids.iter().map(ToString::to_string).collect();
        if diff_ids.len() != published.layers.len() {
            let (listed, there) = (diff_ids.len(), published.layers.len());
            return Err(invalid(format!("{there} layers, {listed} in the configuration")).into());
        }
        Ok(Some(ListedLayers { place: Place::Registry(image, published.layers), diff_ids }))
    }

    /// Brings layers that count into the cache; `None`: the registry failed.
    pub(super) async fn take(
        &self,
        listed: &ListedLayers,
        title: &str,
    ) -> Result<Option<Vec<KeptLayer>>, CommandError> {
        let store = &self.store;
        let mut kept = Vec::new();
        for (number, diff_id) in listed.diff_ids.iter().enumerate() {
            let sha256 = diff_id.trim_start_matches("sha256:").to_owned();
            if store.find(&sha256)?.is_none() {
                match &listed.place {
                    Place::Folder(folder) => {
                        let (folder, store, sha256) = (folder.clone(), store.clone(), sha256.clone());
                        let title = title.to_owned();
                        blocking(move || {
                            let path = verify_file(&folder, &sha256).map_err(|what| VendorError::Layers {
                                folder: folder.to_string(),
                                wrong: vec![VendorProblem::of(what, title, &sha256).text()],
                            })?;
                            Ok::<_, CommandError>(store.take(&path, &sha256).map(drop)?)
                        })
                        .await??;
                    }
                    Place::Registry(image, blobs) => {
                        if !self.fetch(image, (&blobs[number], diff_id), title).await? {
                            return Ok(None);
                        }
                    }
                }
            }
            let path = store.blob_path(&sha256)?;
            kept.push(KeptLayer { size: fs_err::metadata(path)?.len(), sha256 });
        }
        Ok(Some(kept))
    }

    /// Downloads a layer and unpacks it into the cache; false: the registry failed.
    async fn fetch(
        &self,
        image: &ImageRef,
        (blob, diff_id): (&BlobDescriptor, &str),
        title: &str,
    ) -> Result<bool, CommandError> {
        let Self { registry, store, reporter, sources, .. } = self;
        let size = self.recorded_size(diff_id);
        let most = size.unwrap_or(LARGEST_FINISHED).min(LARGEST_FINISHED);
        if blob.size > most.saturating_add(EXCESS) {
            let found = format!("a layer of {} bytes, whose tar may have {most}", blob.size);
            return Err(FinishedLayerError::Invalid { from: image.to_string(), found }.into());
        }
        // Another build may be downloading the same layer.
        let sha256 = diff_id.trim_start_matches("sha256:").to_owned();
        let _alone = store.lock(&format!("finished-{}", &sha256[..16])).await?;
        if store.find(&sha256)?.is_some() {
            return Ok(true);
        }
        // A tar of unknown size is hardly smaller than its compressed form.
        let need = blob.size.saturating_add(size.unwrap_or(blob.size).min(most));
        disk_space::check_folder(store.cache_dir().as_str(), need)?;
        let wrong = |wanted: String, found: String| {
            let (from, title) = (image.to_string(), title.to_owned());
            Err(FinishedLayerError::OtherContent { from, title, wanted, found }.into())
        };
        let packed = match registry.fetch_blob(image, (blob, title), store, reporter).await {
            Ok(packed) => packed,
            Err(RegistryError::WrongDigest { wanted, found, .. }) => {
                return wrong(wanted.to_string(), found.to_string());
            }
            Err(RegistryError::Unreachable { source: FetchError::TooLarge { limit, .. }, .. }) => {
                return wrong(blob.digest.to_string(), format!("more than {limit} bytes"));
            }
            Err(RegistryError::NotFound { .. }) => {
                sources.report_lost(image, title, &**reporter);
                return Ok(false);
            }
            Err(error) => return sources.fail(error, &**reporter).map(|()| false),
        };
        let store = store.clone();
        match blocking(move || keep_packed(&store, packed.path(), &sha256, most)).await? {
            Ok(_) => Ok(true),
            Err(LayerError::Io(cause)) => {
                let (from, title) = (image.to_string(), title.to_owned());
                Err(FinishedLayerError::Unpack { from, title, cause }.into())
            }
            Err(LayerError::OtherLayer { wanted, found }) => wrong(wanted, found),
            Err(error) => Err(error.into()),
        }
    }
}
