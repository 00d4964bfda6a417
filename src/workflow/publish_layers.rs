//! Finished layers into the repository of the team, where it lacks them: `[registry] layers-write`.

use crate::container_layers::KeptLayer;
use crate::engine::plain_config;
use crate::model::image::config::ConfiguredLayers;
use crate::model::versions::Machine;
use crate::settings::image_registry::LayerRepository;
use crate::workflow::assemble::{
    FinishedLayerError, FinishedLayers, FinishedStep, LayerSource, Recipe, RecipeLayer,
};
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::{is_final, is_refusal, reference_of};
use crate::workflow::push_assembled::push_recipe;

/// Puts the layers of an image that was built into the repository, as far as it lacks them. One that is not writable or down
/// costs a warning; one that has other layers under the same inputs is an error.
pub(crate) async fn publish_layers(finished: &FinishedLayers, machine: Machine) -> Result<(), CommandError> {
    let Some(repository) = finished.sources.writable() else { return Ok(()) };
    for step in finished.steps().into_iter().filter(|step| !step.is_published) {
        let Err(error) = publish(finished, (repository, machine), &step).await else { continue };
        let Some(refused) = error.downcast_ref().filter(|error| !is_final(error)) else { return Err(error) };
        let text = format!("cannot put layers into `{}`: {}", repository.repository, refused.reason());
        finished.sources.give_up(text, refused, &*finished.reporter);
        return Ok(());
    }
    Ok(())
}

async fn publish(
    finished: &FinishedLayers,
    (repository, machine): (&LayerRepository, Machine),
    step: &FinishedStep,
) -> Result<(), CommandError> {
    let target = reference_of(repository, &step.key);
    let diff_ids: Vec<String> = step.layers.iter().map(KeptLayer::diff_id).collect();
    let published = match finished.registry.published(&target).await {
        Err(error) if is_refusal(&error) => None,
        published => published?,
    };
    if let Some(published) = published {
        let there = serde_json::from_slice::<ConfiguredLayers>(&published.config);
        let there = there.map(|config| config.rootfs.diff_ids).unwrap_or_default();
        let there: Vec<String> = there.iter().map(ToString::to_string).collect();
        if there == diff_ids {
            return Ok(());
        }
        let (from, title) = (target.to_string(), step.title.clone());
        let (found, made) = (there.join(" "), diff_ids.join(" "));
        return Err(FinishedLayerError::OtherThanMade { from, title, found, made }.into());
    }
    let layer = |(number, diff_id): (usize, &String)| RecipeLayer {
        title: if diff_ids.len() == 1 {
            step.title.clone()
        } else {
            format!("{} {}", step.title, number + 1)
        },
        diff_id: diff_id.clone(),
        packed: None,
        source: LayerSource::Kept,
    };
    let layers = diff_ids.iter().enumerate().map(layer).collect();
    let config = plain_config(machine, &diff_ids);
    let config = String::from_utf8_lossy(&config).into_owned();
    let recipe = Recipe::new(config, String::new(), layers);
    let (parts, tag) = ((&finished.store, &finished.registry), target.wanted());
    push_recipe(parts, &recipe, (&target, &[tag]), &finished.reporter).await?;
    Ok(())
}

#[cfg(test)]
#[path = "publish_layers_tests.rs"]
mod tests;
