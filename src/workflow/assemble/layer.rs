//! A finished layer: what the engine gets, what the configuration and the lock say of it.

use std::io::Write;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::assemble::{AssembleError, LayerDigests, LayerPlan, TarDigest, write_plain};
use crate::container_layers::KeptLayer;
use crate::engine::{ImageLayer, LayerContent, LayeredImage};
use crate::model::image::component::ComponentKind;
use crate::model::image::config::MadeLayer;
use crate::model::lock::LayerRecord;
use crate::model::versions::Machine;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// A finished layer: for the engine, and for the configuration.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) layer: ImageLayer,
    pub(super) described: MadeLayer,
    /// Digest and size of its compressed form.
    packed: Option<(String, u64)>,
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
        };
        Ok(Self::new(kind, layer, None))
    }

    /// A layer that is written whenever it is needed.
    pub(super) async fn planned(
        kind: ComponentKind,
        title: &str,
        plan: LayerPlan,
    ) -> Result<Self, CommandError> {
        let (plan, digest) = blocking(move || {
            let digest = write_plain(&plan, std::io::sink(), &mut |_| {})?;
            Ok::<_, AssembleError>((plan, digest))
        })
        .await??;
        Ok(Self::new(kind, planned_layer(title, plan, digest), None))
    }

    /// A layer of wheels with its digests.
    pub(super) fn of_plan(kind: ComponentKind, title: &str, plan: LayerPlan, digests: LayerDigests) -> Self {
        let LayerDigests { plain, gzip, gzip_size } = digests;
        Self::new(kind, planned_layer(title, plan, plain), Some((gzip, gzip_size)))
    }

    fn new(kind: ComponentKind, layer: ImageLayer, packed: Option<(String, u64)>) -> Self {
        let described = MadeLayer {
            component: kind.id().to_owned(),
            title: layer.title.clone(),
            diff_id: layer.diff_id.clone(),
        };
        Self { layer, described, packed }
    }

    pub(super) fn record(&self) -> LayerRecord {
        let (digest, compressed_size) = self.packed.clone().unzip();
        LayerRecord {
            component: self.described.component.clone(),
            diff_id: self.layer.diff_id.clone(),
            size: Some(self.layer.size),
            digest,
            compressed_size,
        }
    }
}

fn planned_layer(title: &str, plan: LayerPlan, digest: TarDigest) -> ImageLayer {
    let TarDigest { diff_id, size } = digest;
    ImageLayer { title: title.to_owned(), diff_id, size, content: Some(Arc::new(Planned(plan))) }
}

/// A layer that is made from wheels each time it is written.
struct Planned(LayerPlan);

impl LayerContent for Planned {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        match write_plain(&self.0, out, &mut |_| {}) {
            Ok(_) => Ok(()),
            Err(AssembleError::Write(cause)) => Err(cause),
            Err(error) => Err(std::io::Error::other(error)),
        }
    }
}

/// Runs work that reads and hashes on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandError> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)?)
}

/// An image of these layers alone, for a step that runs in it.
pub(super) fn plain_image(layers: &[ImageLayer], tag: &str, machine: Machine) -> LayeredImage {
    let (sender, receiver) = mpsc::channel(layers.len().max(1));
    for layer in layers {
        // The channel has room for all of them.
        let _ = sender.try_send(layer.clone());
    }
    LayeredImage {
        layers: receiver,
        config: Box::new(move |ids| {
            let config = serde_json::json!({
                "architecture": machine.debian(), "os": "linux", "config": {},
                "rootfs": { "type": "layers", "diff_ids": ids },
            });
            config.to_string().into()
        }),
        scratch_tag: tag.to_owned(),
        title: "load the layers below".to_owned(),
    }
}
