//! Layers that another machine has finished: found by the hash of their inputs in a vendor directory or in the team's registry.
//!
//! They count if the lock records their digests, or where it records none, if the user trusts the registry. Else they are made
//! here, and compared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::container_layers::{KeptLayer, remember_taken, taken_before};
use crate::model::counted::counted;
use crate::model::lock::LayerRecord;
use crate::registry::Registry;
use crate::report::Reporter;
use crate::store::Store;
use crate::workflow::assemble::finished_error::FinishedLayerError;
use crate::workflow::assemble::listed_layers::{ListedLayers, Place};
use crate::workflow::assemble::shared_step::SharedStep;
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::LayerSources;
use crate::workflow::session::Session;

/// What an image is put together for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be used.
    Build,
    /// Its layers go into a vendor directory.
    Vendor,
    /// Something is compiled in it. Its layers may be others than those of its lock, and are published nowhere.
    Throwaway,
}

/// The layers of an image that other machines can use: those that need a container.
pub(crate) struct FinishedLayers {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) reporter: Arc<dyn Reporter>,
    pub(crate) sources: LayerSources,
    /// The layers that the lock records; empty: it records none.
    recorded: Vec<LayerRecord>,
    purpose: Purpose,
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

/// Layers of another machine that count.
pub(crate) struct FoundLayers {
    /// The layers, which the cache has now.
    pub(crate) layers: Vec<KeptLayer>,
    /// The place that listed them.
    pub(crate) from: String,
}

impl FinishedLayers {
    /// Those of an image whose lock records these layers.
    pub(crate) fn new(session: &Session<'_>, recorded: &[LayerRecord], purpose: Purpose) -> Self {
        let parts = (session.store.clone(), session.registry.clone(), Arc::clone(&session.reporter));
        Self::of_parts(parts, session.layer_sources.clone(), recorded, purpose)
    }

    pub(crate) fn of_parts(
        (store, registry, reporter): (Store, Registry, Arc<dyn Reporter>),
        sources: LayerSources,
        recorded: &[LayerRecord],
        purpose: Purpose,
    ) -> Self {
        let recorded = recorded.to_vec();
        Self { store, registry, reporter, sources, recorded, purpose, state: Mutex::default() }
    }

    /// Whether the cache is to get every layer as a file: where they go to a registry or into a directory.
    pub(crate) fn collects(&self) -> bool {
        match self.purpose {
            Purpose::Build => self.sources.writable().is_some(),
            Purpose::Vendor => true,
            Purpose::Throwaway => false,
        }
    }

    /// The size that the lock records of a tar.
    pub(super) fn recorded_size(&self, diff_id: &str) -> Option<u64> {
        self.recorded.iter().find(|layer| layer.diff_id == diff_id)?.size
    }

    /// Every layer so far.
    pub(crate) fn steps(&self) -> Vec<FinishedStep> {
        self.state().steps.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the layers of a key that another machine has finished and that count; `None`: they are made here.
    pub(crate) async fn find(
        &self,
        step: SharedStep,
        key: &str,
        title: &str,
    ) -> Result<Option<Vec<KeptLayer>>, CommandError> {
        Ok(self.find_listed(step, key, title).await?.map(|found| found.layers))
    }

    /// The same with the place they are from.
    pub(crate) async fn find_listed(
        &self,
        step: SharedStep,
        key: &str,
        title: &str,
    ) -> Result<Option<FoundLayers>, CommandError> {
        if let Some(layers) = self.taken_before(step, key)? {
            self.note(key, title, &layers, false);
            return Ok(Some(FoundLayers { layers, from: "the cache".to_owned() }));
        }
        let listed = match self.in_folder(key)? {
            Some(listed) => Some(listed),
            None => self.in_registry(key).await?,
        };
        let Some(listed) = listed else { return Ok(None) };
        let from = listed.place.text();
        if !self.counts(step, &listed, title)? {
            tracing::debug!(title, %from, "made here, since the lock records no layers to compare them with");
            self.state().unproven.insert(key.to_owned(), (from, listed.diff_ids));
            return Ok(None);
        }
        let Some(layers) = Box::pin(self.take(&listed, title)).await? else { return Ok(None) };
        tracing::debug!(title, %from, "taken from there instead of made");
        remember_taken(&self.store, key, &layers)?;
        self.note(key, title, &layers, matches!(listed.place, Place::Registry(..)));
        Ok(Some(FoundLayers { layers, from }))
    }

    /// Layers of this key that were taken earlier, if the lock records exactly these: its key and the digests were listed
    /// together, but only the lock vouches for them.
    fn taken_before(&self, step: SharedStep, key: &str) -> Result<Option<Vec<KeptLayer>>, CommandError> {
        if self.recorded.is_empty() {
            return Ok(None);
        }
        let Some(layers) = taken_before(&self.store, key)? else { return Ok(None) };
        let recorded = step.recorded(&self.recorded);
        let is_recorded = layers.iter().map(KeptLayer::diff_id).eq(recorded.iter().map(|one| &*one.diff_id))
            && step.counts().contains(&layers.len());
        Ok(is_recorded.then_some(layers))
    }

    /// Takes note of layers that the cache had or that were made here.
    pub(crate) fn made(&self, key: &str, title: &str, layers: &[KeptLayer]) -> Result<(), CommandError> {
        let diff_ids: Vec<String> = layers.iter().map(KeptLayer::diff_id).collect();
        self.compare(key, title, &diff_ids)?;
        self.note(key, title, layers, false);
        Ok(())
    }

    /// One entry a key: after damage in the cache an image is put together again.
    fn note(&self, key: &str, title: &str, layers: &[KeptLayer], is_published: bool) {
        let mut state = self.state();
        let old = state.steps.iter().position(|step| step.key == key).map(|at| state.steps.remove(at));
        let is_published = is_published || old.is_some_and(|old| old.is_published && old.layers == layers);
        let (key, title, layers) = (key.to_owned(), title.to_owned(), layers.to_vec());
        state.steps.push(FinishedStep { key, title, layers, is_published });
    }

    /// Compares layers that were made here with those that were found under their key.
    pub(crate) fn compare(&self, key: &str, title: &str, made: &[String]) -> Result<(), FinishedLayerError> {
        let unproven = self.state().unproven.remove(key);
        match unproven.filter(|(_, found)| found != made) {
            None => Ok(()),
            Some((from, found)) => {
                let (title, found, made) = (title.to_owned(), found.join(" "), made.join(" "));
                Err(FinishedLayerError::OtherThanMade { from, title, found, made })
            }
        }
    }

    /// Whether listed layers count. With records of the lock they are exactly those of the step, in their order: others are an
    /// error, but for an image of other layers.
    fn counts(
        &self,
        step: SharedStep,
        listed: &ListedLayers,
        title: &str,
    ) -> Result<bool, FinishedLayerError> {
        let (from, title, number) = (listed.place.text(), title.to_owned(), listed.diff_ids.len());
        let recorded = step.recorded(&self.recorded);
        let is_recorded = listed.diff_ids.iter().eq(recorded.iter().map(|layer| &layer.diff_id));
        if self.purpose != Purpose::Throwaway && !self.recorded.is_empty() && !is_recorded {
            let other = listed.diff_ids.iter().zip(&recorded).find(|(one, layer)| **one != layer.diff_id);
            let found = match other {
                Some((found, _)) if number == recorded.len() => found.clone(),
                _ => format!("{} instead of {}", counted(number, "layer"), recorded.len()),
            };
            return Err(FinishedLayerError::NotRecorded { from, title, found });
        }
        if !step.counts().contains(&number) {
            let found = format!("{number} layers ({title})");
            return Err(FinishedLayerError::Invalid { from, found });
        }
        Ok(is_recorded && !self.recorded.is_empty())
    }
}
