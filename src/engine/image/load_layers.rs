//! Gives the engine an image layer by layer: only what it lacks, the next part sent while the last one is applied.
//!
//! A graph driver knows a layer by the chain of all below it, so what the engine has is a common beginning. containerd's store
//! knows the blobs that came with an image: there, only images that were loaded here, with these blobs, are such a beginning. Each
//! part is an image of its own under a scratch tag, which a killed run leaves to `orphans`.

use std::collections::HashMap;
use std::sync::Arc;

use bollard::query_parameters::ListImagesOptionsBuilder;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::delivered::Delivered;
use super::in_flight::InFlight;
use super::layered::{ImageLayer, LayeredImage, plain_config};
use super::load_part::Part;
use super::progress::ProgressStep;
use super::temporary_tag::TemporaryTag;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::transport::classify_error::{is_absent, is_incomplete};
use crate::model::image::plan::LOCK_LABEL;
use crate::report::Reporter;

/// Layers that are ready go together up to this many bytes: more would wait for the engine's disk twice.
const PART: u64 = 256 << 20;

/// Loads the image, and once more from its base up if a layer the engine had has gone in between.
pub(super) async fn load_layers(
    docker: &Docker,
    image: LayeredImage,
    reporter: Arc<dyn Reporter>,
) -> Result<(), EngineError> {
    let LayeredImage { layers, config, scratch_tag, title, expected } = image;
    let chains = chains(docker).await?;
    let id = format!("load:{scratch_tag}");
    let step = ProgressStep::begin(reporter.as_ref(), id.clone(), title);
    let delivered = Arc::new(Delivered::new(id, expected, Arc::clone(&reporter)));
    let mut source = Source { received: Vec::new(), used: 0, layers, keeps_blobs: docker.info.keeps_blobs };
    let mut result = Loading::new(docker, chains, &delivered).run(&mut source).await;
    if let Err(EngineError::Refused { .. }) = &result {
        // `docker image prune` may take a layer away that no tag holds: then everything above the base is sent.
        result = source.send_again(docker, &delivered).await;
    }
    let loaded = async {
        let mut parts = result?;
        let config = config(&ids_of(&source.received));
        finish(docker, &source.received, config.clone(), (&scratch_tag, &delivered)).await?;
        if docker.info.keeps_blobs && !is_complete(docker, &scratch_tag, &source.received).await? {
            // A beginning that was pulled has other blobs.
            parts = source.send_again(docker, &delivered).await?;
            finish(docker, &source.received, config, (&scratch_tag, &delivered)).await?;
        }
        Ok(parts)
    };
    let loaded = loaded.await;
    let (parts, result) = match loaded {
        Ok(parts) => (parts, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    step.end(result)?;
    for part in parts {
        part.remove().await?;
    }
    Ok(())
}

/// The layers that came so far and those to come.
struct Source {
    received: Vec<ImageLayer>,
    used: usize,
    layers: mpsc::Receiver<ImageLayer>,
    /// Whether the engine keeps what it is sent.
    keeps_blobs: bool,
}

impl Source {
    /// Sends every layer that is not the engine's own, whatever it has.
    async fn send_again<'a>(
        &mut self,
        docker: &'a Docker,
        delivered: &'a Arc<Delivered>,
    ) -> Result<Vec<TemporaryTag<'a>>, EngineError> {
        let base = self.received.iter().take_while(|layer| layer.content.is_none());
        let base = base.map(|layer| layer.diff_id.clone()).collect();
        self.used = 0;
        delivered.restart();
        Loading::new(docker, vec![base], delivered).run(self).await
    }

    /// The next layer, once it is there.
    async fn next(&mut self) -> Option<ImageLayer> {
        if self.used == self.received.len() {
            let layer = self.layers.recv().await?;
            self.receive(layer);
        }
        self.used += 1;
        self.received.get(self.used - 1).cloned()
    }

    /// The next layer, if it is there already and fits.
    fn ready(&mut self, room: u64) -> Option<ImageLayer> {
        if self.used == self.received.len() {
            let layer = self.layers.try_recv().ok()?;
            self.receive(layer);
        }
        let next = self.received.get(self.used).filter(|layer| layer.blob().size <= room).cloned()?;
        self.used += 1;
        Some(next)
    }

    fn receive(&mut self, layer: ImageLayer) {
        self.received.push(layer.for_store(self.keeps_blobs));
    }
}

/// One attempt: the chains the engine has, and the parts on their way.
struct Loading<'a> {
    docker: &'a Docker,
    chains: Vec<Vec<String>>,
    /// Dropped before the tags of the parts.
    running: InFlight,
    parts: Vec<TemporaryTag<'a>>,
    delivered: &'a Arc<Delivered>,
}

impl<'a> Loading<'a> {
    fn new(docker: &'a Docker, chains: Vec<Vec<String>>, delivered: &'a Arc<Delivered>) -> Self {
        Self { docker, chains, running: InFlight::default(), parts: Vec::new(), delivered }
    }

    /// Loads every layer; returns the tags that hold the parts.
    async fn run(mut self, source: &mut Source) -> Result<Vec<TemporaryTag<'a>>, EngineError> {
        let mut result = self.send_all(source).await;
        // A part that is still on its way would get its tag after the guard removed it.
        while let Some(ended) = self.running.next().await {
            result = result.and(ended);
        }
        result.map(|()| self.parts)
    }

    async fn send_all(&mut self, source: &mut Source) -> Result<(), EngineError> {
        let mut below: Vec<ImageLayer> = Vec::new();
        let mut applied = None;
        while let Some(layer) = source.next().await {
            below.push(layer);
            let start = below.len() - 1;
            if self.has(&below) {
                self.delivered.had(&below[start]);
                continue;
            }
            let mut room = PART.saturating_sub(below[start].blob().size);
            while let Some(layer) = source.ready(room) {
                room -= layer.blob().size;
                below.push(layer);
            }
            // At most one part is being sent and one being applied.
            while self.running.len() > 1 {
                self.running.next().await.unwrap_or(Ok(()))?;
            }
            let tag = TemporaryTag::new(self.docker);
            let part = Part {
                config: plain_config(self.docker.info.machine, &ids_of(&below)),
                layers: below.clone(),
                start,
                tag: tag.name().to_owned(),
                parent: applied.take(),
                delivered: Arc::clone(self.delivered),
            };
            self.delivered.begins(&below[start..]);
            self.parts.push(tag);
            let (sent, is_sent) = oneshot::channel();
            let (ready, is_ready) = oneshot::channel();
            let docker = self.docker.clone();
            self.running.start(|sending| async move {
                part.load(&docker, sent, sending).await?;
                // The last part has no successor.
                let _ = ready.send(());
                Ok(())
            });
            applied = Some(is_ready);
            if is_sent.await.is_err() {
                // It ended before everything was sent: its error is among those that follow.
                break;
            }
        }
        Ok(())
    }

    /// Whether the engine has this beginning of the image.
    fn has(&self, layers: &[ImageLayer]) -> bool {
        let is_beginning = |chain: &Vec<String>| {
            chain.len() >= layers.len()
                && chain.iter().zip(layers).all(|(known, layer)| *known == layer.diff_id)
        };
        self.chains.iter().any(is_beginning)
    }
}

/// Loads the image itself, whose layers the engine has by now.
async fn finish(
    docker: &Docker,
    layers: &[ImageLayer],
    config: Bytes,
    (tag, delivered): (&str, &Arc<Delivered>),
) -> Result<(), EngineError> {
    let part = Part {
        layers: layers.to_vec(),
        start: layers.len(),
        config,
        tag: tag.to_owned(),
        parent: None,
        delivered: Arc::clone(delivered),
    };
    let (sent, _) = oneshot::channel();
    let docker = docker.clone();
    let mut running = InFlight::default();
    running.start(|sending| async move { part.load(&docker, sent, sending).await });
    running.next().await.unwrap_or(Ok(()))
}

/// Whether the engine has an image with these layers; it cannot describe one that lacks blobs.
async fn is_complete(docker: &Docker, tag: &str, layers: &[ImageLayer]) -> Result<bool, EngineError> {
    match docker.daemon.client.inspect_image(tag).await {
        Ok(found) => Ok(found.root_fs.and_then(|fs| fs.layers) == Some(ids_of(layers))),
        Err(error) if is_incomplete(&error) || is_absent(&error) => Ok(false),
        Err(error) => Err(docker.daemon.fault("inspecting an image", error)),
    }
}

/// The layers of the images of the engine that new images can stand on.
async fn chains(docker: &Docker) -> Result<Vec<Vec<String>>, EngineError> {
    let mut options = ListImagesOptionsBuilder::new();
    let filters = HashMap::from([("label", vec![LOCK_LABEL])]);
    if docker.info.keeps_blobs {
        options = options.filters(&filters);
    }
    let images = docker.daemon.client.list_images(Some(options.build())).await;
    let images = images.map_err(|error| docker.daemon.fault("listing images", error))?;
    let mut chains = Vec::new();
    for image in images {
        match docker.daemon.client.inspect_image(&image.id).await {
            Ok(found) => chains.extend(found.root_fs.and_then(|fs| fs.layers)),
            Err(error) if is_absent(&error) || docker.info.keeps_blobs && is_incomplete(&error) => {}
            Err(error) => return Err(docker.daemon.fault("inspecting an image", error)),
        }
    }
    Ok(chains)
}

/// The diff IDs of these layers.
fn ids_of(layers: &[ImageLayer]) -> Vec<String> {
    layers.iter().map(|layer| layer.diff_id.clone()).collect()
}
