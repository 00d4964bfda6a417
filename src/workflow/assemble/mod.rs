//! The assembled builder: base and system from a container, every wheel a layer, the configuration written here.
//!
//! Layers are made lowest first and given to the engine while the next ones are made.

mod arrivals;
mod byte_code_layer;
mod delivery;
mod files;
mod finished;
mod finished_error;
mod finished_source;
mod kept_code;
mod layer;
mod listed_layers;
mod locked_wheels;
mod part_timings;
mod recipe;
mod remade_layer;
mod request;
mod run_steps;
mod shared_layers;
mod shared_step;
mod system;
mod toolkit;
mod wheel_code;
mod wheels;

pub(crate) use finished::{FinishedLayers, FinishedStep, Purpose};
pub(crate) use finished_error::FinishedLayerError;
pub(crate) use layer::{blocking, of_layer, whole_image};
pub(crate) use part_timings::{PartClock, PartTimings};
#[cfg(test)]
pub(crate) use recipe::RecipeWheel;
pub(crate) use recipe::{LayerSource, Recipe, RecipeLayer};
pub(crate) use remade_layer::{OF_BASE, OpenedLayer, RemadeLayer, ZstdLayer};
pub(crate) use request::{Assembly, ImageRecords, layout, recorded};
pub(crate) use shared_step::SharedStep;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::assemble::AssembleError;
use crate::container_layers::{Tools, check_environment};
use crate::engine::{EngineError, Expected, ImageInfo, ImageLayer, LayeredImage, TemporaryTag};
use crate::model::image::component::ComponentKind;
use crate::model::image::config::{MadeLayer, config};
use crate::model::lock::{LayerRecord, WheelLayer};
use crate::model::sha256::sha256_hex;
use crate::report::Reporter;
use crate::workflow::assemble::arrivals::WheelCaches;
use crate::workflow::assemble::delivery::Delivery;
use crate::workflow::assemble::files::{copied_files, own_files};
use crate::workflow::assemble::layer::Made;
use crate::workflow::assemble::locked_wheels::LockedWheels;
use crate::workflow::assemble::part_timings::Part;
use crate::workflow::assemble::run_steps::run_steps;
use crate::workflow::assemble::system::{base_layers, base_recipe, more, system};
use crate::workflow::assemble::toolkit::{TITLE, toolkit};
use crate::workflow::assemble::wheels::WheelLayers;
use crate::workflow::build_secrets::user_secrets;
use crate::workflow::damaged::{Replaced, Subject};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;

/// Layers that may wait for the engine.
const WAITING: usize = 128;

/// Puts the image of a plan together in the engine, under a scratch tag.
pub(crate) async fn assemble(image: Assembly<'_>) -> Result<(ImageInfo, ImageRecords), CommandError> {
    let Assembly { session, lock, plan, .. } = image;
    if plan.image.runs.is_empty() {
        return assemble_without_runs(image).await;
    }
    let tag = TemporaryTag::new(&*session.engine);
    let (_, records) = assemble_without_runs(Assembly { scratch_tag: tag.name(), ..image }).await?;
    let secrets = user_secrets(session, lock)?;
    let image = run_steps(image, tag.name(), secrets).await?;
    tag.remove().await?;
    Ok((image, records))
}

/// The image without the commands of the project. What is damaged in the cache is fetched or made once more.
pub(crate) async fn assemble_without_runs(
    image: Assembly<'_>,
) -> Result<(ImageInfo, ImageRecords), CommandError> {
    let Assembly { session, lock, base, wanted, .. } = image;
    let mut replaced = Replaced::default();
    loop {
        match Box::pin(layered(image)).await {
            Ok(done) => return Ok(done),
            Err(error) => Box::pin(replaced.again(error, Subject { session, lock, base, wanted })).await?,
        }
    }
}

/// The image without the commands of the project.
async fn layered(image: Assembly<'_>) -> Result<(ImageInfo, ImageRecords), CommandError> {
    let Assembly { session, lock, base: locked, plan, scratch_tag, no_cache, times, .. } = image;
    locked.check_unchanged(&*session.engine).await?;
    let gone = || EngineError::NoSuchImage { reference: locked.reference.clone() };
    let base = session.engine.image(&locked.reference).await?.ok_or_else(gone)?;
    let tools = Tools {
        engine: &*session.engine,
        store: &session.store,
        reporter: Arc::clone(&session.reporter),
        no_cache,
    };
    let of_base = base_layers(session, &base, &locked.reference).await?;
    let caches = WheelCaches::of(&session.store, lock.stack.python.minor);
    let (system, early) =
        tokio::try_join!(system(image, &tools, &base, &of_base), LockedWheels::gather_early(image, &caches))?;
    let wheels = WheelLayers::open(image, &tools, (&system, early), caches).await?;
    let mut below = system.made.clone();
    let (apt, of_apt) = more(image, &tools, &system).await?;
    wheels.tell_missing_libraries(image.misfits, of_apt).await?;
    // The loader's cache, which the toolkit's step writes, lists the libraries of these packages too.
    let has_toolkit = plan.image.toolkit.is_some();
    let (apt_first, apt_later) = if has_toolkit { (apt, Vec::new()) } else { (Vec::new(), apt) };
    below.extend(apt_first);
    if has_toolkit {
        // It links to every CUDA library, also to those that lie with the framework.
        below.extend(wheels.group(ComponentKind::Cuda).await?);
        below.extend(wheels.group(ComponentKind::Framework).await?);
        let layers = of_base.iter().cloned().chain(below.iter().map(|made| made.layer.clone()));
        let kept = toolkit(image, &tools, layers.collect(), &system.files.directories).await?;
        check_environment(&session.store, std::slice::from_ref(&kept), TITLE)?;
        below.push(Made::kept(session, ComponentKind::Toolkit, TITLE, &kept)?);
    }
    let mut to_come = vec![ComponentKind::Stack, ComponentKind::User, ComponentKind::Project];
    if !has_toolkit {
        to_come.extend([ComponentKind::Cuda, ComponentKind::Framework]);
    }
    let ready = below.iter().chain(&apt_later).map(|made| &made.layer);
    let expected = with_layers(wheels.expected(&to_come), of_base.iter().chain(ready));
    let (sender, receiver) = mpsc::channel(WAITING);
    let all = Arc::new(Mutex::new(Vec::<Made>::new()));
    let machine = lock.stack.machine;
    let config_now = {
        let (image, base, all) = (plan.image.clone(), base.clone(), Arc::clone(&all));
        move || {
            let all = all.lock().unwrap_or_else(PoisonError::into_inner);
            let made: Vec<MadeLayer> = all.iter().map(|one| one.described.clone()).collect();
            config(&image, &base, machine, &made)
        }
    };
    let in_the_end = config_now.clone();
    let request = LayeredImage {
        layers: receiver,
        config: Box::new(move |_| config_now().into()),
        scratch_tag: scratch_tag.to_owned(),
        title: "assemble the layers".to_owned(),
        expected: Some(expected),
    };
    let make = async {
        let line = Line { layers: sender, all: Arc::clone(&all) };
        for layer in of_base.clone() {
            line.send_layer(layer).await;
        }
        line.send_each(below).await;
        if !has_toolkit {
            line.send_group(&wheels, ComponentKind::Cuda).await?;
            line.send_group(&wheels, ComponentKind::Framework).await?;
        }
        line.send_group(&wheels, ComponentKind::Stack).await?;
        line.send_each(apt_later).await;
        line.send_group(&wheels, ComponentKind::User).await?;
        if lock.wheels.iter().any(|wheel| wheel.layer == WheelLayer::Project) {
            line.send_group(&wheels, ComponentKind::Project).await?;
        }
        let own = own_files(plan, &system.files.directories)?;
        line.send(Made::of_files(session, ComponentKind::Files, "envforge's own files", own).await?).await;
        if let Some(copies) = copied_files(plan, &system.files.directories)? {
            line.send(Made::of_files(session, ComponentKind::Copy, "files of the project", copies).await?)
                .await;
        }
        Ok::<(), CommandError>(())
    };
    let load = async {
        let _running = times.start(Part::Delivery);
        let delivery = Delivery::begin(session);
        let reporter = Arc::clone(&delivery) as Arc<dyn Reporter>;
        let loaded = session.engine.load_layers(request, reporter).await;
        let image = loaded.map_err(of_layer::<AssembleError>)?;
        delivery.end(session);
        Ok::<ImageInfo, CommandError>(image)
    };
    let ((), image) = tokio::try_join!(make, load)?;
    system.tag.remove().await?;
    locked.check_unchanged(&*session.engine).await?;
    let made = all.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let layers: Vec<LayerRecord> = made.iter().map(Made::record).collect();
    if !are_layers_of(&image.layers, &base.layers, layers.iter().map(|layer| &layer.diff_id)) {
        return Err(ImageError::OtherLayers { image: image.id }.into());
    }
    let config_text = in_the_end();
    let config = format!("sha256:{}", sha256_hex(config_text.as_bytes()));
    let recipe = base_recipe(&base, locked.archive.as_ref()).into_iter().chain(made.iter().map(Made::recipe));
    Recipe::new(config_text, locked.reference.clone(), recipe.collect()).keep(&session.store, &image.id)?;
    Ok((image, ImageRecords { config: Some(config), layers }))
}

/// What is to come of an image: wheels, layers that are ready, and envforge's own files.
fn with_layers<'a>(wheels: Expected, ready: impl Iterator<Item = &'a ImageLayer>) -> Expected {
    let wheels = Expected { layers: wheels.layers + 1, ..wheels };
    ready.fold(wheels, |all, layer| Expected { layers: all.layers + 1, bytes: all.bytes + layer.size })
}

/// Whether an image has exactly the layers of its base and those made above it, in their order.
fn are_layers_of<'a>(
    image: &'a [String],
    base: &'a [String],
    above: impl Iterator<Item = &'a String>,
) -> bool {
    image.iter().eq(base.iter().chain(above))
}

/// Where finished layers go.
struct Line {
    layers: mpsc::Sender<ImageLayer>,
    /// Those above the base.
    all: Arc<Mutex<Vec<Made>>>,
}

impl Line {
    async fn send(&self, made: Made) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(made.clone());
        self.send_layer(made.layer).await;
    }

    async fn send_each(&self, layers: Vec<Made>) {
        for made in layers {
            self.send(made).await;
        }
    }

    /// Wheels go to the engine while their byte code is compiled.
    async fn send_group(&self, wheels: &WheelLayers<'_>, kind: ComponentKind) -> Result<(), CommandError> {
        self.send_each(wheels.without_code(kind).await?).await;
        self.send_each(wheels.code(kind).await?.into_iter().collect()).await;
        Ok(())
    }

    async fn send_layer(&self, layer: ImageLayer) {
        // A receiver that has gone is a load that failed: its error ends the build.
        let _ = self.layers.send(layer).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an engine's image of those layers is the one with `base` below `a` and `b`.
    fn is_planned(layers: &[&str]) -> bool {
        let owned = |layers: &[&str]| layers.iter().map(|layer| (*layer).to_owned()).collect::<Vec<_>>();
        are_layers_of(&owned(layers), &owned(&["base"]), owned(&["a", "b"]).iter())
    }

    #[test]
    fn image_of_the_planned_layers_is_accepted() {
        assert!(is_planned(&["base", "a", "b"]));
    }

    #[test]
    fn image_with_one_layer_more_or_less_is_rejected() {
        for layers in [&["base", "a", "b", "c"] as &[_], &["base", "a"], &["a", "b"], &[]] {
            assert!(!is_planned(layers), "{layers:?}");
        }
    }

    #[test]
    fn image_with_another_layer_or_order_is_rejected() {
        for layers in [["base", "a", "x"], ["x", "a", "b"], ["base", "b", "a"]] {
            assert!(!is_planned(&layers), "{layers:?}");
        }
    }
}
