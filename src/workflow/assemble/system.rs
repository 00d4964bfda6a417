//! The part of an image below the wheels: base, system, empty environment, the user's distribution packages.

use std::collections::BTreeSet;
use std::sync::Arc;

use camino::Utf8PathBuf;

use crate::assemble::AssembleError;
use crate::base::BaseArchive;
use crate::container_layers::directories::{SystemFiles, libraries_of, system_files};
use crate::container_layers::{KeptLayer, Step, Tools, check_environment, keep_layers_of, step_layers};
use crate::engine::{EngineError, ImageInfo, ImageLayer, TemporaryTag};
use crate::fetch::open_verified;
use crate::model::image::component::ComponentKind;
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::image::plan::BuildPlan;
use crate::model::image::render::packages_step;
use crate::model::lock::BaseProvider;
use crate::store::Store;
use crate::workflow::assemble::layer::{Made, blocking, of_layer, plain_image};
use crate::workflow::assemble::part_timings::Part;
use crate::workflow::assemble::recipe::{LayerSource, RecipeLayer};
use crate::workflow::assemble::request::Assembly;
use crate::workflow::assemble::shared_step::SharedStep;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// The empty environment: uv makes it with the image's Python.
const ENVIRONMENT: &str = "\
RUN --mount=type=bind,source=tools/uv,target=/run/envforge/uv \
    --mount=type=bind,source=steps/wheels.sh,target=/run/envforge/wheels.sh \
    --mount=type=bind,source=steps/compile.py,target=/run/envforge/compile.py \
    UV_NO_CACHE=1 sh /run/envforge/wheels.sh";
/// Base and system in the engine, which later steps run in.
pub(super) struct System<'a> {
    /// Its layers above the base.
    pub(super) made: Vec<Made>,
    /// Its private tag.
    pub(super) tag: TemporaryTag<'a>,
    /// The image.
    pub(super) image: ImageInfo,
    /// Its directories and libraries.
    pub(super) files: SystemFiles,
    /// The program uv, in the cache.
    pub(super) uv: Utf8PathBuf,
}

/// Makes base and system present in the engine.
pub(super) async fn system<'a>(
    image: Assembly<'a>,
    tools: &Tools<'_>,
    base: &ImageInfo,
    base_layers: &[ImageLayer],
) -> Result<System<'a>, CommandError> {
    let Assembly { session, lock, base: locked, plan, times, .. } = image;
    let step = Step {
        below: base,
        reference: &locked.reference,
        configured: (locked.provider == BaseProvider::Image).then(|| base.id.clone()),
        instructions: format!("{}\n{ENVIRONMENT}", packages_step("debs", "")),
        context: files_of(plan, &["debs/", "steps/", "tools/"]),
    };
    let kept = finished_step(image, tools, (SharedStep::System, "system", step)).await?;
    let mut made = Vec::new();
    for (number, layer) in kept.iter().enumerate() {
        let (kind, title) = if number == 0 {
            (ComponentKind::System, "system")
        } else {
            (ComponentKind::Environment, "environment")
        };
        made.push(Made::kept(session, kind, title, layer)?);
    }
    let tag = TemporaryTag::new(&*session.engine);
    let layers: Vec<ImageLayer> =
        base_layers.iter().cloned().chain(made.iter().map(|made| made.layer.clone())).collect();
    let request = plain_image(&layers, tag.name(), lock.stack.machine);
    let delivery = times.start(Part::Delivery);
    let image = session
        .engine
        .load_layers(request, Arc::clone(&session.reporter))
        .await
        .map_err(of_layer::<AssembleError>)?;
    drop(delivery);
    let files = system_files(tools, tag.name(), &image.layers).await?;
    let program = plan.context.iter().find_map(|entry| match &entry.content {
        ContextContent::File { path, .. } if entry.path == "tools/uv" => Some(path.clone()),
        _ => None,
    });
    let uv = program.expect("every context has uv");
    Ok(System { made, tag, image, files, uv })
}

/// The layer of the user's distribution packages, if there are any, and the paths of the libraries in it.
pub(super) async fn more(
    image: Assembly<'_>,
    tools: &Tools<'_>,
    system: &System<'_>,
) -> Result<(Vec<Made>, BTreeSet<String>), CommandError> {
    let Assembly { session, plan, .. } = image;
    if plan.image.apt.is_none() {
        return Ok((Vec::new(), BTreeSet::new()));
    }
    let step = Step {
        below: &system.image,
        reference: system.tag.name(),
        configured: None,
        instructions: packages_step("apt", "more"),
        context: files_of(plan, &["apt/", "steps/system.sh", "steps/compile.py"]),
    };
    let title = "distribution packages";
    let layers = finished_step(image, tools, (SharedStep::Apt, title, step)).await?;
    check_environment(&session.store, &layers, title)?;
    let made = |layer| Made::kept(session, ComponentKind::Apt, title, layer);
    let libraries = libraries_of(&session.store, &layers)?;
    Ok((layers.iter().map(made).collect::<Result<_, _>>()?, libraries))
}

/// The layers of a step: from the cache, or finished by another machine, or made now.
async fn finished_step(
    image: Assembly<'_>,
    tools: &Tools<'_>,
    (shared, title, step): (SharedStep, &str, Step<'_>),
) -> Result<Vec<KeptLayer>, CommandError> {
    let _running = image.times.start(Part::System);
    let key = step.key();
    if !tools.no_cache
        && step.kept(tools)?.is_none()
        && let Some(layers) = image.finished.find(shared, &key, title).await?
    {
        return Ok(layers);
    }
    let layers = step_layers(tools, step).await?;
    image.finished.made(&key, title, &layers)?;
    Ok(layers)
}

/// The layers of the base, which the engine has. One that keeps the blobs of each image gets them with the image: those of the
/// base may be compressed otherwise.
pub(super) async fn base_layers(
    session: &Session<'_>,
    base: &ImageInfo,
    reference: &str,
) -> Result<Vec<ImageLayer>, CommandError> {
    let layer = |diff_id: &String| ImageLayer {
        title: "base".to_owned(),
        diff_id: diff_id.clone(),
        size: 0,
        content: None,
        packed: None,
    };
    let mut layers: Vec<_> = base.layers.iter().map(layer).collect();
    if session.engine.info().keeps_blobs {
        for layer in &mut layers {
            let kept = kept_base_layer(session, &layer.diff_id, reference).await?;
            layer.size = kept.size;
            layer.content = Some(Arc::new(kept.content(&session.store)?));
        }
    }
    Ok(layers)
}

/// A layer of the base in the cache, taken out of the engine where it is absent.
async fn kept_base_layer(
    session: &Session<'_>,
    diff_id: &str,
    reference: &str,
) -> Result<KeptLayer, CommandError> {
    let (store, sha256) = (session.store.clone(), diff_id.trim_start_matches("sha256:").to_owned());
    // Its size stands in the manifest, also where the engine has the layer: a damaged file would give another image.
    let mut found = verified_size(&store, &sha256).await?;
    if found.is_none() {
        keep_layers_of(&*session.engine, &store, reference).await?;
        found = verified_size(&store, &sha256).await?;
    }
    let gone = || EngineError::NoSuchImage { reference: reference.to_owned() };
    Ok(KeptLayer { sha256, size: found.ok_or_else(gone)? })
}

/// The size of a file of the cache, if it is there with that SHA-256.
async fn verified_size(store: &Store, sha256: &str) -> Result<Option<u64>, CommandError> {
    let (store, sha256) = (store.clone(), sha256.to_owned());
    let file = blocking(move || open_verified(&store, &sha256)).await??;
    Ok(file.map(|file| file.metadata()).transpose()?.map(|found| found.len()))
}

/// The layers of the base for a recipe. The archive of a bootstrapped base is its one layer.
pub(super) fn base_recipe(base: &ImageInfo, archive: Option<&BaseArchive>) -> Vec<RecipeLayer> {
    let archive = archive.filter(|_| base.layers.len() == 1);
    let layer = |diff_id: &String| RecipeLayer {
        title: "base".to_owned(),
        diff_id: diff_id.clone(),
        packed: None,
        source: LayerSource::Base { archive: archive.map(|archive| archive.path.clone()) },
    };
    base.layers.iter().map(layer).collect()
}

fn files_of(plan: &BuildPlan, starts: &[&str]) -> Vec<ContextEntry> {
    let is_used = |entry: &&ContextEntry| {
        starts.iter().any(|start| entry.path.starts_with(start)) && entry.path != "steps/toolkit.py"
    };
    plan.context.iter().filter(is_used).cloned().collect()
}
