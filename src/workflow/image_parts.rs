//! The parts of an assembled image outside the engine: what its layers are made of, and what of it is missing.

use crate::container_layers::{LayerError, keep_layers_of};
use crate::engine::EngineError;
use crate::failure::{Exit, Failure};
use crate::model::counted::listed;
use crate::store::Store;
use crate::workflow::assemble::{LayerSource, OF_BASE, Recipe, RecipeLayer, RemadeLayer};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// Neither the cache nor the engine nor the registry has parts of an image.
#[derive(Debug, thiserror::Error)]
#[error("cannot {purpose} the image: not in the cache any more:{}", listed(parts))]
pub(crate) struct MissingParts {
    /// The verb that needs them.
    pub(crate) purpose: &'static str,
    pub(crate) parts: Vec<String>,
}

impl Failure for MissingParts {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        let then = self.purpose;
        let of_base = self.parts.iter().any(|part| part == OF_BASE);
        let base = of_base
            .then(|| format!("the engine has the layers of the base: {then} the image once while it runs"));
        let only_base = self.parts.iter().all(|part| part == OF_BASE);
        let again = format!(
            "build the image again with `envforge build --locked`, which brings them back, then {then} it"
        );
        base.into_iter().chain((!only_base).then_some(again)).collect()
    }
}

/// The layers of a recipe for an export, or every part of them that is missing.
pub(crate) fn whole_layers(store: &Store, recipe: &Recipe) -> Result<Vec<RemadeLayer>, MissingParts> {
    let remade = |layer: &RecipeLayer| RemadeLayer { layer: layer.clone(), store: store.clone() };
    let layers: Vec<RemadeLayer> = recipe.layers.iter().map(remade).collect();
    let parts: Vec<String> = layers.iter().flat_map(RemadeLayer::missing).collect();
    if parts.is_empty() { Ok(layers) } else { Err(MissingParts { purpose: "export", parts }) }
}

/// Brings the layers of a base into the cache that only the engine has.
pub(crate) async fn bring_base(session: &Session<'_>, recipe: &Recipe) -> Result<(), CommandError> {
    let is_absent = |layer: &RecipeLayer| {
        let layer = RemadeLayer { layer: layer.clone(), store: session.store.clone() };
        matches!(layer.layer.source, LayerSource::Base { .. }) && !layer.missing().is_empty()
    };
    if !recipe.layers.iter().any(is_absent) {
        return Ok(());
    }
    match keep_layers_of(&*session.engine, &session.store, &recipe.base).await {
        Err(LayerError::Engine(EngineError::NoSuchImage { .. })) => Ok(()),
        kept => Ok(kept?),
    }
}
