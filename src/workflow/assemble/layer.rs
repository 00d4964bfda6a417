//! A finished layer: what the engine gets, what the configuration and the lock say of it.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::assemble::{AssembleError, LayerDigests, LayerPlan, TarDigest, write_plain};
use crate::container_layers::{KeptLayer, keep_plan};
use crate::engine::{
    ConfigOf, EngineError, Expected, ImageLayer, LayerContent, LayeredImage, PackedLayer, plain_config,
};
use crate::failure::Failure;
use crate::model::image::component::ComponentKind;
use crate::model::image::config::MadeLayer;
use crate::model::lock::LayerRecord;
use crate::model::versions::Machine;
use crate::workflow::assemble::recipe::{LayerSource, RecipeLayer};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// A finished layer: for the engine, and for the configuration.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) layer: ImageLayer,
    pub(super) described: MadeLayer,
    source: LayerSource,
}

impl Made {
    /// A layer of the cache.
    pub(super) fn kept(
        session: &Session<'_>,
        kind: ComponentKind,
        title: &str,
        kept: &KeptLayer,
    ) -> Result<Self, CommandError> {
        let layer = ImageLayer {
            title: title.to_owned(),
            diff_id: kept.diff_id(),
            size: kept.size,
            content: Some(Arc::new(kept.content(&session.store)?)),
            packed: None,
        };
        Ok(Self::new(kind, layer, LayerSource::Kept))
    }

    /// A layer of given files, which the cache keeps.
    pub(super) async fn of_files(
        session: &Session<'_>,
        kind: ComponentKind,
        title: &str,
        plan: LayerPlan,
    ) -> Result<Self, CommandError> {
        let store = session.store.clone();
        let layer = blocking(move || keep_plan(&store, &plan)).await??;
        Self::kept(session, kind, title, &layer)
    }

    /// A layer of byte code, made of what the cache keeps whenever it is needed.
    pub(super) async fn of_byte_code(
        (kind, title): (ComponentKind, &str),
        plan: LayerPlan,
        (content, source): (Arc<dyn LayerContent>, LayerSource),
    ) -> Result<Self, CommandError> {
        let digest = blocking(move || write_plain(&plan, std::io::sink(), &mut |_| {})).await??;
        let TarDigest { diff_id, size } = digest;
        let title = title.to_owned();
        let layer = ImageLayer { title, diff_id, size, content: Some(content), packed: None };
        Ok(Self::new(kind, layer, source))
    }

    /// A layer of wheels with its digests. `contents` are its tar and its compressed form.
    pub(super) fn of_wheels(
        (kind, title): (ComponentKind, &str),
        contents: (Arc<dyn LayerContent>, Arc<dyn LayerContent>),
        source: LayerSource,
        digests: LayerDigests,
    ) -> Self {
        let LayerDigests { plain: TarDigest { diff_id, size }, gzip, gzip_size } = digests;
        let packed = PackedLayer { digest: gzip, size: gzip_size, content: contents.1 };
        let (title, content) = (title.to_owned(), Some(contents.0));
        Self::new(kind, ImageLayer { title, diff_id, size, content, packed: Some(packed) }, source)
    }

    fn new(kind: ComponentKind, layer: ImageLayer, source: LayerSource) -> Self {
        let described = MadeLayer {
            component: kind.id().to_owned(),
            title: layer.title.clone(),
            diff_id: layer.diff_id.clone(),
        };
        Self { layer, described, source }
    }

    /// Digest and size of its compressed form.
    fn packed(&self) -> Option<(String, u64)> {
        self.layer.packed.as_ref().map(|packed| (packed.digest.clone(), packed.size))
    }

    /// How it is made again.
    pub(super) fn recipe(&self) -> RecipeLayer {
        RecipeLayer {
            title: self.layer.title.clone(),
            diff_id: self.layer.diff_id.clone(),
            packed: self.packed(),
            source: self.source.clone(),
        }
    }

    pub(super) fn record(&self) -> LayerRecord {
        let (digest, compressed_size) = self.packed().unzip();
        LayerRecord {
            component: self.described.component.clone(),
            diff_id: self.layer.diff_id.clone(),
            size: Some(self.layer.size),
            digest,
            compressed_size,
        }
    }
}

/// The error of a writer as it is; any other inside one of input and output.
pub(super) fn io_error(error: AssembleError) -> std::io::Error {
    match error {
        AssembleError::Write(cause) => cause,
        AssembleError::Gone { .. } => std::io::Error::new(std::io::ErrorKind::NotFound, error),
        error => std::io::Error::other(error),
    }
}

/// The error of a layer's content that an engine was given, taken out of the engine's error.
pub(crate) fn of_layer<E: Failure + Send + Sync + 'static>(error: EngineError) -> CommandError {
    match error {
        EngineError::File(cause) => match cause.downcast::<E>() {
            Ok(error) => error.into(),
            Err(cause) => EngineError::File(cause).into(),
        },
        error => error.into(),
    }
}

/// Runs work that reads and hashes on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandError> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)?)
}

/// An image of these layers alone, for a step that runs in it.
pub(super) fn plain_image(layers: &[ImageLayer], tag: &str, machine: Machine) -> LayeredImage {
    let config: ConfigOf = Box::new(move |ids| plain_config(machine, ids));
    whole_image(layers, config, tag, "load the layers below")
}

/// An image whose layers are all there.
pub(crate) fn whole_image(layers: &[ImageLayer], config: ConfigOf, tag: &str, title: &str) -> LayeredImage {
    let (sender, receiver) = mpsc::channel(layers.len().max(1));
    for layer in layers {
        // The channel has room for all of them.
        let _ = sender.try_send(layer.clone());
    }
    let bytes = layers.iter().map(|layer| layer.size).sum();
    LayeredImage {
        layers: receiver,
        config,
        scratch_tag: tag.to_owned(),
        title: title.to_owned(),
        expected: Some(Expected { layers: layers.len(), bytes }),
    }
}
