//! An image that was put together here, straight from wheels and the cache into a registry: no engine compresses it again.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;

use crate::assemble::LAYOUT_VERSION;
use crate::container_layers::{LayerError, keep_layers_of};
use crate::engine::EngineError;
use crate::failure::{Exit, Failure};
use crate::model::image::manifest::{BlobDescriptor, MANIFEST_TYPE, manifest};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::registry::{Blob, BlobOrigin, ManifestDocument};
use crate::store::packed_layers::{PackedLayer, packed_layer, remember_packed};
use crate::workflow::assemble::{LayerSource, Recipe, RecipeLayer, RemadeLayer};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// Parts that are named in an error.
const NAMED: usize = 10;

/// Neither the cache nor the engine nor the registry has parts of an image.
#[derive(Debug, thiserror::Error)]
#[error("cannot push the image: not in the cache any more:{}", lines(parts))]
pub(crate) struct MissingParts {
    parts: Vec<String>,
}

impl Failure for MissingParts {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        vec![
            "build the image again with `envforge build --locked`, which brings them back, then push it"
                .to_owned(),
        ]
    }
}

fn lines(parts: &[String]) -> String {
    let mut text: String = parts.iter().take(NAMED).flat_map(|part| ["\n  - ", part]).collect();
    if let Some(more @ 1..) = parts.len().checked_sub(NAMED) {
        let _ = write!(text, "\n  - and {more} more");
    }
    text
}

/// Puts an image into the repository of a reference, under its digest and these tags.
pub(crate) async fn push_assembled(
    session: &Session<'_>,
    recipe: &Recipe,
    target: &ImageRef,
    tags: &[&str],
) -> Result<Digest, CommandError> {
    bring_base(session, recipe).await?;
    let registry = &session.registry;
    let mut blobs = vec![config_blob(&recipe.config)];
    blobs.extend(recipe.layers.iter().map(|layer| {
        let known = packed_layer(&session.store, layer.hex(), LAYOUT_VERSION);
        let layer = RemadeLayer { layer: layer.clone(), store: session.store.clone() };
        layer_blob(layer, known, target)
    }));
    check_complete(session, recipe, &blobs[1..], target).await?;
    let pushed = registry.push_blobs(target, &blobs, &session.reporter).await?;
    let descriptors: Vec<BlobDescriptor> = pushed.iter().map(|(blob, _)| blob.clone()).collect();
    for (layer, blob) in recipe.layers.iter().zip(&descriptors[1..]) {
        remember_packed(&session.store, (layer.hex(), LAYOUT_VERSION), blob, &target.name())?;
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
    let manifest = manifest(&descriptors[0], &descriptors[1..]);
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

fn layer_blob(layer: RemadeLayer, known: Option<PackedLayer>, target: &ImageRef) -> Blob {
    let repositories = known.iter().flat_map(|known| known.repositories.iter().rev());
    let parsed = repositories.filter_map(|name| name.parse::<ImageRef>().ok());
    let elsewhere = parsed
        .filter(|other| other.registry() == target.registry() && other.repository() != target.repository());
    Blob {
        title: layer.layer.title.clone(),
        mount_from: elsewhere.map(|other| other.repository().to_owned()).collect(),
        known: layer.layer.known().or(known.map(|known| known.blob)),
        content: Arc::new(layer),
    }
}

/// Brings the layers of a base into the cache that only the engine has.
async fn bring_base(session: &Session<'_>, recipe: &Recipe) -> Result<(), CommandError> {
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

/// An error that names what is missing for the layers that the registry lacks.
async fn check_complete(
    session: &Session<'_>,
    recipe: &Recipe,
    blobs: &[Blob],
    target: &ImageRef,
) -> Result<(), CommandError> {
    let mut parts = Vec::new();
    for (layer, blob) in recipe.layers.iter().zip(blobs) {
        let layer = RemadeLayer { layer: layer.clone(), store: session.store.clone() };
        let missing = layer.missing();
        if missing.is_empty() {
            continue;
        }
        let is_there = match &blob.known {
            Some(known) => session.registry.has_blob(target, known).await?,
            None => false,
        };
        if !is_there {
            parts.extend(missing);
        }
    }
    if parts.is_empty() { Ok(()) } else { Err(MissingParts { parts }.into()) }
}
