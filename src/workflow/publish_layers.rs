//! Finished layers into the repository of the team, where it lacks them: `[registry] layers-write`.

use serde_json::{Value, json};

use crate::container_layers::KeptLayer;
use crate::model::image::config::ConfiguredLayers;
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;
use crate::model::versions::Machine;
use crate::settings::image_registry::LayerRepository;
use crate::workflow::assemble::{
    FinishedLayerError, FinishedLayers, FinishedStep, LayerSource, Recipe, RecipeLayer,
};
use crate::workflow::error::CommandError;
use crate::workflow::layer_sources::{is_final, may_be_absent, reference_of};
use crate::workflow::push_assembled::{Pushed, push_recipe};

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
        Err(error) if may_be_absent(&error) => {
            finished.sources.report_unread(&error, &*finished.reporter);
            None
        }
        published => published?,
    };
    if let Some(published) = published {
        let there: Vec<String> = serde_json::from_slice::<ConfiguredLayers>(&published.config)
            .map(|config| config.rootfs.diff_ids.iter().map(ToString::to_string).collect())
            .unwrap_or_default();
        let is_same = there == diff_ids;
        if is_same && has_all(finished, &target, &published.layers).await? {
            return Ok(());
        }
        if !is_same {
            return Err(other_than_made(&target, step, &there, &diff_ids));
        }
        tracing::debug!(%target, "puts layers there again that it lost");
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
    let layers: Vec<RecipeLayer> = diff_ids.iter().enumerate().map(layer).collect();
    let recipe = Recipe::new(config(machine, &layers), String::new(), layers);
    let (parts, tag) = ((&finished.store, &finished.registry), target.wanted());
    // Builds read them themselves.
    let pushed = Pushed { recipe: &recipe, compression: LayerCompression::Gzip };
    push_recipe(parts, pushed, (&target, &[tag]), &finished.reporter).await?;
    Ok(())
}

/// The configuration of layers that are no whole image, with what each of them holds.
fn config(machine: Machine, layers: &[RecipeLayer]) -> String {
    let diff_ids: Vec<&str> = layers.iter().map(|layer| layer.diff_id.as_str()).collect();
    let history: Vec<Value> = layers.iter().map(|layer| json!({ "created_by": layer.title })).collect();
    json!({
        "architecture": machine.debian(), "os": "linux", "config": {}, "history": history,
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
    })
    .to_string()
}

/// Whether the repository has every layer that it lists.
async fn has_all(
    finished: &FinishedLayers,
    target: &ImageRef,
    layers: &[BlobDescriptor],
) -> Result<bool, CommandError> {
    for layer in layers {
        if !finished.registry.has_blob(target, layer).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn other_than_made(
    target: &ImageRef,
    step: &FinishedStep,
    there: &[String],
    made: &[String],
) -> CommandError {
    let (from, title) = (target.to_string(), step.title.clone());
    FinishedLayerError::OtherThanMade { from, title, found: there.join(" "), made: made.join(" ") }.into()
}

#[cfg(test)]
#[path = "shared_wheel_tests.rs"]
mod shared_wheel_tests;
#[cfg(test)]
#[path = "publish_layers_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "wrong_layers_tests.rs"]
mod wrong_layers_tests;
