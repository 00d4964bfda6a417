//! Layers that another machine has finished: found by the hash of their inputs in a vendor directory or in the team's registry.
//!
//! They count if the lock records their digests, or where it records none, if the user trusts the registry. Else they are made
//! here, and compared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;

use crate::container_layers::{KeptLayer, LayerError, keep_packed};
use crate::fetch::FetchError;
use crate::model::image::config::ConfiguredLayers;
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_ref::ImageRef;
use crate::model::lock::LayerRecord;
use crate::registry::{Registry, RegistryError};
use crate::report::Reporter;
use crate::store::Store;
use crate::store::vendor_dir::{VendorError, VendorProblem, verify_file};
use crate::store::vendor_layers;
use crate::workflow::assemble::finished_error::FinishedLayerError;
use crate::workflow::assemble::layer::blocking;
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::{LayerSources, reference_of};
use crate::workflow::session::Session;

/// Bytes that a compressed layer may have beyond its tar.
const EXCESS: u64 = 1 << 20;

/// The layers of an image that other machines can use: those that need a container.
pub(crate) struct FinishedLayers {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) reporter: Arc<dyn Reporter>,
    pub(crate) sources: LayerSources,
    /// Digests and sizes of tars that the lock records; empty: it records none.
    recorded: BTreeMap<String, Option<u64>>,
    collects: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    steps: Vec<FinishedStep>,
    /// Layers that nothing vouches for, by key: the place, and the digests there.
    unproven: BTreeMap<String, (String, Vec<String>)>,
}

/// Layers with the hash of what they are made of.
#[derive(Debug, Clone)]
pub(crate) struct FinishedStep {
    /// The hash of their inputs, hex.
    pub(crate) key: String,
    /// What they hold.
    pub(crate) title: String,
    /// The layers, which the cache has.
    pub(crate) layers: Vec<KeptLayer>,
    /// Whether the registry has them.
    pub(crate) is_published: bool,
}

/// Layers that a place lists under a key.
struct Listed {
    place: Place,
    /// The digests of their tars.
    diff_ids: Vec<String>,
}

enum Place {
    Folder(Utf8PathBuf),
    Registry(ImageRef, Vec<BlobDescriptor>),
}

impl Place {
    fn text(&self) -> String {
        match self {
            Self::Folder(folder) => folder.to_string(),
            Self::Registry(image, _) => image.to_string(),
        }
    }
}

impl FinishedLayers {
    /// Those of an image whose lock records these layers. Where they go to a registry, or `collects` is set, the cache gets all
    /// of them.
    pub(crate) fn new(session: &Session<'_>, recorded: &[LayerRecord], collects: bool) -> Self {
        let parts = (session.store.clone(), session.registry.clone(), Arc::clone(&session.reporter));
        let collects = collects || session.layer_sources.writable().is_some();
        Self::of_parts(parts, session.layer_sources.clone(), recorded, collects)
    }

    pub(crate) fn of_parts(
        (store, registry, reporter): (Store, Registry, Arc<dyn Reporter>),
        sources: LayerSources,
        recorded: &[LayerRecord],
        collects: bool,
    ) -> Self {
        let recorded = recorded.iter().map(|layer| (layer.diff_id.clone(), layer.size)).collect();
        Self { store, registry, reporter, sources, recorded, collects, state: Mutex::default() }
    }

    /// Whether the cache is to get every layer as a file.
    pub(super) fn collects(&self) -> bool {
        self.collects
    }

    /// Every layer so far.
    pub(crate) fn steps(&self) -> Vec<FinishedStep> {
        self.state().steps.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the layers of a key that another machine has finished and that count; `None`: they are made here.
    pub(crate) async fn find(&self, key: &str, title: &str) -> Result<Option<Vec<KeptLayer>>, CommandError> {
        let listed = match self.in_folder(key) {
            Some(listed) => Some(listed),
            None => self.in_registry(key).await?,
        };
        let Some(listed) = listed else { return Ok(None) };
        let from = listed.place.text();
        if !self.counts(&listed, title)? {
            tracing::debug!(title, %from, "made here, since the lock records no layers to compare them with");
            self.state().unproven.insert(key.to_owned(), (from, listed.diff_ids));
            return Ok(None);
        }
        let Some(layers) = Box::pin(self.take(&listed, title)).await? else { return Ok(None) };
        tracing::debug!(title, %from, "taken from there instead of made");
        let is_published = matches!(listed.place, Place::Registry(..));
        let (key, title) = (key.to_owned(), title.to_owned());
        self.state().steps.push(FinishedStep { key, title, layers: layers.clone(), is_published });
        Ok(Some(layers))
    }

    /// Takes note of layers that the cache had or that were made here.
    pub(crate) fn made(&self, key: &str, title: &str, layers: &[KeptLayer]) -> Result<(), CommandError> {
        let diff_ids: Vec<String> = layers.iter().map(KeptLayer::diff_id).collect();
        self.compare(key, title, &diff_ids)?;
        let (key, title, layers) = (key.to_owned(), title.to_owned(), layers.to_vec());
        self.state().steps.push(FinishedStep { key, title, layers, is_published: false });
        Ok(())
    }

    /// Compares layers that were made here with those that were found under their key.
    pub(super) fn compare(&self, key: &str, title: &str, made: &[String]) -> Result<(), FinishedLayerError> {
        let unproven = self.state().unproven.remove(key);
        match unproven.filter(|(_, found)| found != made) {
            None => Ok(()),
            Some((from, found)) => {
                let (title, found, made) = (title.to_owned(), found.join(" "), made.join(" "));
                Err(FinishedLayerError::OtherThanMade { from, title, found, made })
            }
        }
    }

    /// Whether listed layers count. With records of the lock others are an error.
    fn counts(&self, listed: &Listed, title: &str) -> Result<bool, FinishedLayerError> {
        if self.recorded.is_empty() {
            let is_trusted = self.sources.repository().is_some_and(|found| found.trusted);
            return Ok(is_trusted && matches!(listed.place, Place::Registry(..)));
        }
        match listed.diff_ids.iter().find(|diff_id| !self.recorded.contains_key(*diff_id)) {
            None => Ok(true),
            Some(found) => {
                let (from, title, found) = (listed.place.text(), title.to_owned(), found.clone());
                Err(FinishedLayerError::NotRecorded { from, title, found })
            }
        }
    }

    fn in_folder(&self, key: &str) -> Option<Listed> {
        let folder = self.sources.folder.as_ref()?;
        let layers = vendor_layers::read(folder, key)?;
        let diff_ids = layers.iter().map(|sha256| format!("sha256:{sha256}")).collect();
        Some(Listed { place: Place::Folder(folder.clone()), diff_ids })
    }

    async fn in_registry(&self, key: &str) -> Result<Option<Listed>, CommandError> {
        let Some(repository) = self.sources.repository() else { return Ok(None) };
        let image = reference_of(repository, key);
        let published = match self.registry.published(&image).await {
            Ok(published) => published,
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
        Ok(Some(Listed { place: Place::Registry(image, published.layers), diff_ids }))
    }

    /// Brings layers that count into the cache; `None`: the registry failed.
    async fn take(&self, listed: &Listed, title: &str) -> Result<Option<Vec<KeptLayer>>, CommandError> {
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
                            let path =
                                verify_file(&folder, &sha256).map_err(|what| VendorError::Damaged {
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
        let size = self.recorded.get(diff_id).copied().flatten();
        if size.is_some_and(|size| blob.size > size.saturating_add(EXCESS)) {
            let found = format!("a layer of {} bytes, which is larger than its tar", blob.size);
            return Err(FinishedLayerError::Invalid { from: image.to_string(), found }.into());
        }
        // Another build may be downloading the same layer, and removes the compressed file.
        let sha256 = diff_id.trim_start_matches("sha256:").to_owned();
        let _alone = store.lock(&format!("finished-{}", &sha256[..16])).await?;
        if store.find(&sha256)?.is_some() {
            return Ok(true);
        }
        disk_space::check_folder(store.cache_dir().as_str(), blob.size.saturating_add(size.unwrap_or(0)))?;
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
            Err(error @ RegistryError::NotFound { .. }) => {
                tracing::debug!(%error, title, "made here: the registry lost a layer");
                return Ok(false);
            }
            Err(error) => return sources.fail(error, &**reporter).map(|()| false),
        };
        let store = store.clone();
        match blocking(move || keep_packed(&store, &packed, &sha256, size)).await? {
            Ok(_) => Ok(true),
            Err(LayerError::OtherLayer { wanted, found }) => wrong(wanted, found),
            Err(error) => Err(error.into()),
        }
    }
}
