//! The layer of /usr/local/cuda, made where everything below it is in place.

use std::sync::Arc;

use crate::assemble::AssembleError;
use crate::container_layers::directories::Directories;
use crate::container_layers::toolkit::{Toolkit, toolkit_layer};
use crate::container_layers::{KeptLayer, Tools};
use crate::engine::{ContainerFile, ImageLayer, TemporaryTag};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::image::plan::BuildPlan;
use crate::workflow::assemble::layer::{of_layer, plain_image};
use crate::workflow::assemble::part_timings::Part;
use crate::workflow::assemble::request::Assembly;
use crate::workflow::assemble::shared_step::SharedStep;
use crate::workflow::error::CommandError;

/// What the layer holds.
pub(super) const TITLE: &str = "/usr/local/cuda";

/// The layer of /usr/local/cuda: from the cache, finished by another machine, or made in an image of everything below it.
pub(super) async fn toolkit(
    image: Assembly<'_>,
    tools: &Tools<'_>,
    below: Vec<ImageLayer>,
    known: &Directories,
) -> Result<KeptLayer, CommandError> {
    let Assembly { session, plan, finished, times, .. } = image;
    let step = plan.image.toolkit.as_ref().expect("asked for only then");
    let ids: Vec<String> = below.iter().map(|layer| layer.diff_id.clone()).collect();
    let packages: Vec<String> = debs(plan).map(|(_, sha256)| sha256.clone()).collect();
    let tag = TemporaryTag::new(&*session.engine);
    let toolkit =
        Toolkit { image: tag.name(), layers: &ids, known, argument: &step.argument, packages: &packages };
    let key = toolkit.key();
    if let Some(kept) = toolkit.kept(tools)? {
        finished.made(&key, TITLE, std::slice::from_ref(&kept))?;
        return Ok(kept);
    }
    if !tools.no_cache
        && let Some(mut layers) = finished.find(SharedStep::Toolkit, &key, TITLE).await?
        && let Some(layer) = layers.pop()
    {
        return Ok(layer);
    }
    let request = plain_image(&below, tag.name(), session.engine.info().machine);
    let delivery = times.start(Part::Delivery);
    session
        .engine
        .load_layers(request, Arc::clone(&session.reporter))
        .await
        .map_err(of_layer::<AssembleError>)?;
    drop(delivery);
    let _running = times.start(Part::System);
    let mut files = Vec::new();
    for (entry, sha256) in debs(plan) {
        // It was there when the build began: a damaged one is removed by the store.
        let damaged = || AssembleError::WrongHash {
            file: entry.path.clone(),
            wanted: sha256.clone(),
            found: "a damaged file".to_owned(),
        };
        let bytes = session.store.read(sha256)?.ok_or_else(damaged)?;
        files.push(ContainerFile { path: format!("/run/envforge/{}", entry.path), mode: 0o644, bytes });
    }
    let layer = toolkit_layer(tools, toolkit, files).await?;
    finished.made(&key, TITLE, std::slice::from_ref(&layer))?;
    tag.remove().await?;
    Ok(layer)
}

/// The packages of the toolkit in a context, with their SHA-256.
fn debs(plan: &BuildPlan) -> impl Iterator<Item = (&ContextEntry, &String)> {
    plan.context.iter().filter(|entry| entry.path.starts_with("toolkit/")).filter_map(|entry| {
        match &entry.content {
            ContextContent::File { sha256, .. } => Some((entry, sha256)),
            ContextContent::Bytes(_) => None,
        }
    })
}
