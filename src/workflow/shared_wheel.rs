//! The wheel of a source build in the registry of layers, under the key of everything that it is made of.
//!
//! It counts as a layer does: if a lock file records its SHA-256. Else it is compiled here, and compared.

use std::sync::Arc;

use crate::container_layers::KeptLayer;
use crate::model::compat::Matrix;
use crate::model::image::component::ComponentKind;
use crate::model::lock::{LayerRecord, Lock, LockedWheel};
use crate::packages::LocalWheel;
use crate::registry::Registry;
use crate::report::{Event, Reporter};
use crate::source_build::cached_wheel;
use crate::store::Store;
use crate::workflow::assemble::{FinishedLayerError, FinishedLayers, Purpose, SharedStep};
use crate::workflow::compiled_wheels::compiled_wheels;
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::LayerSources;
use crate::workflow::session::Session;

/// The wheel of a source build, as other machines may have published it.
pub(crate) struct SharedWheel<'a> {
    finished: FinishedLayers,
    key: &'a str,
    /// What it is called in messages: `wheel of causal-conv1d 1.7.0`.
    title: String,
    recorded: Option<&'a LockedWheel>,
}

impl<'a> SharedWheel<'a> {
    /// That of a key. `built`: what is built, with its version; `recorded`: the wheel of a lock file that the user has.
    pub(crate) fn new(
        session: &Session<'_>,
        key: &'a str,
        built: &str,
        recorded: Option<&'a LockedWheel>,
    ) -> Self {
        let parts = (session.store.clone(), session.registry.clone(), Arc::clone(&session.reporter));
        Self::of_parts(parts, session.layer_sources.clone(), (key, built), recorded)
    }

    pub(super) fn of_parts(
        parts: (Store, Registry, Arc<dyn Reporter>),
        sources: LayerSources,
        (key, built): (&'a str, &str),
        recorded: Option<&'a LockedWheel>,
    ) -> Self {
        let finished = FinishedLayers::of_parts(parts, sources, &records(recorded), Purpose::Build);
        Self { finished, key, title: format!("wheel of {built}"), recorded }
    }

    /// Returns the wheel, in the cache, if another machine has published one that counts.
    pub(crate) async fn find(&self) -> Result<Option<LocalWheel>, CommandError> {
        let found = self.finished.find_listed(SharedStep::SourceWheel, self.key, &self.title).await?;
        // Only what a lock records is found.
        let (Some(found), Some(recorded)) = (found, self.recorded) else { return Ok(None) };
        let wheel = LocalWheel::locked(recorded, &self.finished.store)?;
        if let Some(wheel) = &wheel {
            let text = format!("using the {} from {}: {}", self.title, found.from, wheel.file);
            self.finished.reporter.report(Event::Note { text });
        }
        Ok(wheel)
    }

    /// Compares a wheel of this machine with the one that was found and did not count.
    pub(crate) fn compare(&self, wheel: &LocalWheel) -> Result<(), FinishedLayerError> {
        self.finished.compare(self.key, &self.title, &[as_layer(wheel).diff_id()])
    }
}

/// The one layer that stands for a wheel: its bytes are those of the wheel.
fn as_layer(wheel: &LocalWheel) -> KeptLayer {
    KeptLayer { sha256: wheel.sha256.clone(), size: wheel.size }
}

fn records(recorded: Option<&LockedWheel>) -> Vec<LayerRecord> {
    let record = |wheel: &LockedWheel| LayerRecord {
        component: ComponentKind::User.id().to_owned(),
        diff_id: format!("sha256:{}", wheel.sha256),
        size: wheel.size,
        digest: None,
        compressed_size: None,
    };
    recorded.map(record).into_iter().collect()
}

/// Takes a wheel of a lock that was compiled elsewhere into the cache, if the registry of layers has it.
pub(crate) async fn fetch_locked(
    session: &Session<'_>,
    lock: &Lock,
    wheel: &LockedWheel,
) -> Result<(), CommandError> {
    for (key, compiled) in compiled_wheels(lock, &session.matrix) {
        if compiled.name == wheel.name {
            let built = format!("{} {}", wheel.name, wheel.version);
            SharedWheel::new(session, &key, &built, Some(wheel)).find().await?;
        }
    }
    Ok(())
}

/// Adds the wheels of a lock that this machine compiled to the layers that are published. A wheel that the user gave, or that
/// another machine compiled, is not one of them.
pub(crate) fn note_compiled(
    finished: &FinishedLayers,
    lock: &Lock,
    matrix: &Matrix,
) -> Result<(), CommandError> {
    if finished.sources.writable().is_none() {
        return Ok(());
    }
    for (key, wheel) in compiled_wheels(lock, matrix) {
        if let Some(made) = cached_wheel(&finished.store, &key)?.filter(|made| made.sha256 == wheel.sha256) {
            finished.made(&key, &made.file, &[as_layer(&made)])?;
        }
    }
    Ok(())
}
